// The page about many cores as somebody follows it, with a real PostgreSQL and a NATS server of its own; then
// a device is reached through the one port, whichever node takes the connection.
import { afterAll, beforeAll, expect, test, vi } from 'vitest'
import { client, type Client } from '@hawser/contract/client'
import { makePerson, type Person } from '../../agent/test/person.ts'
import { folder, freePort, keygen, quietArgs, run } from '../../ssh/test/programs.ts'
import { isRoot } from '../clients/way.ts'
import { startAgent } from '../harness/agent.ts'
import { startNats, type Nats } from '../harness/nats.ts'
import { freshDatabase } from '../harness/postgres.ts'
import { blocksOf, isCommand } from './blocks.ts'
import { openReader, type Reader } from './reader.ts'

vi.setConfig({ testTimeout: 180_000, hookTimeout: 120_000 })

const page = 'docs/guides/many-cores.md'
const opened = new AsyncDisposableStack()
const [http, ssh, ...metrics] = await Promise.all(Array.from({ length: 4 }, freePort))
let database: string
let nats: Nats
let person: Person | undefined
let reader: Reader

function here(text: string): string {
  const names: readonly (readonly [string, string])[] = [
    ['postgres://hawser:rope-and-anchor@127.0.0.1/hawser', database],
    ['nats://127.0.0.1:4222', nats.url],
    ['8080', String(http)],
    ['2222', String(ssh)],
    ['9101', String(metrics[0])],
    ['9102', String(metrics[1])],
  ]
  return names.reduce((so_far, [name, value]) => so_far.replaceAll(name, value), text)
}

beforeAll(async () => {
  database = await freshDatabase()
  nats = opened.use(await startNats())
  person = isRoot ? opened.use(await makePerson()) : undefined
  reader = opened.use(openReader({ here, answer: () => undefined }))
})
afterAll(() => opened.disposeAsync())

test.each(blocksOf(page).filter((block) => isCommand(block) && block.how !== 'not-run'))(
  '$line: $text',
  async (block) => {
    await reader.follow(block)
  },
)

test('a device is reached on the one port, through both nodes', async () => {
  using where = folder()
  const url = `http://127.0.0.1:${http}`
  const owner = await signIn(url)
  const [namespace] = (await owner.namespaces.list({ query: {} })).body
  if (!namespace) throw new Error('the page made no namespace')
  await keygen(where, 'olga', '-t', 'ed25519')
  const data = Buffer.from(where.read('olga.pub')).toString('base64')
  await owner.publicKeys.create({ body: { data, name: 'olga', username: '.*', filter: { hostname: '.*' } } })
  await using agent = await startAgent({
    url,
    tenant_id: namespace.tenant_id,
    accept: (uid) => owner.devices.accept({ params: { uid } }),
  })
  const user = person?.name ?? process.env['USER'] ?? ''
  const settings = quietArgs(ssh ?? 0, `IdentityFile=${where.file('olga')}`, 'BatchMode=yes')
  const target = `${user}@${namespace.name}.${agent.name}@127.0.0.1`
  for (let turn = 0; (await logins()).includes(0); turn += 1) {
    expect(turn).toBeLessThan(40)
    const { status, stdout, stderr } = await run('ssh', [...settings, target, 'echo here'])
    expect([stdout.toString(), status, stderr]).toEqual(['here\n', 0, ''])
  }
})

async function signIn(url: string): Promise<Client> {
  const body = { username: 'olga', password: 'rope-and-anchor' }
  return client({ url, token: (await client({ url }).users.login({ body })).body.token })
}

/** How many logins each of the nodes has accepted. */
const logins = (): Promise<number[]> =>
  Promise.all(
    metrics.map(async (port) => {
      const text = await (await fetch(`http://127.0.0.1:${port}/metrics`)).text()
      const counts = [...text.matchAll(/^hawser_logins_total\{[^}]*result="accepted"[^}]*\} (\d+)$/gm)]
      return counts.reduce((sum, [, count]) => sum + Number(count), 0)
    }),
  )
