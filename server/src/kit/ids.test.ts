// Identifiers: their shapes, that they do not repeat, and the device uid, which must be what the agents of
// existing fleets already have.
import { createHash } from 'node:crypto'
import { describe, expect, test } from 'vitest'
import { deviceUid, newBase32, newLegibleCode, newUid, newUserId, newUuid } from './ids.ts'

describe('the uid of a device', () => {
  const tenant_id = '00000000-0000-4000-0000-000000000000'
  const device = { mac: '00:00:5e:00:53:01', public_key: 'key', tenant_id }

  test('is the catalogued one with an identity', () => {
    expect(deviceUid(device)).toBe('b71dc12eb70e5c1371ffa81a41050569de6493dc6ccb23dec773b05ab4050541')
  })

  test('is the catalogued one without', () => {
    expect(deviceUid({ ...device, mac: undefined })).toBe(
      'e5ce10fc2dafb1b7c3e1638d664af693696e612a6a53e5e98f135933eedfe407',
    )
  })

  test('keeps the line breaks of the key, and escapes nothing', () => {
    const public_key = '-----BEGIN RSA PUBLIC KEY-----\nMIIB"\\/\n-----END RSA PUBLIC KEY-----\n'
    const text = `{Identity:{MAC:"aa"},PublicKey:"${public_key}",TenantID:"${tenant_id}"}`
    expect(deviceUid({ mac: 'aa', public_key, tenant_id })).toBe(
      createHash('sha256').update(text).digest('hex'),
    )
  })

  test('differs when the identity, the key or the namespace does', () => {
    const uids = [
      device,
      { ...device, mac: '00:00:5e:00:53:02' },
      { ...device, mac: device.mac.toUpperCase() },
      { ...device, mac: '' },
      { ...device, mac: undefined },
      { ...device, public_key: 'key\n' },
      { ...device, tenant_id: '00000000-0000-4000-0000-000000000001' },
    ].map(deviceUid)
    expect(new Set(uids).size).toBe(uids.length)
    for (const uid of uids) expect(uid).toMatch(/^[0-9a-f]{64}$/)
  })
})

describe('random identifiers', () => {
  test.each<[string, () => string, RegExp]>([
    ['a uuid', newUuid, /^[0-9a-f]{8}-[0-9a-f]{4}-4[0-9a-f]{3}-[89ab][0-9a-f]{3}-[0-9a-f]{12}$/],
    ['a user id', newUserId, /^[0-9a-f]{24}$/],
    ['a session uid', newUid, /^[0-9a-f]{64}$/],
    ['a secret of the second factor', () => newBase32(32), /^[A-Z2-7]{32}$/],
    ['a recovery code', () => newBase32(16), /^[A-Z2-7]{16}$/],
    ['a code to copy by hand', () => newLegibleCode(8), /^[2-9A-HJKMNP-Z]{8}$/],
  ])('%s has its shape and does not repeat', (_, make, shape) => {
    const made = Array.from({ length: 500 }, make)
    for (const id of made) expect(id).toMatch(shape)
    expect(new Set(made).size).toBe(made.length)
  })

  test('every letter of an alphabet is used, and none far more than another', () => {
    for (const [text, letters] of [
      [newBase32(64_000), 32],
      [newLegibleCode(62_000), 31],
    ] as const) {
      const counts = new Map<string, number>()
      for (const letter of text) counts.set(letter, (counts.get(letter) ?? 0) + 1)
      expect(counts.size).toBe(letters)
      // 2000 are expected of each; chance keeps within a tenth (more than four deviations), a folded alphabet
      // doubles one.
      for (const count of counts.values()) expect(Math.abs(count - 2000)).toBeLessThan(400)
    }
  })
})
