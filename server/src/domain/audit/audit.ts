// Writing the audit log. `change` runs a change in a transaction and appends its entries as the last act of
// the same one: no change without its entry, and no entry without its change. The head is locked for that
// moment only, so that changes of one namespace hardly wait for each other. Rules record presentable views,
// never rows: no entry holds a secret.
import { hash } from 'node:crypto'
import type { AuditAction } from '@hawser/contract/audit-actions'
import { canonicalJson, firstHash, hashedText, type ChainedEntry } from '@hawser/contract/audit-chain'
import { shortened } from '@hawser/contract/audit-detail'
import { defined } from '@hawser/contract/defined'
import { beyond, callLimits } from '@hawser/contract/limits'
import type { SessionPerson } from '@hawser/contract/sessions'
import { neighbourhood } from '../../kit/address.ts'
import { BoundedMap } from '../../kit/bounded-map.ts'
import { iso, minute_ms, type Clock } from '../../kit/clock.ts'
import type { AuditHeadRow } from '../../storage/audit.ts'
import type { Stores, StoresInTransaction } from '../../storage/stores.ts'
import { signInOf, type Caller } from '../callers/callers.ts'
import { writingPace, type Writer } from './writing-pace.ts'

export interface AuditActor {
  readonly actor: 'user' | 'api-key' | 'certificate' | 'device' | 'admin' | 'server' | 'anonymous'
  readonly id: string
  readonly name: string
  /** Empty: the server itself. */
  readonly source: string
  readonly request_id: string
  /** Where the actor acts; empty: in no namespace. */
  readonly tenant_id: string
}

export interface AuditTarget {
  readonly kind: string
  readonly id: string
  readonly name: string
}

export interface AuditRecord {
  readonly action: AuditAction
  readonly target: AuditTarget
  /** Presentable views. Only fields that differ are stored. */
  readonly before?: object | undefined
  readonly after?: object | undefined
  readonly detail?: Readonly<Record<string, unknown>> | undefined
  /** Whose log, if not that of the actor's namespace. Empty: the server's own. */
  readonly tenant_id?: string | undefined
}

/** A record whose `before` equals its `after` leaves no entry. */
export type Recorder = (record: AuditRecord) => void

export interface Audit {
  /**
   * Runs a change in a transaction and appends its entries in the same one. The work may run again, as in any
   * transaction; its earlier records are then dropped. `tenant_id`: the actor's namespace, if not the
   * caller's.
   */
  change<T>(
    by: Caller | AuditActor,
    work: (inside: StoresInTransaction, record: Recorder) => Promise<T>,
    tenant_id?: string,
  ): Promise<T>
  /** Appends an entry about something that has happened already, so it is taken in any case. */
  event(by: Caller | AuditActor, record: AuditRecord): Promise<void>
  /**
   * Skips an event that repeats within minutes: same actor, action and target, from the same network or from
   * many.
   */
  eventOnce(by: Caller | AuditActor, record: AuditRecord): Promise<void>
  /** Appends entries of several actors inside of a transaction, as its last act. */
  append(inside: StoresInTransaction, entries: readonly AuditNote[]): Promise<unknown>
}

export interface AuditNote {
  readonly by: AuditActor
  readonly record: AuditRecord
}

const nowhere = { id: '', source: '', request_id: '', tenant_id: '' }
export const theServer: AuditActor = { ...nowhere, actor: 'server', name: 'server' }
/** Commands on the server's machine. */
export const theAdministrator: AuditActor = { ...nowhere, actor: 'admin', name: 'administrator' }

export function stranger(source: string, request_id = ''): AuditActor {
  return { ...nowhere, actor: 'anonymous', name: '', source, request_id }
}

export function actorOfPerson({ kind, id, name }: SessionPerson, source: string): AuditActor {
  if (kind === 'unknown') return stranger(source)
  return { ...nowhere, actor: kind, id, name, source }
}

export function actorOf(caller: Caller | AuditActor): AuditActor {
  if ('actor' in caller) return caller
  const from = { source: caller.source, request_id: caller.request_id ?? '' }
  if (caller.kind === 'key')
    return { ...from, actor: 'api-key', id: caller.name, name: caller.name, tenant_id: caller.tenant_id }
  if (caller.kind === 'device')
    return { ...from, actor: 'device', id: caller.uid, name: '', tenant_id: caller.tenant_id }
  if (caller.kind === 'anonymous') return { ...from, actor: 'anonymous', id: '', name: '', tenant_id: '' }
  return { ...from, actor: 'user', id: caller.id, name: caller.username, tenant_id: caller.tenant_id ?? '' }
}

/** Undefined: limited elsewhere. */
function writerOf(by: Caller | AuditActor): Writer | undefined {
  if ('actor' in by) return undefined
  if (by.kind === 'key') return { person: by.created_by || by.tenant_id, turn: '' }
  return by.kind === 'user' ? { person: by.id, turn: signInOf(by.token_id) } : undefined
}

