// Pairing: an agent asks and gets a code; a member who may accept devices sees what asks, and takes it in or
// refuses it; the agent learns the outcome with its own secret. A code works once and for 15 minutes.
import { generateKeyPairSync } from 'node:crypto'
import { sql } from 'kysely'
import { describe, expect, test } from 'vitest'
import { sample } from '@hawser/contract/examples'
import { blobOf, fingerprintSha256 } from '@hawser/ssh'
import { minute_ms } from '../../server/src/kit/clock.ts'
import { bothDatabases, sharedPlace, startPlace, type Place } from '../harness/place.ts'

const { publicKey } = generateKeyPairSync('rsa', { modulusLength: 2048 })
const public_key = publicKey.export({ type: 'pkcs1', format: 'pem' })
let asked = 0

/** Asks for a pairing as an agent does; every call is about another device. */
async function ask(place: Place, change: { hostname?: string; mac?: string } = {}) {
  asked += 1
  const body = {
    info: {
      id: 'debian',
      pretty_name: 'Debian GNU/Linux 12',
      arch: 'arm64',
      platform: 'native',
      version: 'v1',
    },
    hostname: change.hostname ?? `pi-${asked}`,
    identity: { mac: change.mac ?? `02:77:00:00:00:${asked.toString(16).padStart(2, '0')}` },
    public_key,
  }
  return { body, ...(await place.nobody.pairings.create({ body })).body }
}
const outcome = async (place: Place, secret: string) =>
  (await place.nobody.pairings.outcome({ body: { secret } })).body
const gone = { status: 404, message: 'This code is wrong, already used or expired.' }

describe.each(bothDatabases)('on %s', (_, options) => {
  const place = sharedPlace(options)

  test('a device that a member confirms is an accepted device of the namespace, and its agent goes on', async () => {
    const { body, code, url, secret } = await ask(place, { hostname: 'Pi.Kitchen' })
    expect(code).toMatch(/^[2-9A-HJKMNP-Z]{4}-[2-9A-HJKMNP-Z]{4}$/)
    expect(url).toBe(`http://hawser.test/pair?code=${code}`)
    expect(await outcome(place, secret)).toEqual({ status: 'waiting' })
    const { body: shown } = await place.operator.pairings.get({ query: { code } })
    expect(shown).toEqual({
      hostname: 'Pi.Kitchen',
      mac: body.identity.mac,
      info: body.info,
      remote_addr: '127.0.0.1',
      fingerprint: fingerprintSha256(blobOf(publicKey)),
      created_at: expect.stringMatching(/Z$/) as string,
      expires_at: expect.stringMatching(/Z$/) as string,
    })
    // However it is typed.
    const typed = ` ${code.toLowerCase().replace('-', ' ')}`
    const { body: confirmed } = await place.operator.pairings.confirm({
      body: { code: typed, tags: ['home'] },
    })
    expect(confirmed).toMatchObject({ name: 'pi-kitchen', namespace: sample.namespace })
    expect(await outcome(place, secret)).toEqual({
      status: 'confirmed',
      tenant_id: sample.tenant,
      namespace: sample.namespace,
      confirmed_by: sample.operator.username,
    })
    const enrolled = await place.nobody.devices.auth({ body: { ...body, tenant_id: sample.tenant } })
    expect(enrolled.body).toMatchObject({ uid: confirmed.uid, name: 'pi-kitchen' })
    const device = (await place.observer.devices.get({ params: { uid: confirmed.uid } })).body
    expect(device).toMatchObject({
      status: 'accepted',
      tags: ['home'],
      enrolled_with: { kind: 'pairing', name: sample.operator.username },
    })
    // The code is used up.
    await expect(place.operator.pairings.get({ query: { code } })).rejects.toMatchObject(gone)
    await expect(place.stranger.pairings.confirm({ body: { code } })).rejects.toMatchObject(gone)
    expect(place.log()).toMatch(/"event":"device.paired".*"by":"oskar"/)
  })

  test('of several who confirm at once, in two namespaces, one gets the device', async () => {
    const { code, secret, body } = await ask(place)
    const results = await Promise.allSettled(
      [place.operator, place.stranger, place.owner, place.administrator].map((who) =>
        who.pairings.confirm({ body: { code } }),
      ),
    )
    expect(results.filter(({ status }) => status === 'fulfilled')).toHaveLength(1)
    const { tenant_id } = await outcome(place, secret)
    for (const [who, tenant] of [
      [place.observer, sample.tenant],
      [place.stranger, sample.otherTenant],
    ] as const) {
      const { body: devices } = await who.devices.list({ query: { per_page: 100 } })
      expect(devices.some(({ identity }) => identity.mac === body.identity.mac)).toBe(tenant === tenant_id)
    }
  })

  test('a name that is taken is refused, nothing is left behind, and another name helps', async () => {
    await place.accepted('berth')
    const { code, secret } = await ask(place)
    const before = (await place.owner.audit.list({ query: { limit: 1 } })).body.entries
    await expect(place.operator.pairings.confirm({ body: { code, name: 'Berth' } })).rejects.toMatchObject({
      status: 409,
    })
    expect(await outcome(place, secret)).toEqual({ status: 'waiting' })
    expect((await place.owner.audit.list({ query: { limit: 1 } })).body.entries).toEqual(before)
    const { body: pending } = await place.observer.devices.list({
      query: { status: 'pending', per_page: 100 },
    })
    expect(pending.some(({ name }) => name === 'berth')).toBe(false)
    const { body } = await place.operator.pairings.confirm({ body: { code, name: 'berth-2' } })
    expect(body.name).toBe('berth-2')
  })

  test('a device that waits already keeps its name and tags when its code cannot be confirmed', async () => {
    await place.accepted('mole')
    const { body: asks, code, secret } = await ask(place, { hostname: 'quay' })
    const { uid } = (await place.nobody.devices.auth({ body: { ...asks, tenant_id: sample.tenant } })).body
    const device = async () => (await place.observer.devices.get({ params: { uid } })).body
    const confirm = (name: string) =>
      place.operator.pairings.confirm({ body: { code, name, tags: ['pier'] } })
    await expect(confirm('mole')).rejects.toMatchObject({ status: 409 })
    expect(await outcome(place, secret)).toEqual({ status: 'waiting' })
    expect(await device()).toMatchObject({ name: 'quay', tags: [], status: 'pending' })
    await confirm('mole-2')
    expect(await device()).toMatchObject({ name: 'mole-2', tags: ['pier'], status: 'accepted' })
  })
})

