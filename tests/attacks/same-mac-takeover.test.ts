// A newcomer that says it has the MAC address of another device. The MAC is a text that an agent chooses, so
// accepting the newcomer must not take an accepted device away from whoever holds it: while that one is
// connected accepting is refused, and when it is not, whoever accepts is told before and afterwards whom the
// newcomer replaces.
import { generateKeyPairSync } from 'node:crypto'
import { afterAll, beforeAll, describe, expect, test } from 'vitest'
import { sample } from '@hawser/contract/examples'
import { openDesk, type Desk } from '../../cli/test/program.ts'
import { eventually } from '../harness/eventually.ts'
import { startOldAgent } from '../harness/old-agent.ts'
import { sharedPlace, startPlace } from '../harness/place.ts'

const newKey = () => generateKeyPairSync('rsa', { modulusLength: 2048 }).privateKey
const live = 'crane has the same MAC address and is connected; accepting this device would replace it.'

describe('while the other one is connected', () => {
  const place = sharedPlace()
  const statusOf = async (uid: string) => (await place.owner.devices.get({ params: { uid } })).body

  test.each([1, 2] as const)(
    'accepting is refused by every way there is, and names it: tunnel version %i',
    async (version) => {
      await using victim = await startOldAgent(place, {
        version,
        tenant_id: sample.tenant,
        hostname: `crane-v${version}`,
        key: newKey(),
      })
      await place.owner.devices.accept({ params: { uid: victim.uid } })
      await place.owner.devices.setTags({ params: { uid: victim.uid }, body: { tags: ['pier'] } })
      // The same host name gives the same MAC in this harness; the key is the newcomer's own.
      await using thief = await startOldAgent(place, {
        version,
        tenant_id: sample.tenant,
        hostname: `crane-v${version}`,
        key: newKey(),
      })
      expect(thief.uid).not.toBe(victim.uid)
      const refused = {
        status: 409,
        message: expect.stringContaining(live.replace('crane', `crane-v${version}`)) as string,
      }
      await expect(place.owner.devices.accept({ params: { uid: thief.uid } })).rejects.toMatchObject(refused)
      const old = place.owner.devices.setStatus({ params: { uid: thief.uid, status: 'accept' } })
      await expect(old).rejects.toMatchObject(refused)
      expect(await statusOf(victim.uid)).toMatchObject({
        status: 'accepted',
        name: `crane-v${version}`,
        tags: ['pier'],
      })
      expect(await statusOf(thief.uid)).toMatchObject({
        status: 'pending',
        replaces: { uid: victim.uid, name: `crane-v${version}` },
      })
    },
  )

  test('a victim that was merely called offline, with a token that anyone can get, still is connected', async () => {
    await using victim = await startOldAgent(place, {
      version: 2,
      tenant_id: sample.tenant,
      hostname: 'derrick',
      key: newKey(),
    })
    await place.owner.devices.accept({ params: { uid: victim.uid } })
    await using thief = await startOldAgent(place, {
      version: 2,
      tenant_id: sample.tenant,
      hostname: 'derrick',
      key: newKey(),
    })
    await place.api({ token: victim.token }).devices.offline({ params: { uid: victim.uid } })
    expect((await statusOf(victim.uid)).online).toBe(false)
    await expect(place.owner.devices.accept({ params: { uid: thief.uid } })).rejects.toMatchObject({
      status: 409,
    })
    victim.cut()
    await victim.lost
    await eventually(() => place.owner.devices.accept({ params: { uid: thief.uid } }))
    expect(await statusOf(thief.uid)).toMatchObject({ status: 'accepted', name: 'derrick' })
  })
})

