// An agent that loses its tunnel comes back without a full TLS handshake: no certificates, no signature. That
// holds for a server that speaks TLS itself and for one behind a proxy.
import { once } from 'node:events'
import { readFileSync } from 'node:fs'
import net, { type AddressInfo } from 'node:net'
import tls from 'node:tls'
import { expect, test, vi } from 'vitest'
import { sample } from '@hawser/contract/examples'
import { folder } from '../../ssh/test/programs.ts'
import { startAgent } from '../harness/agent.ts'
import { makeAuthority } from '../harness/authority.ts'
import { startLink } from '../harness/link.ts'
import { startService } from '../harness/service.ts'
import { buildWorld } from '../harness/world.ts'

vi.setConfig({ testTimeout: 60_000 })

test('an agent resumes its TLS session with a proxy when its tunnel was lost', async () => {
  using where = folder()
  const authority = await makeAuthority(where)
  const { chain, key } = await authority.issue('proxy', 'IP:127.0.0.1')
  await using service = await startService({ env: { HAWSER_URL: '' } })
  await buildWorld(service)
  const resumed: boolean[] = []
  const proxy = tls.createServer({ cert: readFileSync(chain), key: readFileSync(key) }, (near) => {
    resumed.push(near.isSessionReused())
    const far = net.connect(Number(new URL(service.url).port), '127.0.0.1')
    near.on('error', () => undefined).pipe(far)
    far.on('error', () => undefined).pipe(near)
  })
  proxy.listen(0, '127.0.0.1')
  await once(proxy, 'listening')
  await using link = await startLink({ port: (proxy.address() as AddressInfo).port })
  await using agent = await startAgent(
    {
      url: `https://127.0.0.1:${link.port}`,
      tenant_id: sample.tenant,
      accept: () => Promise.resolve(),
    },
    { env: { HAWSER_CA_FILE: authority.file } },
  )
  // The call that enrolled it was the first; the tunnel already resumes its session.
  expect(resumed).toEqual([false, true])
  const back = agent.logged('tunnel.up')
  link.cut()
  await back
  expect(resumed).toEqual([false, true, true])
  proxy.close()
})

test('the server resumes sessions for a day', async () => {
  using where = folder()
  const authority = await makeAuthority(where)
  const { chain, key } = await authority.issue('server', 'IP:127.0.0.1')
  await using service = await startService({
    env: { HAWSER_URL: '', HAWSER_TLS_CERT: chain, HAWSER_TLS_KEY: key },
  })
  const port = service.tlsPort ?? 0
  const ca = readFileSync(authority.file)
  /** Connects, says hello, and gives whether the session was resumed, and the one for the next time. */
  async function connect(session?: Buffer): Promise<{ resumed: boolean; session: Buffer }> {
    const socket = tls.connect({ port, host: '127.0.0.1', ca, ...(session ? { session } : {}) })
    let next = session ?? Buffer.alloc(0)
    socket.on('session', (ticket: Buffer) => (next = ticket))
    await once(socket, 'secureConnect')
    const resumed = socket.isSessionReused()
    socket.end('GET /healthcheck HTTP/1.1\r\nhost: 127.0.0.1\r\nconnection: close\r\n\r\n').resume()
    await once(socket, 'close')
    return { resumed, session: next }
  }
  const first = await connect()
  expect(first.resumed).toBe(false)
  const second = await connect(first.session)
  expect(second.resumed).toBe(true)
  // The session that the client keeps has the ticket's lifetime in it, as a number in DER: 86,400 seconds.
  expect(second.session.includes(Buffer.from('0203015180', 'hex'))).toBe(true)
})