describe('a code', () => {
  const place = sharedPlace()

  test('that was refused is over, for the agent too', async () => {
    const { code, secret } = await ask(place)
    await place.operator.pairings.refuse({ body: { code } })
    expect(await outcome(place, secret)).toEqual({ status: 'refused' })
    await expect(place.operator.pairings.confirm({ body: { code } })).rejects.toMatchObject(gone)
  })

  test.each([
    ['marking the code as used', 'update on pairings'],
    ['storing the device', 'insert on devices'],
    ['accepting the device', 'update of status on devices'],
    ['writing the audit log', 'insert on audit_entries'],
  ])('stays good, and leaves nothing behind, when %s fails in its confirmation', async (_, step) => {
    await using failing = await startPlace()
    const { db } = failing.rooms.database
    const { code, secret, body } = await ask(failing, { hostname: 'sluice' })
    const state = async () => ({
      devices: (await failing.owner.devices.list({ query: { per_page: 100 } })).body,
      entries: (await failing.owner.audit.list({ query: { limit: 1 } })).body.entries,
      outcome: await outcome(failing, secret),
    })
    const before = await state()
    const fails = sql`begin select raise(abort, 'the process is gone'); end`
    await sql`create trigger fails before ${sql.raw(step)} ${fails}`.execute(db)
    await expect(failing.operator.pairings.confirm({ body: { code } })).rejects.toMatchObject({ status: 500 })
    await sql`drop trigger fails`.execute(db)
    expect(await state()).toEqual(before)
    expect(before.outcome).toEqual({ status: 'waiting' })
    expect((await failing.operator.pairings.confirm({ body: { code } })).body.name).toBe('sluice')
    const { devices } = await state()
    expect(devices.filter(({ identity }) => identity.mac === body.identity.mac)).toMatchObject([
      { name: 'sluice', status: 'accepted' },
    ])
  })

  test('expires after 15 minutes, and a confirmation can still be learnt of for as long', async () => {
    await using later = await startPlace()
    const [late, timely] = [await ask(later), await ask(later)]
    later.clock.forward(14 * minute_ms)
    await later.operator.pairings.confirm({ body: { code: timely.code } })
    later.clock.forward(2 * minute_ms)
    await expect(later.operator.pairings.confirm({ body: { code: late.code } })).rejects.toMatchObject(gone)
    await expect(outcome(later, late.secret)).rejects.toMatchObject({ status: 401, kind: 'wrongToken' })
    expect(await outcome(later, timely.secret)).toMatchObject({ status: 'confirmed' })
  })

  test('for a machine that replaces an accepted one says so, and is refused while that one could be connected', async () => {
    const mac = '02:77:aa:00:00:01'
    await place.owner.devices.accept({ params: { uid: (await place.enrol({ hostname: 'old', mac })).uid } })
    const { code } = await ask(place, { mac, hostname: 'new' })
    const { body, headers } = await place.operator.pairings.confirm({ body: { code } })
    expect(headers.get('x-replaced-device')).toBe('old')
    expect(body.name).toBe('old')
  })

  test.each([
    ['a text', 'rope'],
    ['a private key', generateKeyPairSync('ed25519').privateKey.export({ type: 'pkcs8', format: 'pem' })],
  ])('is not to be had for %s instead of a public key', async (_, wrong) => {
    await expect(
      place.nobody.pairings.create({ body: { info: {}, hostname: 'x', public_key: wrong } }),
    ).rejects.toMatchObject({ status: 400 })
  })
})
