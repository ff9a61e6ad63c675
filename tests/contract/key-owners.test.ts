// Whose key a public key is: chosen by an administrator among the members, by id or by user name, changed and
// taken away again, and gone with the membership. Nobody outside the namespace can be named.
import { randomBytes } from 'node:crypto'
import { describe, expect, test } from 'vitest'
import { sample } from '@hawser/contract/examples'
import { sharedPlace, type Place } from '../harness/place.ts'
import { oneDatabase } from '../harness/tier.ts'

/** A key that no test has used before. */
function newKey(): string {
  const type = Buffer.from('ssh-ed25519')
  const length = (bytes: Buffer): Buffer => {
    const head = Buffer.alloc(4)
    head.writeUInt32BE(bytes.length)
    return Buffer.concat([head, bytes])
  }
  const blob = Buffer.concat([length(type), length(randomBytes(32))])
  return Buffer.from(`ssh-ed25519 ${blob.toString('base64')}`).toString('base64')
}

const wanted = (more: object = {}) => ({
  data: newKey(),
  filter: { hostname: '.*' },
  name: 'laptop',
  username: '.*',
  ...more,
})
const create = (place: Place, more: object = {}) =>
  place.administrator.publicKeys.create({ body: wanted(more) }).then(({ body }) => body)
const listed = async (place: Place, fingerprint: string) =>
  (await place.observer.publicKeys.list({ query: { per_page: 100 } })).body.find(
    (key) => key.fingerprint === fingerprint,
  )

describe.each(oneDatabase)('on %s', (_, options) => {
  const place = sharedPlace(options)

  test('a key belongs to nobody unless somebody is named, by id or by user name', async () => {
    const { operator } = sample
    expect(await create(place)).toMatchObject({ owner: '', owner_name: '' })
    expect(await create(place, { owner: '' })).toMatchObject({ owner: '', owner_name: '' })
    const his = { owner: operator.id, owner_name: operator.username }
    for (const owner of [operator.id, operator.username, operator.username.toUpperCase()]) {
      const made = await create(place, { owner })
      expect(made).toMatchObject(his)
      expect(await listed(place, made.fingerprint)).toMatchObject(his)
    }
  })

  test('a change of a key keeps its owner, names another one or none', async () => {
    const { fingerprint } = await create(place, { owner: sample.operator.username })
    const body = { name: 'desk', username: '.*', filter: { hostname: '.*' } }
    const change = async (more: object) =>
      (await place.administrator.publicKeys.update({ params: { fingerprint }, body: { ...body, ...more } }))
        .body
    expect(await change({})).toMatchObject({ name: 'desk', owner: sample.operator.id })
    expect(await change({ owner: sample.observer.id })).toMatchObject({ owner_name: 'vera' })
    expect(await change({ owner: '' })).toMatchObject({ owner: '', owner_name: '' })
    expect(await listed(place, fingerprint)).toMatchObject({ owner: '', owner_name: '' })
  })

  test.each([
    ['a member of another namespace', sample.stranger.id],
    ['the same by name', sample.stranger.username],
    ['somebody who does not exist', 'f'.repeat(24)],
    ['an e-mail address', sample.operator.email],
  ])('%s cannot be the owner, and each of them is refused in the same words', async (_who, owner) => {
    const refusal = { status: 400, message: 'owner: no member has this id or user name' }
    await expect(create(place, { owner })).rejects.toMatchObject(refusal)
  })

  test('an authority has no owner: its certificates name the people', async () => {
    await expect(create(place, { owner: 'oskar', certificate_authority: true })).rejects.toMatchObject({
      status: 400,
    })
    const { fingerprint } = await create(place, { owner: 'oskar' })
    const body = { name: 'a', username: '.*', filter: { hostname: '.*' }, certificate_authority: true }
    await expect(
      place.administrator.publicKeys.update({ params: { fingerprint }, body }),
    ).rejects.toMatchObject({ status: 400 })
  })

  test('only administrators name owners, also of their own keys', async () => {
    for (const client of [place.operator, place.observer, place.stranger])
      await expect(client.publicKeys.create({ body: wanted({ owner: 'oskar' }) })).rejects.toSatisfy(
        ({ status }: { status: number }) => status === 403 || status === 400,
      )
  })

  test('who leaves takes their keys along, and nobody else’s', async () => {
    const { careful } = sample
    const hers = await create(place, { owner: careful.username })
    const his = await create(place, { owner: 'oskar' })
    await place.owner.namespaces.removeMember({ params: { tenant: sample.tenant, uid: careful.id } })
    expect(await listed(place, hers.fingerprint)).toBeUndefined()
    expect(await listed(place, his.fingerprint)).toBeDefined()
  })
})
