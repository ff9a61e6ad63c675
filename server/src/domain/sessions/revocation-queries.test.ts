// How many questions a check of all open sessions asks the database: as many as there are people and
// namespaces. A real database; the stores count their calls.
import type { SessionPerson } from '@hawser/contract/sessions'
import { expect, test } from 'vitest'
import {
  databases,
  device,
  namespace,
  openFresh,
  publicKey,
  session,
  unique,
} from '../../../../tests/storage/databases.ts'
import type { Bus } from '../../bus/bus.ts'
import { localBus } from '../../bus/local.ts'
import { lifetime } from '../../kit/lifetime.ts'
import { fingerprintSha256 } from '../access/public-keys.ts'
import { reasons, revocation, type SessionLogin, type OpenSession } from './revocation.ts'

/** The same stores, which count the calls of their methods. */
function counting<T extends object>(whole: T, calls: string[], path = ''): T {
  return new Proxy(whole, {
    get(target, name) {
      const found = Reflect.get(target, name) as unknown
      const here = `${path}.${String(name)}`
      if (typeof found === 'object' && found !== null) return counting(found, calls, here)
      if (typeof found !== 'function') return found
      return (...about: unknown[]): unknown => {
        const answer = Reflect.apply(found, target, about) as unknown
        if (name === 'of') return counting(answer as object, calls, here)
        calls.push(here)
        return answer
      }
    },
  })
}

test('a check of all sessions asks once for each person and namespace, however many sessions there are', async () => {
  await using storage = await openFresh(databases[0]!)
  const { stores } = storage
  const { tenant_id, here } = await namespace(storage)
  const { owner } = (await stores.namespaces.find(tenant_id))!
  const devices = Array.from({ length: 5 }, () => device({ status: 'accepted' }))
  for (const row of devices) await here.devices.insert(row)
  const at = new Date().toISOString()
  await here.apiKeys.insert({
    name: 'nightly',
    hash: unique('hash'),
    role: 'operator',
    created_by: owner,
    expires_in: -1,
    created_at: at,
    updated_at: at,
  })
  const [line, fingerprint] = ['ssh-ed25519 AAAA', unique('fingerprint')]
  const data = Buffer.from(line).toString('base64')
  await here.publicKeys.insert(publicKey(fingerprint, { data }))
  const people: SessionPerson[] = [
    { kind: 'user', id: owner, name: owner },
    { kind: 'api-key', id: 'nightly', name: 'nightly' },
  ]
  const ended: unknown[] = []
  const calls: string[] = []
  const sessions = new Map<string, OpenSession>()
  let missed = (): void => undefined
  const bus: Bus = { ...localBus(), missed: (hearer) => ((missed = hearer), { [Symbol.dispose]() {} }) }
  const background = lifetime((_, error) => void ended.push(error))
  const asked = { open: 0 }
  using rules = revocation({
    bus,
    stores: counting(stores, calls),
    clock: { now: () => Date.now() },
    later: background.later,
    sweepRecordings: async () => undefined,
    stopsRecordings: async () => false,
  })
  using _ = rules.apply({
    sessions,
    tunnels: {
      all: () => devices.map(({ uid }) => ({ device: { uid, tenant_id } })),
      drop: () => undefined,
      hangUp: () => undefined,
      yield: () => undefined,
    },
    joined: { removed: () => undefined, recheck: async () => undefined },
    connectors: {
      deviceChanged: () => undefined,
      changed: () => undefined,
      namespaceRemoved: () => undefined,
    },
    recheckPeople: async () => void (asked.open += 1),
  })
  async function open(count: number): Promise<void> {
    for (let at = sessions.size; at < count; at += 1) {
      const row = session(devices[at % devices.length]!.uid, { active: 1 })
      await here.sessions.insert(row)
      const person = people[at % people.length]!
      const { device_uid } = row
      const login = { device_uid, username: 'root', via: 'cli', shown: fingerprintSha256(line) } as const
      const held: SessionLogin = { ...login, tenant_id, person, key: fingerprint, restored: row.uid }
      sessions.set(row.uid, {
        uid: row.uid,
        tenant_id,
        device_uid: row.device_uid,
        person,
        end: (why) => void ended.push([row.uid, why]),
        record: () => undefined,
        restrict: () => undefined,
        ...(at % 3 === 0 ? { heldFor: () => held } : {}),
      })
    }
  }
  async function check(): Promise<string[]> {
    calls.length = 0
    missed()
    await background.settled()
    return calls.toSorted()
  }
  await open(10)
  const few = await check()
  await open(200)
  expect(await check()).toEqual(few)
  expect(few.length).toBeLessThan(10)
  expect(ended).toEqual([])
  expect(asked.open).toBe(2)

  // Each of them is still judged by itself.
  const [first, ...others] = [...sessions.keys()]
  await here.sessions.save(first!, { active: 0, node: 'n' })
  await check()
  expect(ended).toEqual([
    [first, reasons.notHeld],
    [first, reasons.closed],
  ])
  await here.apiKeys.remove('nightly')
  await check()
  const noKey = ended.filter((one) => Array.isArray(one) && one[1] === reasons.noKey)
  expect(noKey).toHaveLength(others.length / 2 + 0.5)
})
