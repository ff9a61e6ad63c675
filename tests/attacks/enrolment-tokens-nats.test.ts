// One enrolment token, presented to two nodes at the same moment: it is counted in the database, so it lets
// in exactly as many devices as it may.
import { expect, test, vi } from 'vitest'
import { startCluster } from '../cluster/cluster.ts'

vi.setConfig({ testTimeout: 120_000 })

test('a token for one device lets in one, whichever of two nodes are asked at once', async () => {
  await using cluster = await startCluster(2)
  const [first, second] = cluster.nodes
  if (!first || !second) throw new Error('two nodes are needed')
  const owner = first.api({ token: await cluster.world.token('owner') })
  const made = (await owner.enrolmentTokens.create({ body: { name: 'single', accept: true } })).body
  const agent = (n: number) => ({
    info: {},
    hostname: `rogue-${n}`,
    identity: { mac: `02:66:00:00:00:${n.toString(16).padStart(2, '0')}` },
    public_key: `-----BEGIN RSA PUBLIC KEY-----\nrogue ${n}\n-----END RSA PUBLIC KEY-----\n`,
    enrolment_token: made.token,
  })
  const results = await Promise.allSettled(
    Array.from({ length: 16 }, (_, n) => (n % 2 ? first : second).api().devices.auth({ body: agent(n) })),
  )
  expect(results.filter(({ status }) => status === 'fulfilled')).toHaveLength(1)
  const devices = (await owner.devices.list({ query: { status: 'accepted', per_page: 100 } })).body
  expect(devices.filter(({ name }) => name.startsWith('rogue-'))).toHaveLength(1)
  const listed = (await owner.enrolmentTokens.list({ query: {} })).body
  expect(listed.find(({ id }) => id === made.id)).toMatchObject({ used: 1, most_devices: 1 })
})
