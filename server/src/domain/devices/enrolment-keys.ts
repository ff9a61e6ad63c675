// Enrolment keys as members manage them, and a namespace's login key. An enrolment key must be as strong as a
// public key. The login key is created when first needed and stored sealed; only its public half leaves the
// server.
import { createPrivateKey, generateKeyPair, type KeyObject } from 'node:crypto'
import { promisify } from 'node:util'
import { Failure } from '@hawser/contract/failures'
import { mostEnrolmentKeys, type EnrolmentKey } from '@hawser/contract/enrolment-keys'
import { iso } from '../../kit/clock.ts'
import { fingerprintSha256, soundKey, type KeyReader } from '../access/public-keys.ts'
import { orConflict } from '../audit/conflicts.ts'
import type { With } from '../audit/parts.ts'
import type { Rules } from '../callers/rules.ts'

export interface EnrolmentKeyParts extends With<'stores' | 'audit' | 'vault' | 'bus' | 'clock'> {
  keys: KeyReader
  shown(key: KeyObject, comment: string): { public_key: string; fingerprint: string }
}

export interface EnrolmentKeyRules extends Rules<'enrolmentKeys'> {
  /** The key with which the gateway logs in on the namespace's devices without an agent. */
  loginKeyOf(tenant_id: string): Promise<KeyObject>
}

const sealed = 'login key'

const present = (row: Omit<EnrolmentKey, 'fingerprint_sha256'>): EnrolmentKey => ({
  ...row,
  fingerprint_sha256: fingerprintSha256(row.public_key),
})

export function enrolmentKeys({
  stores,
  audit,
  vault,
  bus,
  clock,
  keys,
  shown,
}: EnrolmentKeyParts): EnrolmentKeyRules {
  async function loginKeyOf(tenant_id: string): Promise<KeyObject> {
    const mine = stores.of(tenant_id).loginKeys
    const kept = await mine.find()
    if (kept !== undefined) return createPrivateKey(vault.open(sealed, kept))
    const { privateKey } = await promisify(generateKeyPair)('ed25519')
    await mine.keep(vault.seal(sealed, privateKey.export({ type: 'pkcs8', format: 'pem' })), iso(clock.now()))
    // When several requests made a key at once, one of them was stored.
    return createPrivateKey(vault.open(sealed, (await mine.find())!))
  }

  return {
    async list({ query }, { tenant_id }) {
      const { items, total } = await stores.of(tenant_id).enrolmentKeys.list(query)
      return { items: items.map(present), total }
    },
    async create({ body }, caller) {
      const { tenant_id } = caller
      const { line, fingerprint } = soundKey(keys, body.public_key, 'public_key')
      const row = { fingerprint, name: body.name, public_key: line, created_at: iso(clock.now()) }
      await audit
        .change(caller, async (inside, record) => {
          // Locked, so that two requests cannot both find room for the last key.
          await inside.namespaces.hold(tenant_id)
          const mine = inside.of(tenant_id).enrolmentKeys
          if ((await mine.list({ page: 1, per_page: 1 })).total >= mostEnrolmentKeys)
            throw new Failure('enrolmentKeyLimit')
          await mine.insert(row)
          record({
            action: 'enrolment-key.created',
            target: { kind: 'enrolment key', id: fingerprint, name: row.name },
            after: { fingerprint_sha256: fingerprintSha256(line) },
          })
        })
        .catch(orConflict(stores, { message: 'The namespace has this enrolment key already.' }))
      return present({ ...row, tenant_id })
    },
    async remove({ params: { fingerprint } }, caller) {
      const { tenant_id } = caller
      await audit.change(caller, async (inside, record) => {
        const mine = inside.of(tenant_id).enrolmentKeys
        const row = await mine.find(fingerprint)
        if (!row || !(await mine.remove(fingerprint))) throw new Failure('notFound')
        record({
          action: 'enrolment-key.removed',
          target: { kind: 'enrolment key', id: fingerprint, name: row.name },
        })
      })
      bus.tell('enrolmentKey.removed', { tenant_id, fingerprint })
    },
    async loginKey(_, { tenant_id }) {
      const namespace = await stores.namespaces.find(tenant_id)
      if (!namespace) throw new Failure('noNamespace')
      return shown(await loginKeyOf(tenant_id), `hawser-${namespace.name}`)
    },
    loginKeyOf,
  }
}