describe('when the other one is not connected', () => {
  const place = sharedPlace()

  test('the pending list, the answer and the log say whom it replaces', async () => {
    const old = await place.enrol({ mac: 'aa:bb', hostname: 'winch' })
    await place.owner.devices.accept({ params: { uid: old.uid } })
    const next = await place.enrol({ mac: 'aa:bb', hostname: 'fresh' })
    const other = await place.enrol({ mac: 'aa:cc', hostname: 'other' })
    const pending = (await place.observer.devices.list({ query: { status: 'pending', per_page: 100 } })).body
    const shown = (uid: string) => pending.find((device) => device.uid === uid)
    expect(shown(next.uid)).toMatchObject({ name: 'fresh', replaces: { uid: old.uid, name: 'winch' } })
    expect(shown(other.uid)).not.toHaveProperty('replaces')

    const { headers } = await place.operator.devices.accept({ params: { uid: next.uid } })
    expect(headers.get('x-replaced-device')).toBe('winch')
    expect(
      (await place.operator.devices.accept({ params: { uid: other.uid } })).headers.has('x-replaced-device'),
    ).toBe(false)
    const line = place
      .log()
      .split('\n')
      .find((text) => text.includes('"event":"device.replaced"'))
    expect(JSON.parse(line ?? '{}')).toMatchObject({
      level: 'warn',
      device: next.uid,
      replaced: old.uid,
      name: 'winch',
      before: 'fresh',
      tenant: sample.tenant,
      by: sample.operator.username,
    })
    expect((await place.observer.devices.get({ params: { uid: next.uid } })).body).not.toHaveProperty(
      'replaces',
    )
  })
})

describe('hawser devices accept', () => {
  let place: Awaited<ReturnType<typeof startPlace>>
  let desk: Desk
  beforeAll(async () => {
    place = await startPlace()
    desk = openDesk({ HAWSER_SERVER: place.url, HAWSER_API_KEY: sample.apiKey })
  })
  afterAll(async () => {
    desk[Symbol.dispose]()
    await place[Symbol.asyncDispose]()
  })
  const statusOf = async (uid: string) => (await place.owner.devices.get({ params: { uid } })).body.status

  test('--all leaves those alone that would replace a device or share a MAC, and says so; a name accepts one', async () => {
    await place.owner.devices.accept({ params: { uid: sample.pendingDevice } })
    const old = await place.enrol({ mac: 'ff:01', hostname: 'winch' })
    await place.owner.devices.accept({ params: { uid: old.uid } })
    const anew = await place.enrol({ mac: 'ff:01', hostname: 'anew' })
    const host = [1, 2, 3].map((number) => place.enrol({ mac: 'ff:02', hostname: `agent-${number}` }))
    const agents = await Promise.all(host)
    const plain = await place.enrol({ mac: 'ff:03', hostname: 'plain' })

    const all = await desk.hawser(['devices', 'accept', '--all'])
    expect(all.code).toBe(1)
    expect(all.stderr.trim().split('\n').toSorted()).toEqual([
      expect.stringMatching(
        /^agent-1: not accepted: agent-2 and agent-3 report the same MAC address \(ff:02\)/,
      ),
      expect.stringMatching(/^agent-2: not accepted: agent-1 and agent-3 report/),
      expect.stringMatching(/^agent-3: not accepted: agent-1 and agent-2 report/),
      expect.stringMatching(/^anew: not accepted: it would replace winch/),
      'plain: accepted',
    ])
    expect(await Promise.all([old, anew, ...agents, plain].map(({ uid }) => statusOf(uid)))).toEqual([
      'accepted',
      'pending',
      'pending',
      'pending',
      'pending',
      'accepted',
    ])

    const named = await desk.hawser(['devices', 'accept', 'anew'])
    expect(named).toMatchObject({
      code: 0,
      stderr: 'anew: accepted; it replaced winch and now has its name, tags and sessions\n',
    })
    const both = await desk.hawser(['devices', 'accept', 'agent-1', 'agent-2'])
    expect(both.code).toBe(1)
    expect(await statusOf(agents[0]!.uid)).toBe('pending')
    expect(await desk.hawser(['devices', 'accept', 'agent-1'])).toMatchObject({
      code: 0,
      stderr: 'agent-1: accepted\n',
    })
  })
})
