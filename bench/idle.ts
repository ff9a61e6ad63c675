// The cost of an idle device: bytes on its link behind TLS, watched for some minutes and
// scaled to a day. Words:
//   minutes=30     how long to watch
//   forgets=60     a NAT on the way that forgets after this many seconds; without it there is none
// `idleBytes` is for other benches: it watches any link on which one agent is idle.
import { mkdtempSync, readFileSync, rmSync } from 'node:fs'
import os from 'node:os'
import path from 'node:path'
import net, { type AddressInfo } from 'node:net'
import { once } from 'node:events'
import { setTimeout as wait } from 'node:timers/promises'
import tls from 'node:tls'
import { folder } from '../ssh/test/programs.ts'
import { makeAuthority } from '../tests/harness/authority.ts'
import { startLink, type Link } from '../tests/harness/link.ts'
import { plantFleet, tenant_id } from './fleet.ts'
import { root, startHawser, startProcess } from './programs.ts'

export interface IdleBytes {
  /** Bytes both ways, with the headers of TCP and IP, as measured and scaled to a day. */
  readonly wire: number
  readonly wire_day: number
  /** Connections opened during the measurement. */
  readonly connections: number
}

export async function idleBytes(link: Link, minutes: number): Promise<IdleBytes> {
  const [before, opened] = [link.up.wire + link.down.wire, link.opened]
  const started = performance.now()
  await wait(minutes * 60_000)
  const wire = link.up.wire + link.down.wire - before
  const days = (performance.now() - started) / 86_400_000
  return { wire, wire_day: wire / days, connections: link.opened - opened }
}

export default async function idle(...words: string[]): Promise<void> {
  const settings = new Map(words.map((word) => word.split('=') as [string, string]))
  const minutes = Number(settings.get('minutes') ?? 30)
  const forgets_s = Number(settings.get('forgets') ?? Infinity)
  const place = mkdtempSync(path.join(os.tmpdir(), 'hawser-idle-'))
  using where = folder()
  await using open = new AsyncDisposableStack()
  open.defer(() => rmSync(place, { recursive: true, force: true }))
  const data = path.join(place, 'data')
  await plantFleet(data, 0, () => undefined)
  const server = open.use(await startHawser(data, { env: { HAWSER_TRUSTED_PROXIES: 'none' } }))
  const authority = await makeAuthority(where)
  const { chain, key } = await authority.issue('proxy', 'IP:127.0.0.1')
  const proxy = tls.createServer({ cert: readFileSync(chain), key: readFileSync(key) }, (near) => {
    const far = net.connect(server.port, '127.0.0.1')
    near.on('error', () => far.destroy()).pipe(far)
    far.on('error', () => near.destroy()).pipe(near)
  })
  proxy.listen(0, '127.0.0.1')
  await once(proxy, 'listening')
  open.defer(() => void proxy.close())
  const { port } = proxy.address() as AddressInfo
  const link = open.use(await startLink({ port }, { forgets_ms: forgets_s * 1_000 }))
  const isRoot = process.getuid?.() === 0
  const agent = open.use(
    startProcess([process.execPath, path.join(root, 'agent/src/main.ts')], {
      HAWSER_SERVER_ADDRESS: `https://127.0.0.1:${link.port}`,
      HAWSER_TENANT_ID: tenant_id,
      HAWSER_PRIVATE_KEY: path.join(place, 'device.key'),
      HAWSER_PREFERRED_HOSTNAME: 'buoy',
      HAWSER_CA_FILE: authority.file,
      ...(isRoot ? {} : { HAWSER_SINGLE_USER_PASSWORD: '$6$bench$no-password-fits-this' }),
    }),
  )
  await agent.printed(/"(tunnel\.up)"/)
  // Until the start is over.
  await wait(2_000)
  const begun = link.up.wire + link.down.wire
  const { wire, wire_day, connections } = await idleBytes(link, minutes)
  console.log(`from the start to the tunnel: ${(begun / 1000).toFixed(1)} KB`)
  console.log(`idle for ${minutes} min: ${(wire / 1000).toFixed(1)} KB, ${connections} new connections`)
  console.log(`a day at that rate: ${(wire_day / 1000).toFixed(0)} KB`)
}
