// kill -9 between a change and its entry in the audit log cannot be observed. A process changes firewall
// rules and is killed at any moment, again and again; after each kill the rules that are there are exactly
// those that the entries say, and the entries are one chain up to the head.
import { spawn } from 'node:child_process'
import { once } from 'node:events'
import path from 'node:path'
import { setTimeout as pause } from 'node:timers/promises'
import { firstHash } from '@hawser/contract/audit-chain'
import { describe, expect, test } from 'vitest'
import { Failure } from '@hawser/contract/failures'
import { firewall } from '../../server/src/domain/access/firewall.ts'
import { audit, chainHash } from '../../server/src/domain/audit/audit.ts'
import type { KeyCaller } from '../../server/src/domain/callers/callers.ts'
import { databases, namespace, openAt, type Storage } from '../storage/databases.ts'

const tries = 80
const writer = (tenant_id: string): KeyCaller => ({
  kind: 'key',
  name: 'writer',
  created_by: 'nobody',
  exp: undefined,
  tenant_id,
  role: 'owner',
  source: '127.0.0.1',
  host: '',
  secure: false,
})
/** The killed process may have removed it at the last moment. */
function unlessGone(error: unknown): void {
  if (!(error instanceof Failure && error.kind === 'notFound')) throw error
}
const longest_ms = 60

async function killedOnce(folder: string, tenant_id: string, url: string): Promise<void> {
  const program = path.join(import.meta.dirname, 'audit-writer.ts')
  const child = spawn(process.execPath, [program, folder, tenant_id, url], {
    stdio: ['ignore', 'pipe', 'inherit'],
  })
  const ended = once(child, 'exit')
  await once(child.stdout, 'data')
  child.stdout.resume()
  await pause(Math.random() * longest_ms)
  child.kill('SIGKILL')
  await ended
}

/** What the entries say about the rules, from one number on; and what was there before. */
interface Told {
  seq: number
  hash: string
  /** Rule → its user name, which changes with every write. */
  readonly rules: Map<string, string>
}

/** Reads the entries that have come, and checks their chain. */
async function readEntries({ stores }: Storage, tenant_id: string, told: Told): Promise<void> {
  for (let done = false; !done;) {
    const { rows } = await stores
      .of(tenant_id)
      .audit.list({ oldest: 1, after: told.seq, limit: 500, window: 500 })
    done = rows.length < 500
    for (const row of rows) {
      const detail = JSON.parse(row.detail) as { after?: { username?: string } }
      told.hash = chainHash(told.hash, {
        ...row,
        tenant_id,
        actor: { kind: row.actor_kind, id: row.actor_id, name: row.actor_name },
        target: { kind: row.target_kind, id: row.target_id, name: row.target_name },
        detail: JSON.parse(row.detail) as Record<string, unknown>,
      })
      expect([row.seq, row.hash]).toEqual([told.seq + 1, told.hash])
      told.seq = row.seq
      if (row.action === 'firewall.rule.removed') told.rules.delete(row.target_id)
      else told.rules.set(row.target_id, detail.after?.username ?? '')
    }
  }
}

async function expectAgreement(storage: Storage, tenant_id: string, told: Told): Promise<void> {
  const { audit, firewall } = storage.stores.of(tenant_id)
  for (;;) {
    await readEntries(storage, tenant_id, told)
    const rules = (await firewall.all()).map(({ id, username }) => [String(id), username] as const)
    const head = await audit.head()
    // PostgreSQL finishes what the killed process has sent; what was read in the meantime says nothing.
    if (head?.seq !== told.seq) continue
    expect(new Map(rules)).toEqual(told.rules)
    expect(head.hash).toBe(told.hash)
    return
  }
}

describe.each(databases)('$name', (database) => {
  test(`${tries} kills`, { timeout: 1_200_000 }, async () => {
    using place = await database.fresh()
    await using storage = await openAt(place)
    const { tenant_id } = await namespace(storage)
    const { stores } = storage
    const log = audit({ stores, clock: { now: Date.now } })
    const rules = firewall({ stores, audit: log, onDeactivated: () => undefined })
    const caller = writer(tenant_id)
    const told: Told = { seq: 0, hash: firstHash, rules: new Map() }
    for (let attempt = 0; attempt < tries; attempt++) {
      await killedOnce(place.folder, tenant_id, place.url)
      await expectAgreement(storage, tenant_id, told)
      // A killed process leaves its rules, and a namespace has room for two hundred.
      for (const id of told.rules.keys())
        try {
          await rules.remove({ params: { id }, query: {}, body: undefined }, caller)
        } catch (error) {
          unlessGone(error)
        }
    }
    expect(told.seq).toBeGreaterThan(tries)
  })
})
