// Somebody creates many things at the same moment, and each request finds room for one more: a namespace then has more
// enrolment tokens, enrolment keys, connectors, audit streams or firewall rules than it may have, and a user more
// namespaces. On PostgreSQL several requests are under way at once; each counts while it alone may add.
import { generateKeyPairSync } from 'node:crypto'
import { expect, test } from 'vitest'
import { mostStreams } from '@hawser/contract/audit-streams'
import { mostEnrolmentKeys } from '@hawser/contract/enrolment-keys'
import { mostEnrolmentTokens } from '@hawser/contract/enrolment-tokens'
import { sample } from '@hawser/contract/examples'
import { statusesOf } from '../contract/people.ts'
import { sharedPlace } from '../harness/place.ts'
import { begunDatabase } from '../harness/service.ts'

const place = sharedPlace(async () => ({ database: await begunDatabase() }))
const mostConnectors = 100
const mostRules = 200
const mostNamespaces = 3
const room = 2
const atOnce = 12

function publicKey(): string {
  const jwk = generateKeyPairSync('ed25519').publicKey.export({ format: 'jwk' })
  const strings = [Buffer.from('ssh-ed25519'), Buffer.from(jwk.x ?? '', 'base64url')]
  const wire = strings.flatMap((bytes) => [Buffer.from([0, 0, 0, bytes.length]), bytes])
  return `ssh-ed25519 ${Buffer.concat(wire).toString('base64')}`
}

const kinds: readonly [string, number, (i: number) => Promise<{ status: number }>, () => Promise<number>][] =
  [
    [
      'enrolment tokens',
      mostEnrolmentTokens,
      (i) => place.owner.enrolmentTokens.create({ body: { name: `token-${i}` } }),
      async () => (await place.owner.enrolmentTokens.list({ query: { per_page: 1 } })).total ?? 0,
    ],
    [
      'enrolment keys',
      mostEnrolmentKeys,
      (i) => place.owner.enrolmentKeys.create({ body: { name: `key-${i}`, public_key: publicKey() } }),
      async () => (await place.owner.enrolmentKeys.list({ query: { per_page: 1 } })).total ?? 0,
    ],
    [
      'connectors',
      mostConnectors,
      (i) =>
        place.owner.connectors.create({
          body: { enable: false, address: `engine-${i}.example.com`, port: 2375, secure: false },
        }),
      async () => (await place.owner.connectors.list({ query: { per_page: 1 } })).total ?? 0,
    ],
    [
      'audit streams',
      mostStreams,
      (i) =>
        place.owner.auditStreams.create({
          body: { name: `stream-${i}`, url: 'https://siem.example.com/hawser', enable: false },
        }),
      async () => (await place.owner.auditStreams.list({ query: { per_page: 1 } })).total ?? 0,
    ],
    [
      'firewall rules',
      mostRules,
      (i) =>
        place.owner.firewall.create({
          body: {
            priority: i + 1,
            action: 'allow',
            active: true,
            source_ip: '^192',
            username: 'root',
            filter: { hostname: 'crane' },
          },
        }),
      async () => (await place.owner.firewall.list({ query: { per_page: 1 } })).total ?? 0,
    ],
    [
      'namespaces of a user',
      mostNamespaces,
      (i) => place.stranger.namespaces.create({ body: { name: `harbour-${i}` } }),
      async () => (await place.rooms.stores.namespaces.ownedBy(sample.stranger.id, 1_000)).length,
    ],
  ]

test.each(kinds)('there are never more %s than allowed', async (_, most, create, count) => {
  await place.rooms.stores.users.save(sample.stranger.id, { max_namespaces: mostNamespaces })
  let made = 0
  while ((await count()) < most - room) {
    const missing = Math.min(atOnce, most - room - (await count()))
    await Promise.all(Array.from({ length: missing }, () => create(made++)))
  }
  const free = most - (await count())
  const outcomes = await statusesOf(Array.from({ length: atOnce }, () => create(made++)))
  expect(await count()).toBe(most)
  expect(outcomes.filter((status) => status === 200 || status === 201)).toHaveLength(free)
  expect(outcomes.filter((status) => status === 403)).toHaveLength(atOnce - free)
})