const longestText = 1000
const mostItems = 100
const deepest = 6
const largestDetail = 16 * 1024
const once_ms = 10 * minute_ms
/** Networks that are told apart in that time: anybody with IPv6 has thousands. */
const mostNetworks = 16
const mostRemembered = 10_000
const entry_bytes = 512
/**
 * Changes that end a right or secure an account always pass, so that a stolen token that writes as much as it
 * can does not lock its owner out. So do reports of what has happened already.
 */
const alwaysTaken = new Set<AuditAction>([
  'audit-stream.tested',
  'device.rejected',
  'pairing.refused',
  'session.terminated',
  'user.password.changed',
  'user.mfa.enabled',
  'user.signed-in',
  'user.signed-out',
])
const isAlwaysTaken = ({ record: { action } }: AuditNote): boolean =>
  /\.(?:removed|revoked|withdrawn|ended)$/.test(action) || alwaysTaken.has(action)

/**
 * Text that both databases store unchanged, so that its hash stays right. A text that is too long loses its
 * middle: the end of a path names the file.
 */
export function auditText(text: string, longest = longestText): string {
  const half = longest / 2
  const cut = text.length > longest ? `${text.slice(0, half)}…${text.slice(-half)}` : text
  return cut.isWellFormed() && !cut.includes('\0') ? cut : cut.toWellFormed().replaceAll('\0', '\ufffd')
}

function bounded(value: unknown, depth = 0): unknown {
  if (typeof value === 'string') return auditText(value)
  if (typeof value === 'number') return Number.isFinite(value) ? value : null
  if (typeof value === 'boolean' || value === null) return value
  if (depth === deepest || typeof value !== 'object') return '…'
  if (Array.isArray(value)) return value.slice(0, mostItems).map((item) => bounded(item, depth + 1))
  const copy: [string, unknown][] = []
  for (const [name, field] of Object.entries(value)) {
    if (copy.length === mostItems) break
    if (field !== undefined) copy.push([auditText(name), bounded(field, depth + 1)])
  }
  return Object.fromEntries(copy)
}

function differing(before: object, after: object): { before: object; after: object } {
  const [old, young] = [before, after].map((view) => new Map<string, unknown>(Object.entries(view)))
  const names = [...new Set([...(old?.keys() ?? []), ...(young?.keys() ?? [])])].filter(
    (name) => canonicalJson(old?.get(name) ?? null) !== canonicalJson(young?.get(name) ?? null),
  )
  const only = (view: Map<string, unknown> | undefined) =>
    Object.fromEntries(names.map((name) => [name, view?.get(name) ?? null]))
  return { before: only(old), after: only(young) }
}

interface AuditDetail {
  readonly value: Record<string, unknown>
  readonly text: string
}

const sha256 = (text: string): string => hash('sha256', text)

/** Undefined: nothing differs, so there is nothing to write. */
function detailOf({ before, after, detail = {} }: AuditRecord): AuditDetail | undefined {
  let views: { before?: object; after?: object } = defined({ before, after })
  if (before && after) {
    views = differing(before, after)
    if (Object.keys(views.before ?? {}).length === 0) return undefined
  }
  const whole = { ...detail, ...views }
  const value = bounded(whole) as Record<string, unknown>
  const text = canonicalJson(value)
  if (text.length <= largestDetail) return { value, text }
  const short = shortened(value, largestDetail, { json: canonicalJson, sha256 }, whole)
  return { value: short, text: canonicalJson(short) }
}

export function chainHash(previous: string, entry: ChainedEntry, detail?: string): string {
  return hash('sha256', hashedText(previous, entry, detail))
}

type Head = Pick<AuditHeadRow, 'seq' | 'hash' | 'at'>
type DetailedNote = AuditNote & { readonly detail: AuditDetail }

