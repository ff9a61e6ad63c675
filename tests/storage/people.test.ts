// Storage of people, the same on both databases: users with their codes and drafts, one-time tokens, wrong
// attempts, namespaces and members, what the gate asks on every request, announcements and signing keys.
import { afterAll, beforeAll, describe, expect, test } from 'vitest'
import type { Stores } from '../../server/src/storage/stores.ts'
import {
  apiKey,
  databases,
  earlier,
  later,
  namespace,
  now,
  openFresh,
  page,
  refusal,
  unique,
  user,
  type Storage,
} from './databases.ts'

describe.each(databases)('$name', (database) => {
  let storage: Storage
  let stores: Stores
  beforeAll(async () => {
    storage = await openFresh(database)
    stores = storage.stores
  })
  afterAll(() => storage[Symbol.asyncDispose]())

  test('before the first user there is none', async () => {
    await using empty = await openFresh(database)
    expect(await empty.stores.users.anyFounder()).toBe(false)
    await empty.stores.users.insert(user({ registered: 1 }))
    expect(await empty.stores.users.anyFounder()).toBe(false)
    await empty.stores.users.insert(user())
    expect(await empty.stores.users.anyFounder()).toBe(true)
  })

  test('a user comes back as it was inserted, by id, by username and by e-mail', async () => {
    const row = user({
      recovery_email: 'other@example.com',
      mfa_secret: 'sealed',
      mfa_step: 57_000_000,
      last_login_at: now,
    })
    await stores.users.insert(row)
    expect(await stores.users.find(row.id)).toEqual(row)
    expect(await stores.users.findByIdentifier(row.username)).toEqual(row)
    expect(await stores.users.findByIdentifier(row.email)).toEqual(row)
    expect(await stores.users.find('nobody')).toBeUndefined()
    expect(await stores.users.findByIdentifier('nobody')).toBeUndefined()
  })

  test('a username that is another’s e-mail is the e-mail, if that one is confirmed', async () => {
    const one = user()
    const other = user({ username: one.email })
    await stores.users.insert(one)
    await stores.users.insert(other)
    expect((await stores.users.findByIdentifier(one.email))?.id).toBe(one.id)
    for (const change of [{ confirmed: 0 as const }, { former_email: 'before@example.com' }]) {
      await stores.users.save(one.id, { confirmed: 1, former_email: null, ...change })
      expect((await stores.users.findByIdentifier(one.email))?.id).toBe(other.id)
    }
    await stores.users.save(one.id, { former_email: null })
  })

  test('a confirmed e-mail is the former one while another waits, and none of an account that waits itself', async () => {
    const row = user({ former_email: 'confirmed@example.com' })
    await stores.users.insert(row)
    const found = async (email: string) => (await stores.users.findByConfirmedEmail(email))?.id
    expect([await found('confirmed@example.com'), await found(row.email)]).toEqual([row.id, undefined])
    await stores.users.save(row.id, { former_email: null })
    expect([await found('confirmed@example.com'), await found(row.email)]).toEqual([undefined, row.id])
    await stores.users.save(row.id, { confirmed: 0 })
    expect(await found(row.email)).toBeUndefined()
    expect(await found(row.username)).toBeUndefined()
    expect((await stores.users.findByUsername(row.username))?.id).toBe(row.id)
  })

  test('saving a user changes the named columns of that user alone', async () => {
    const [one, other] = [user(), user()]
    await stores.users.insert(one)
    await stores.users.insert(other)
    await stores.users.save(one.id, { name: 'New', preferred_tenant: 'here' })
    expect(await stores.users.find(one.id)).toEqual({ ...one, name: 'New', preferred_tenant: 'here' })
    expect(await stores.users.find(other.id)).toEqual(other)
  })

  test('a new password raises the epoch of that user alone, and remembers a token to keep if there is one', async () => {
    const [one, other] = [user({ epoch: 7 }), user()]
    await stores.users.insert(one)
    await stores.users.insert(other)
    await stores.users.savePassword(one.id, 'new hash')
    expect(await stores.users.find(one.id)).toEqual({ ...one, password: 'new hash', epoch: 8 })
    await stores.users.savePassword(one.id, 'newer hash', 'kept')
    expect(await stores.users.find(one.id)).toEqual({
      ...one,
      password: 'newer hash',
      epoch: 9,
      kept_token: 'kept',
    })
    await stores.users.savePassword(one.id, 'newest hash')
    expect(await stores.users.find(one.id)).toEqual({ ...one, password: 'newest hash', epoch: 10 })
    expect(await stores.users.find(other.id)).toEqual(other)
  })

  test.each(['id', 'username', 'email'] as const)('two users cannot share a %s', async (column) => {
    const row = user()
    await stores.users.insert(row)
    const error = await refusal(stores.users.insert(user({ [column]: row[column] })))
    expect(stores.isDuplicate(error)).toBe(true)
  })

  test('any number of accounts claim an address, and one has it confirmed', async () => {
    const email = `${unique('claimed')}@example.com`
    const [owner, member, changing, waiting] = [
      user({ email, confirmed: 0, registered: 1 }),
      user({ email, confirmed: 0, registered: 1, created_at: '2020-01-01T00:00:00.000Z' }),
      user({ email, former_email: `${unique('former')}@example.com` }),
      user({ email, confirmed: 0, registered: 1, created_at: '2020-01-01T00:00:00.000Z' }),
    ]
    for (const row of [owner, member, changing, waiting]) await stores.users.insert(row)
    const { tenant_id } = await namespace(storage)
    const epoch = unique('epoch')
    await stores.namespaces.addMember({
      tenant_id,
      user_id: member.id,
      role: 'observer',
      epoch,
      created_at: now,
    })
    expect((await stores.addressClaims.of(email, 10)).map(({ id }) => id).toSorted()).toEqual(
      [owner, member, changing, waiting].map(({ id }) => id).toSorted(),
    )
    expect(await stores.users.taken({ email })).toEqual([])
    await stores.users.save(owner.id, { confirmed: 1 })
    expect(stores.isDuplicate(await refusal(stores.users.save(waiting.id, { confirmed: 1 })))).toBe(true)
    expect(stores.isDuplicate(await refusal(stores.users.save(changing.id, { former_email: null })))).toBe(
      true,
    )
    expect(await stores.addressClaims.end(email, owner.id)).toEqual([
      { id: waiting.id, username: waiting.username },
    ])
    expect(await stores.users.find(changing.id)).toEqual({
      ...changing,
      email: changing.former_email,
      former_email: null,
    })
    expect((await stores.addressClaims.of(email, 10)).map(({ id }) => id)).toEqual([member.id])
    await stores.addressClaims.sweep(now)
    expect(await stores.users.find(member.id)).toEqual(member)
    expect(await stores.users.find(owner.id)).toMatchObject({ email, confirmed: 1 })
  })

  test('sources from which people logged in are kept, the newest of many', async () => {
    const moment = (day: number) => `2030-01-0${day}T00:00:00.000Z`
    for (const day of [1, 2, 3, 4]) await stores.knownSources.note(`192.0.2.${day}`, moment(day))
    await stores.knownSources.note('192.0.2.1', moment(5))
    const listed = async () =>
      (await stores.knownSources.list(moment(1), 3)).map(({ source }) => source.slice(-1))
    expect(await listed()).toEqual(['1', '4', '3'])
    await stores.knownSources.sweep(moment(1), 3)
    expect((await stores.knownSources.list(moment(1), 9)).map(({ source }) => source.slice(-1))).toEqual([
      '1',
      '4',
      '3',
    ])
    await stores.knownSources.sweep(moment(4), 3)
    expect(await listed()).toEqual(['1'])
  })

  test('an error of another kind is no duplicate', async () => {
    const { tenant_id, here } = await namespace(storage)
    expect(stores.isDuplicate(new Error('23505'))).toBe(false)
    const orphan = await refusal(stores.of('no-such-namespace').apiKeys.insert(apiKey('nobody')))
    expect(stores.isDuplicate(orphan)).toBe(false)
    const empty = await refusal(here.apiKeys.insert(apiKey('nobody', { name: null })))
    expect(stores.isDuplicate(empty)).toBe(false)
    expect((await stores.of(tenant_id).apiKeys.list(page(), 'name', 'asc')).total).toBe(0)
  })

  test('what is taken is told by field, and nobody is in their own way', async () => {
    const row = user()
    await stores.users.insert(row)
    expect(await stores.users.taken({ username: row.username, email: row.email })).toEqual([
      'username',
      'email',
    ])
    expect(await stores.users.taken({ username: 'free', email: row.email })).toEqual(['email'])
    expect(await stores.users.taken({ username: row.username, email: row.email }, row.id)).toEqual([])
    expect(await stores.users.taken({})).toEqual([])
  })

  test('users are listed by username, without their secrets', async () => {
    const [b, a] = [user({ username: unique('zz-b') }), user({ username: unique('zz-a') })]
    await stores.users.insert(b)
    await stores.users.insert(a)
    const listed = (await stores.users.list()).filter((row) => row.username.startsWith('zz-'))
    expect(listed).toEqual(
      [a, b].map(({ id, username, email, confirmed, created_at }) => ({
        id,
        username,
        email,
        confirmed,
        created_at,
      })),
    )
  })

  test('a time step of the second factor is spent once, and no earlier one after it', async () => {
    const row = user({ mfa_step: 10 })
    await stores.users.insert(row)
    expect(await stores.users.spendStep(row.id, 10)).toBe(false)
    expect(await stores.users.spendStep(row.id, 12)).toBe(true)
    expect(await stores.users.spendStep(row.id, 12)).toBe(false)
    expect(await stores.users.spendStep(row.id, 11)).toBe(false)
    expect(await stores.users.spendStep('nobody', 99)).toBe(false)
  })

  test('recovery codes are replaced as a set and spent one by one', async () => {
    const [one, other] = [user(), user()]
    await stores.users.insert(one)
    await stores.users.insert(other)
    await stores.users.setRecoveryCodes(one.id, ['old'])
    await stores.users.setRecoveryCodes(one.id, ['a', 'b'])
    await stores.users.setRecoveryCodes(other.id, ['a'])
    expect(await stores.users.spendRecoveryCode(one.id, 'old')).toBe(false)
    expect(await stores.users.spendRecoveryCode(one.id, 'a')).toBe(true)
    expect(await stores.users.spendRecoveryCode(one.id, 'a')).toBe(false)
    expect(await stores.users.spendRecoveryCode(other.id, 'a')).toBe(true)
    await stores.users.setRecoveryCodes(one.id, [])
    expect(await stores.users.spendRecoveryCode(one.id, 'b')).toBe(false)
  })

  test('a second draft takes the place of the first', async () => {
    const row = user()
    await stores.users.insert(row)
    const draft = { user_id: row.id, secret: 'one', code_hashes: '[]', created_at: earlier }
    await stores.users.saveDraft(draft)
    await stores.users.saveDraft({ ...draft, secret: 'two', created_at: now })
    expect(await stores.users.findDraft(row.id)).toEqual({ ...draft, secret: 'two', created_at: now })
    await stores.users.removeDraft(row.id)
    expect(await stores.users.findDraft(row.id)).toBeUndefined()
  })

  test('a user who goes takes codes, drafts, tokens and memberships along', async () => {
    const { tenant_id } = await namespace(storage)
    const row = user()
    await stores.users.insert(row)
    await stores.users.setRecoveryCodes(row.id, ['a'])
    await stores.users.saveDraft({ user_id: row.id, secret: 's', code_hashes: '[]', created_at: now })
    await stores.tokens.insert({ kind: 'recovery', hash: row.id, user_id: row.id, expires_at: later })
    await stores.namespaces.addMember({
      tenant_id,
      user_id: row.id,
      role: 'observer',
      epoch: 'e',
      created_at: now,
    })
    await stores.users.remove(row.id)
    expect(await stores.users.find(row.id)).toBeUndefined()
    expect(await stores.users.spendRecoveryCode(row.id, 'a')).toBe(false)
    expect(await stores.users.findDraft(row.id)).toBeUndefined()
    expect(await stores.tokens.find('recovery', row.id, now)).toBeUndefined()
    expect(await stores.namespaces.member(tenant_id, row.id)).toBeUndefined()
  })

  test('the owner of a namespace cannot be removed under it', async () => {
    const { owner } = await namespace(storage)
    await refusal(stores.users.remove(owner.id))
    expect(await stores.users.find(owner.id)).toEqual(owner)
  })

  test('a one-time token is found and spent until it expires, and only as its kind', async () => {
    const hash = unique('hash')
    await stores.tokens.insert({ kind: 'activation', hash, user_id: null, expires_at: later })
    const whole = { kind: 'activation', hash, user_id: null, tries: 0, typed: null, expires_at: later }
    expect(await stores.tokens.find('activation', hash, now)).toEqual(whole)
    expect(await stores.tokens.find('recovery', hash, now)).toBeUndefined()
    expect(await stores.tokens.find('activation', hash, later)).toBeUndefined()
    expect(await stores.tokens.spend('recovery', hash, now)).toBe(false)
    expect(await stores.tokens.spend('activation', hash, later)).toBe(false)
    expect(await stores.tokens.spend('activation', hash, now)).toBe(true)
    expect(await stores.tokens.spend('activation', hash, now)).toBe(false)
  })

  test('the same token of the same kind is a duplicate', async () => {
    const token = { kind: 'setup', hash: unique('hash'), user_id: null, expires_at: later } as const
    await stores.tokens.insert(token)
    expect(stores.isDuplicate(await refusal(stores.tokens.insert(token)))).toBe(true)
    await stores.tokens.insert({ ...token, kind: 'recovery' })
  })

  test('wrong tries are counted against one token', async () => {
    const [one, other] = [unique('hash'), unique('hash')]
    for (const hash of [one, other])
      await stores.tokens.insert({ kind: 'mfa-sign-in', hash, user_id: null, expires_at: later })
    expect(await stores.tokens.miss('mfa-sign-in', one)).toBe(1)
    expect(await stores.tokens.miss('mfa-sign-in', one)).toBe(2)
    expect(await stores.tokens.miss('mfa-sign-in', 'unknown')).toBe(0)
    expect((await stores.tokens.find('mfa-sign-in', other, now))?.tries).toBe(0)
  })

  test('tokens go by user and kind, by kind, and when they have expired', async () => {
    const row = user()
    await stores.users.insert(row)
    const put = async (
      kind: 'mfa-reset-main' | 'mfa-reset-recovery' | 'mfa-recovered',
      expires_at = later,
    ) => {
      const hash = unique('hash')
      await stores.tokens.insert({ kind, hash, user_id: row.id, expires_at })
      return async () => (await stores.tokens.find(kind, hash, '2000-01-01T00:00:00.000Z')) !== undefined
    }
    const main = await put('mfa-reset-main')
    const recovery = await put('mfa-reset-recovery')
    await stores.tokens.removeOf(row.id, 'mfa-reset-main')
    expect([await main(), await recovery()]).toEqual([false, true])
    const recovered = await put('mfa-recovered')
    await stores.tokens.removeKind('mfa-reset-recovery')
    expect([await recovery(), await recovered()]).toEqual([false, true])
    const old = await put('mfa-recovered', now)
    await stores.tokens.sweep(now)
    expect([await old(), await recovered()]).toEqual([false, true])
  })

  test('attempts are counted until they are cleared, and start again when they have run out', async () => {
    const subject = unique('subject')
    expect(await stores.attempts.count(subject, now, later)).toBe(1)
    expect(await stores.attempts.count(subject, now, later)).toBe(2)
    expect(await stores.attempts.count(subject, later, '2026-06-01T00:00:00.000Z')).toBe(1)
    await stores.attempts.clear(subject)
    expect(await stores.attempts.count(subject, now, later)).toBe(1)
  })

  test('a lock is found while it lasts', async () => {
    const subject = unique('subject')
    await stores.attempts.count(subject, earlier, now)
    await stores.attempts.lock(subject, later, later)
    expect(await stores.attempts.find(subject, now)).toEqual({
      subject,
      count: 1,
      locked_until: later,
      expires_at: later,
    })
    expect(await stores.attempts.find(subject, later)).toBeUndefined()
    await stores.attempts.sweep(now)
    expect(await stores.attempts.find(subject, now)).toBeDefined()
    await stores.attempts.sweep(later)
    expect(await stores.attempts.find(subject, now)).toBeUndefined()
  })

  test('the newest signing key comes first', async () => {
    const key = (kid: string, created_at: string) => ({
      kid,
      private_key: 'sealed',
      public_key: 'pem',
      created_at,
    })
    const [old, fresh] = [key(unique('kid'), earlier), key(unique('kid'), now)]
    await stores.signingKeys.insert(old)
    await stores.signingKeys.insert(fresh)
    expect(await stores.signingKeys.list()).toEqual([fresh, old])
    expect(stores.isDuplicate(await refusal(stores.signingKeys.insert(old)))).toBe(true)
  })

  test('a namespace is found by id and by name, and its name is its own', async () => {
    const { tenant_id, name, owner } = await namespace(storage)
    const found = await stores.namespaces.find(tenant_id)
    expect(found).toMatchObject({ tenant_id, name, owner: owner.id, billing: null, max_devices: -1 })
    expect(await stores.namespaces.findByName(name)).toEqual(found)
    expect(await stores.namespaces.find('nowhere')).toBeUndefined()
    expect(await stores.namespaces.ownedBy(owner.id, 10)).toEqual([{ tenant_id, name }])
    expect(await stores.namespaces.countOwnedBy(owner.id)).toBe(1)
    expect(await stores.namespaces.all()).toContainEqual({ name, tenant_id, username: owner.username })
    expect(stores.isDuplicate(await refusal(namespace(storage, name)))).toBe(true)
    const other = await namespace(storage)
    expect(stores.isDuplicate(await refusal(stores.namespaces.save(other.tenant_id, { name })))).toBe(true)
  })

  test('saving a namespace leaves the others as they were', async () => {
    const [one, other] = [await namespace(storage), await namespace(storage)]
    const before = await stores.namespaces.find(other.tenant_id)
    await stores.namespaces.save(one.tenant_id, { session_record: 0, connection_announcement: 'hello' })
    expect(await stores.namespaces.find(one.tenant_id)).toMatchObject({
      session_record: 0,
      connection_announcement: 'hello',
    })
    expect(await stores.namespaces.find(other.tenant_id)).toEqual(before)
  })

  test('members come in the order in which they joined', async () => {
    const { tenant_id, owner } = await namespace(storage)
    const [a, b] = [user(), user()]
    for (const [row, created_at] of [
      [a, later],
      [b, earlier],
    ] as const) {
      await stores.users.insert(row)
      await stores.namespaces.addMember({
        tenant_id,
        user_id: row.id,
        role: 'operator',
        epoch: 'e',
        created_at,
      })
    }
    const members = [
      { id: b.id, username: b.username, role: 'operator' },
      { id: owner.id, username: owner.username, role: 'owner' },
      { id: a.id, username: a.username, role: 'operator' },
    ]
    expect(await stores.namespaces.members(tenant_id)).toEqual(members)
    const other = await namespace(storage)
    expect(await stores.namespaces.membersOf([other.tenant_id, tenant_id, 'nowhere'])).toEqual(
      new Map([
        [other.tenant_id, await stores.namespaces.members(other.tenant_id)],
        [tenant_id, members],
        ['nowhere', []],
      ]),
    )
    expect(await stores.namespaces.membersOf([])).toEqual(new Map())
  })

  test('a membership is added once, changed and removed, in its namespace alone', async () => {
    const [one, other] = [await namespace(storage), await namespace(storage)]
    const row = user()
    await stores.users.insert(row)
    const membership = { user_id: row.id, role: 'observer', epoch: 'e', created_at: now } as const
    await stores.namespaces.addMember({ ...membership, tenant_id: one.tenant_id })
    await stores.namespaces.addMember({ ...membership, tenant_id: other.tenant_id, created_at: earlier })
    const again = refusal(stores.namespaces.addMember({ ...membership, tenant_id: one.tenant_id }))
    expect(stores.isDuplicate(await again)).toBe(true)
    const change = { role: 'operator', epoch: 'f' } as const
    expect(await stores.namespaces.saveMember(one.tenant_id, row.id, 'administrator', change)).toBe(false)
    expect(await stores.namespaces.saveMember(one.tenant_id, row.id, 'observer', change)).toBe(true)
    await stores.namespaces.signedIn(one.tenant_id, row.id)
    const oldest = { tenant_id: other.tenant_id, role: 'observer', epoch: 'e', signed_in: 0 }
    const newest = { tenant_id: one.tenant_id, role: 'operator', epoch: 'f', signed_in: 1 }
    expect(await stores.namespaces.memberships(row.id, 10)).toEqual([oldest, newest])
    expect(await stores.namespaces.memberships(row.id, 1)).toEqual([oldest])
    expect(await stores.namespaces.memberships(row.id, 1, 'signed-in')).toEqual([newest])
    await stores.namespaces.removeMember(one.tenant_id, row.id)
    expect(await stores.namespaces.member(one.tenant_id, row.id)).toBeUndefined()
    expect(await stores.namespaces.member(other.tenant_id, row.id)).toMatchObject({ role: 'observer' })
  })

  test('the gate learns of a user, of the role in a namespace, and of its end', async () => {
    const { tenant_id, owner } = await namespace(storage)
    const whole = {
      username: owner.username,
      epoch: 1,
      kept_token: null,
      role: 'owner',
      member_epoch: 'first',
      used_at: null,
    }
    expect(await stores.callers.user(owner.id, tenant_id)).toEqual(whole)
    expect(await stores.callers.user(owner.id, 'elsewhere')).toEqual({
      ...whole,
      role: null,
      member_epoch: null,
    })
    expect(await stores.callers.user('nobody', tenant_id)).toBeUndefined()
    const other = user()
    await stores.users.insert(other)
    const signIn = { agent: '', source: '', created_at: now, used_from: '', used_at: now, expires_at: now }
    await stores.signIns.insert({ ...signIn, id: `of ${owner.id}`, user_id: owner.id })
    await stores.signIns.insert({ ...signIn, id: `of ${other.id}`, user_id: other.id })
    expect(await stores.callers.user(owner.id, tenant_id, `of ${owner.id}`)).toEqual({
      ...whole,
      used_at: now,
    })
    // A sign-in of somebody else is none.
    expect(await stores.callers.user(owner.id, tenant_id, `of ${other.id}`)).toEqual(whole)
  })

  test('the gate learns of a key with its maker’s present role, and of no key whose maker has left', async () => {
    const { tenant_id, owner, here } = await namespace(storage)
    const key = apiKey(owner.id, { role: 'administrator', expires_in: 4_102_444_800 })
    await here.apiKeys.insert(key)
    const { hash, name, role, created_by, expires_in } = key
    expect(await stores.callers.key(hash)).toEqual({
      tenant_id,
      name,
      role,
      created_by,
      expires_in,
      creator_role: 'owner',
    })
    expect(await stores.callers.key('unknown')).toBeUndefined()
    // The owner is not removed; whoever hands over can be.
    expect(await stores.namespaces.removeMember(tenant_id, owner.id)).toBe(false)
    const next = user()
    await stores.users.insert(next)
    await stores.namespaces.addMember({
      tenant_id,
      user_id: next.id,
      role: 'observer',
      epoch: 'e',
      created_at: now,
    })
    expect(
      await stores.namespaces.handOver(tenant_id, { id: owner.id, epoch: 'g' }, { id: next.id, epoch: 'h' }),
    ).toBe(true)
    expect(await stores.callers.key(hash)).toMatchObject({ creator_role: 'administrator' })
    expect(await stores.namespaces.removeMember(tenant_id, owner.id)).toBe(true)
    expect(await stores.callers.key(hash)).toBeUndefined()
  })

  test('announcements come in pages by date, and their contents one by one', async () => {
    const announcement = (date: string) => ({
      uuid: unique('announcement'),
      title: 'Tide',
      content: 'At noon.',
      date,
    })
    const rows = [announcement(earlier), announcement(now), announcement(later)]
    for (const row of rows) await stores.announcements.insert(row)
    const titles = rows.map(({ uuid, title, date }) => ({ uuid, title, date }))
    expect(await stores.announcements.list(page(2), 'asc')).toEqual({ items: titles.slice(0, 2), total: 3 })
    expect(await stores.announcements.list(page(2, 2), 'asc')).toEqual({ items: titles.slice(2), total: 3 })
    expect((await stores.announcements.list(page(), 'desc')).items).toEqual(titles.toReversed())
    expect(await stores.announcements.find(rows[0]!.uuid)).toEqual(rows[0])
    expect(stores.isDuplicate(await refusal(stores.announcements.insert(rows[0]!)))).toBe(true)
    expect(await stores.announcements.remove(rows[0]!.uuid)).toBe(true)
    expect(await stores.announcements.remove(rows[0]!.uuid)).toBe(false)
  })
})
