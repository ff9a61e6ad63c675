// Storage of TLS certificates, the same on both databases: who may order one, what is kept of an order, and
// the answers to challenges.
import { afterAll, beforeAll, describe, expect, test } from 'vitest'
import { databases, earlier, later, now, openFresh, type Storage } from './databases.ts'

const which = { directory: 'https://acme.example.com/dir', name: 'hawser.example.com' }

describe.each(databases)('$name', (database) => {
  let storage: Storage
  beforeAll(async () => {
    storage = await openFresh(database)
  })
  afterAll(() => storage[Symbol.asyncDispose]())

  test('one holder orders at a time, until the lease ends or is given back', async () => {
    const { certificates } = storage.stores
    expect(await certificates.find(which)).toBeUndefined()
    const takers = await Promise.all(
      ['a', 'b', 'c', 'd'].map(async (holder) => certificates.lease(which, holder, now, later)),
    )
    const taken = takers.filter((row) => row !== undefined)
    expect(taken).toHaveLength(1)
    const holder = taken[0]?.lease_holder ?? ''
    expect(await certificates.lease(which, 'another', now, later)).toBeUndefined()
    expect(await certificates.lease(which, holder, now, later)).toMatchObject({ lease_holder: holder })
    // Another name is another certificate, and so is another ACME server's.
    expect(await certificates.lease({ ...which, name: 'b.example.com' }, 'another', now, later)).toBeDefined()
    expect(
      await certificates.lease({ ...which, directory: 'https://x' }, 'another', now, later),
    ).toBeDefined()

    await certificates.failed(which, 2, later)
    expect(await certificates.lease(which, 'another', now, now)).toMatchObject({
      failures: 2,
      retry_at: later,
    })
    // A holder that died loses it with time.
    expect(await certificates.lease(which, 'third', later, later)).toMatchObject({ lease_holder: 'third' })
    await certificates.issued(which, 'chain', 'sealed')
    expect(await certificates.find(which)).toEqual({
      ...which,
      chain: 'chain',
      private_key: 'sealed',
      failures: 0,
      retry_at: '',
      lease_holder: '',
      lease_ends_at: '',
    })
  })

  test('an account is kept for each ACME server, and a new one replaces it', async () => {
    const { certificates } = storage.stores
    expect(await certificates.account(which.directory)).toBeUndefined()
    for (const private_key of ['one', 'two'])
      await certificates.saveAccount({ directory: which.directory, private_key, created_at: now })
    expect(await certificates.account(which.directory)).toBe('two')
  })

  test('a challenge is answered until it expires, and is then removed', async () => {
    const { certificates } = storage.stores
    await certificates.addChallenge({ token: 'old', answer: 'old.x', expires_at: now }, earlier)
    expect(await certificates.challenge('old', earlier)).toBe('old.x')
    expect(await certificates.challenge('old', now)).toBeUndefined()
    await certificates.addChallenge({ token: 'new', answer: 'new.x', expires_at: later }, now)
    expect(await certificates.challenge('old', earlier)).toBeUndefined()
    expect(await certificates.challenge('new', now)).toBe('new.x')
  })
})