export function audit({ stores, clock }: { stores: Stores; clock: Clock }): Audit {
  /** When events of `eventOnce` were first written, and from which networks. */
  const seen = new BoundedMap<string, { at: number; networks: Map<string, Promise<void>> }>(mostRemembered)

  /**
   * Where logs ended at this process's last append, which saves reading the head. After a rollback, or an
   * append by another node, that is wrong: the database then changes nothing and the head is read.
   */
  const heads = new BoundedMap<string, Head>(mostRemembered)
  const pace = writingPace(clock)

  async function appendTo(
    inside: StoresInTransaction,
    tenant_id: string,
    notes: readonly DetailedNote[],
  ): Promise<void> {
    const believed = heads.get(tenant_id)
    heads.delete(tenant_id)
    let head = believed && (await appendAfter(clock, believed, inside, tenant_id, notes))
    if (!head) {
      const held = await hold(inside, tenant_id)
      if (!held) return
      head = await appendAfter(clock, held, inside, tenant_id, notes)
      if (!head) throw new Error(`the head of the audit log of ${tenant_id} moved while it was held`)
    }
    heads.set(tenant_id, head)
  }

  async function append(inside: StoresInTransaction, entries: readonly AuditNote[]): Promise<number> {
    const notes = entries.flatMap(({ by, record }) => {
      const detail = detailOf(record)
      return detail ? [{ tenant_id: record.tenant_id ?? by.tenant_id, by, record, detail }] : []
    })
    const byTenant = Map.groupBy(notes, ({ tenant_id }) => tenant_id)
    // In one order everywhere, so that no two transactions wait for each other.
    for (const [tenant_id, own] of [...byTenant].toSorted(([one], [other]) => (one < other ? -1 : 1)))
      await appendTo(inside, tenant_id, own)
    return notes.reduce((sum, { detail }) => sum + entry_bytes + Buffer.byteLength(detail.text), 0)
  }

  async function write<T>(
    actor: AuditActor,
    writer: Writer | undefined,
    mayWait: boolean,
    work: (inside: StoresInTransaction, record: Recorder) => Promise<T>,
  ): Promise<T> {
    let wait_s: number | undefined
    const { result, bytes } = await stores.transaction(async (inside) => {
      const notes: AuditNote[] = []
      const done = await work(inside, (record) => void notes.push({ by: actor, record }))
      const isBounded = mayWait && writer !== undefined && pace.hasWrittenTooMuch(writer)
      if (isBounded && notes.some((note) => !isAlwaysTaken(note) && detailOf(note.record))) {
        // A transaction that runs again keeps its turn.
        wait_s ??= pace.takeTurn(writer)
        if (wait_s > 0) throw beyond(callLimits.changes, wait_s)
      }
      return { result: done, bytes: await append(inside, notes) }
    })
    if (writer !== undefined && bytes > 0) pace.count(writer, bytes)
    return result
  }

  const change: Audit['change'] = (by, work, tenant_id) => {
    const actor = actorOf(by)
    return write({ ...actor, tenant_id: tenant_id ?? actor.tenant_id }, writerOf(by), true, work)
  }

  const event: Audit['event'] = (by, record) =>
    write(actorOf(by), writerOf(by), false, async (_, note) => note(record))

  return {
    change,
    event,
    append,
    async eventOnce(by, record) {
      const { actor, id, source, tenant_id } = actorOf(by)
      const { action, target } = record
      const key = JSON.stringify([actor, id, record.tenant_id ?? tenant_id, action, target.kind, target.id])
      const now = clock.now()
      const last = seen.get(key)
      const known =
        last && now - last.at < once_ms ? last : { at: now, networks: new Map<string, Promise<void>>() }
      const { networks } = known
      const writer = writerOf(by)
      // A person over the writing limit gets one entry for each sign-in.
      const network = pace.hasWrittenTooMuch(writer) ? `sign-in ${writer?.turn}` : neighbourhood(source)
      if (networks.has(network) || networks.size >= mostNetworks) return networks.get(network)
      const written = event(by, record)
      networks.set(network, written)
      seen.set(key, known)
      return written.catch((error: unknown) => {
        networks.delete(network)
        throw error
      })
    },
  }
}

/** Undefined: the namespace is gone. */
async function hold(inside: StoresInTransaction, tenant_id: string): Promise<AuditHeadRow | undefined> {
  const mine = inside.of(tenant_id).audit
  const head = await mine.holdHead()
  if (head) return head
  if (tenant_id !== '' && !(await inside.namespaces.find(tenant_id))) return undefined
  await mine.begin({ seq: 0, hash: firstHash, at: '', first_seq: 1, first_hash: firstHash })
  return mine.holdHead()
}

/** Undefined: the head has moved, and nothing was done. */
async function appendAfter(
  clock: Clock,
  head: Head,
  inside: StoresInTransaction,
  tenant_id: string,
  notes: readonly DetailedNote[],
): Promise<Head | undefined> {
  // Clocks of nodes differ, but moments must follow the order of the numbers.
  const now = iso(clock.now())
  const at = now > head.at ? now : head.at
  let { seq, hash: previous } = head
  const rows = notes.map(({ by, record: { action, target }, detail }) => {
    seq += 1
    const actor = { kind: by.actor, id: auditText(by.id), name: auditText(by.name) }
    const about = { kind: target.kind, id: auditText(target.id), name: auditText(target.name) }
    const [source, request_id] = [auditText(by.source), auditText(by.request_id)]
    previous = chainHash(
      previous,
      { tenant_id, seq, at, action, actor, source, request_id, target: about, detail: detail.value },
      detail.text,
    )
    return {
      seq,
      at,
      action,
      actor_kind: actor.kind,
      actor_id: actor.id,
      actor_name: actor.name,
      source,
      request_id,
      target_kind: about.kind,
      target_id: about.id,
      target_name: about.name,
      detail: detail.text,
      hash: previous,
    }
  })
  const done = await inside.of(tenant_id).audit.append(head, rows)
  return done ? { seq, hash: previous, at } : undefined
}
