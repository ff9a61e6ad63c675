// A stranger’s device says what turns the direction of a line: behind it, the address that the server has seen
// would be shown backwards, and the next fact before it. Whoever accepts the device would read what it likes.
import { generateKeyPairSync } from 'node:crypto'
import { expect, test } from 'vitest'
import { sample } from '@hawser/contract/examples'
import { startPlace } from '../harness/place.ts'

const turns = '\u061c\u200e\u200f\u202a\u202b\u202c\u202d\u202e\u2066\u2067\u2068\u2069'
const fact = (name: string): string => `${name} \u202e${turns}\u001b[2J\u2028evil`
const info = {
  id: fact('debian'),
  pretty_name: fact('Debian'),
  version: fact('hawser-1'),
  arch: fact('amd64'),
  platform: fact('native'),
}
const pem = () => generateKeyPairSync('ed25519').publicKey.export({ type: 'spki', format: 'pem' })
const rogue = /[\p{Cc}\p{Bidi_Control}\p{Zl}\p{Zp}]/u
const clean = (name: string): unknown => expect.stringMatching(new RegExp(`^${name} [?]+\\[2J[?]evil$`))
const cleanInfo = {
  id: clean('debian'),
  pretty_name: clean('Debian'),
  version: clean('hawser-1'),
  arch: clean('amd64'),
  platform: clean('native'),
}

test('what a device says of itself is kept without marks that turn a line', async () => {
  await using place = await startPlace()
  const agent = { ability: 'self', failed: { build: 'a'.repeat(16), reason: fact('full disk') } } as const
  const body = { info, identity: { mac: fact('02') }, public_key: pem(), tenant_id: sample.tenant, agent }
  const { uid } = (await place.nobody.devices.auth({ body })).body
  // Nothing is new at the second call, which is answered from memory.
  await place.nobody.devices.auth({ body })
  const { body: device } = await place.operator.devices.get({ params: { uid } })
  expect(device).toMatchObject({ info: cleanInfo, identity: { mac: clean('02') } })
  expect(JSON.stringify(device)).not.toMatch(rogue)
})

test('what a device says when it asks to be paired is shown without them, and so it is when it is in', async () => {
  await using place = await startPlace()
  const body = { info, hostname: 'pi', identity: { mac: fact('02') }, public_key: pem() }
  const { code } = (await place.nobody.pairings.create({ body })).body
  const { body: asks } = await place.operator.pairings.get({ query: { code } })
  expect(asks).toMatchObject({ info: cleanInfo, mac: clean('02') })
  const { uid } = (await place.operator.pairings.confirm({ body: { code } })).body
  const { body: device } = await place.operator.devices.get({ params: { uid } })
  expect(device).toMatchObject({ info: cleanInfo, identity: { mac: clean('02') } })
  // It is still the device that its own words name.
  const again = { ...body, tenant_id: sample.tenant }
  expect((await place.nobody.devices.auth({ body: again })).body).toMatchObject({ uid, status: 'accepted' })
})
