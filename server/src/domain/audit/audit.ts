// Writing the audit log. A rule makes its change through `change`, which runs it in a transaction and appends
// what was recorded as the last act of the same transaction: no change without its entry, and no entry
// without its change. The head of the log is locked for that last moment only, so that changes of one
// namespace wait for each other no longer than an insert takes.
//
// Rules record presentable views, such as the answers of the interface, never rows: no entry holds a secret.
import { hash } from 'node:crypto'
import type { AuditAction } from '@hawser/contract/audit-actions'
import { canonicalJson, firstHash, hashedText, type ChainedEntry } from '@hawser/contract/audit-chain'
import { shortened } from '@hawser/contract/audit-detail'
import { Failure } from '@hawser/contract/failures'
import type { SessionPerson } from '@hawser/contract/sessions'
import { neighbourhood } from '../../kit/address.ts'
import { BoundedMap } from '../../kit/bounded-map.ts'
import { hour_ms, iso, minute_ms, type Clock } from '../../kit/clock.ts'
import { limiter } from '../../kit/limiter.ts'
import type { AuditHeadRow } from '../../storage/audit.ts'
import type { Stores, StoresInTransaction } from '../../storage/stores.ts'
import { signInOf, type Caller } from '../callers/callers.ts'

/** Who did something. */
export interface AuditActor {
  readonly actor: 'user' | 'api-key' | 'certificate' | 'device' | 'admin' | 'server' | 'anonymous'
  readonly id: string
  readonly name: string
  /** The address that the request came from; empty: the server itself. */
  readonly source: string
  readonly request_id: string
  /** The namespace in which the actor acts; empty: none. */
  readonly tenant_id: string
}

export interface AuditTarget {
  readonly kind: string
  readonly id: string
  readonly name: string
}

/** What an entry says beside who did it. */
export interface AuditRecord {
  readonly action: AuditAction
  readonly target: AuditTarget
  /** Presentable views from before and after. Only fields that differ are stored. */
  readonly before?: object | undefined
  readonly after?: object | undefined
  readonly detail?: Readonly<Record<string, unknown>> | undefined
  /** Whose log, if not that of the namespace in which the actor acts. Empty: the server's own. */
  readonly tenant_id?: string | undefined
}

/** Notes what a change is about. A record whose `before` equals its `after` leaves no entry. */
export type Recorder = (record: AuditRecord) => void

export interface Audit {
  /**
   * Runs a change in a transaction and appends what it recorded in the same one. The work may run again from
   * its beginning, as in any transaction; then what it recorded before does not count. `tenant_id`: the namespace
   * in which the actor acts, if it is another one than the caller's.
   */
  change<T>(
    by: Caller | AuditActor,
    work: (inside: StoresInTransaction, record: Recorder) => Promise<T>,
    tenant_id?: string,
  ): Promise<T>
  /** Appends an entry about something that changes nothing else. It has happened, so it is taken in any case. */
  event(by: Caller | AuditActor, record: AuditRecord): Promise<void>
  /**
   * The same, unless the same actor did the same to the same target from the same network a few minutes ago, or from
   * many others.
   */
  eventOnce(by: Caller | AuditActor, record: AuditRecord): Promise<void>
  /** Appends entries of several actors inside of a transaction, as its last act. */
  append(inside: StoresInTransaction, entries: readonly AuditNote[]): Promise<unknown>
}

/** A record with its actor. */
export interface AuditNote {
  readonly by: AuditActor
  readonly record: AuditRecord
}

const nowhere = { id: '', source: '', request_id: '', tenant_id: '' }
/** The server itself, such as a sweep. */
export const theServer: AuditActor = { ...nowhere, actor: 'server', name: 'server' }
/** Somebody who runs commands on the machine of the server. */
export const theAdministrator: AuditActor = { ...nowhere, actor: 'admin', name: 'administrator' }

/** Somebody who has proved nothing. */
export function stranger(source: string, request_id = ''): AuditActor {
  return { ...nowhere, actor: 'anonymous', name: '', source, request_id }
}

/** Whoever opened a session, from this address. */
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

interface Writer {
  /** Whose bytes are counted together: those of a user and of all API keys that the user has made. */
  readonly person: string
  /** Who takes turns beyond the bound: the sign-in; empty: the API keys, of which a person makes any number. */
  readonly turn: string
}

/** Undefined: changes of this kind are bounded where they come from. */
function writerOf(by: Caller | AuditActor): Writer | undefined {
  if ('actor' in by) return undefined
  if (by.kind === 'key') return { person: by.created_by || by.tenant_id, turn: '' }
  return by.kind === 'user' ? { person: by.id, turn: signInOf(by.token_id) } : undefined
}

const longestText = 1000
const mostItems = 100
const deepest = 6
const largestDetail = 16 * 1024
/** The same actor, action and target within this time are one event for `eventOnce`. */
const once_ms = 10 * minute_ms
/** Networks from which one event is written in that time: anybody with IPv6 has thousands. */
const mostNetworks = 16
const mostRemembered = 10_000
/**
 * Bytes of entries that one user may write in an hour on a node: about 100,000 ordinary changes. Beyond it each
 * sign-in makes one change a second, so that a thief with another one takes no turn of the owner. The bytes of a
 * second are shared by those who take turns.
 */
const writing = { max: 128 * 1024 * 1024, window_ms: hour_ms }
const slow_bytes = 16 * 1024
/** Sign-ins of one user that have a turn of their own at one time. Others take turns with the API keys. */
const mostTurns = 8
const second_ms = 1_000
/** The size of an entry without its detail. */
const entry_bytes = 512
/**
 * Changes that end a right or secure an account pass at once in any case: a stolen token that writes as much as it can
 * must not keep its owner from them. So does what tells of something that has happened already.
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
const tooMuch =
  'You have made very many changes in this hour. Until it is over, one change a second is accepted.'
const isAlwaysTaken = ({ record: { action } }: AuditNote): boolean =>
  /\.(?:removed|revoked|withdrawn|ended)$/.test(action) || alwaysTaken.has(action)

/**
 * Text that both databases keep as it is, so that its hash stays right. One that is too long loses its middle: the
 * end of a path says which file it is.
 */
export function auditText(text: string, longest = longestText): string {
  const half = longest / 2
  const cut = text.length > longest ? `${text.slice(0, half)}…${text.slice(-half)}` : text
  return cut.isWellFormed() && !cut.includes('\0') ? cut : cut.toWellFormed().replaceAll('\0', '\ufffd')
}

/** A copy that is plain JSON of a bounded size. */
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

/** The fields of both views that differ. */
function differing(before: object, after: object): { before: object; after: object } {
  const [old, young] = [before, after].map((view) => new Map<string, unknown>(Object.entries(view)))
  const names = [...new Set([...(old?.keys() ?? []), ...(young?.keys() ?? [])])].filter(
    (name) => canonicalJson(old?.get(name) ?? null) !== canonicalJson(young?.get(name) ?? null),
  )
  const only = (view: Map<string, unknown> | undefined) =>
    Object.fromEntries(names.map((name) => [name, view?.get(name) ?? null]))
  return { before: only(old), after: only(young) }
}

/** The detail of an entry, and its canonical JSON. */
interface AuditDetail {
  readonly value: Record<string, unknown>
  readonly text: string
}

const sha256 = (text: string): string => hash('sha256', text)

/** The detail of an entry; undefined: nothing differs, so there is nothing to write. */
function detailOf({ before, after, detail = {} }: AuditRecord): AuditDetail | undefined {
  let views: { before?: object; after?: object } = {
    ...(before ? { before } : {}),
    ...(after ? { after } : {}),
  }
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

/** The SHA-256 of the entry in its chain. */
export function chainHash(previous: string, entry: ChainedEntry, detail?: string): string {
  return hash('sha256', hashedText(previous, entry, detail))
}

type Head = Pick<AuditHeadRow, 'seq' | 'hash' | 'at'>
type DetailedNote = AuditNote & { readonly detail: AuditDetail }

export function audit({ stores, clock }: { stores: Stores; clock: Clock }): Audit {
  /** Events of `eventOnce`, when they were first written, and from which networks. */
  const seen = new BoundedMap<string, { at: number; networks: Map<string, Promise<void>> }>(mostRemembered)

  /**
   * Where logs ended when this process last appended to them, so that nobody has to look. It may be
   * wrong: the transaction was rolled back, another node was here. Then the database does nothing
   * and the head is read.
   */
  const heads = new BoundedMap<string, Head>(mostRemembered)
  const written_bytes = limiter(clock, writing)
  /** Until when each turn of a user who has written too much waits for the next change. */
  const slow = new BoundedMap<string, Map<string, number>>(mostRemembered)

  const hasWrittenTooMuch = (writer: Writer | undefined): boolean =>
    writer !== undefined && written_bytes.peek(writer.person) > 0

  /** The turns of a user that still wait, and the one that the writer takes. */
  function turnsOf({ person, turn }: Writer): { turns: Map<string, number>; own: string } {
    const turns = slow.get(person) ?? new Map<string, number>()
    for (const [one, until] of turns) if (until <= clock.now()) turns.delete(one)
    return { turns, own: turns.has(turn) || turns.size < mostTurns ? turn : '' }
  }

  /** Takes the turn of the writer. Seconds to wait for it; 0: the change passes. */
  function takeTurn(writer: Writer): number {
    const { turns, own } = turnsOf(writer)
    const left_ms = (turns.get(own) ?? 0) - clock.now()
    if (left_ms > 0) return Math.ceil(left_ms / second_ms)
    slow.set(writer.person, turns.set(own, clock.now() + second_ms))
    return 0
  }

  function count(writer: Writer, bytes: number): void {
    written_bytes.add(writer.person, bytes)
    if (!hasWrittenTooMuch(writer)) return
    const { turns, own } = turnsOf(writer)
    const shared_by = turns.size + (turns.has(own) ? 0 : 1)
    const wait_ms = second_ms * Math.max(1, (bytes * shared_by) / slow_bytes)
    // A small entry must not end the wait that a large one began.
    const until = Math.max(turns.get(own) ?? 0, clock.now() + wait_ms)
    slow.set(writer.person, turns.set(own, until))
  }

  /** The locked head of a log. Undefined: its namespace is gone. */
  async function hold(inside: StoresInTransaction, tenant_id: string): Promise<AuditHeadRow | undefined> {
    const mine = inside.of(tenant_id).audit
    const head = await mine.holdHead()
    if (head) return head
    if (tenant_id !== '' && !(await inside.namespaces.find(tenant_id))) return undefined
    await mine.begin({ seq: 0, hash: firstHash, at: '', first_seq: 1, first_hash: firstHash })
    return mine.holdHead()
  }

  /** Appends to one log whose head is believed to be this one. Undefined: it is not, and nothing was done. */
  async function appendAfter(
    head: Head,
    inside: StoresInTransaction,
    tenant_id: string,
    notes: readonly DetailedNote[],
  ): Promise<Head | undefined> {
    // Clocks of nodes differ; the order of the numbers is also that of the moments.
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

  /** Appends to one log. */
  async function appendTo(
    inside: StoresInTransaction,
    tenant_id: string,
    notes: readonly DetailedNote[],
  ): Promise<void> {
    const believed = heads.get(tenant_id)
    // Whoever comes meanwhile looks for itself.
    heads.delete(tenant_id)
    let head = believed && (await appendAfter(believed, inside, tenant_id, notes))
    if (!head) {
      const held = await hold(inside, tenant_id)
      if (!held) return
      head = await appendAfter(held, inside, tenant_id, notes)
      if (!head) throw new Error(`the head of the audit log of ${tenant_id} moved while it was held`)
    }
    heads.set(tenant_id, head)
  }

  /** Gives the bytes that the entries take. */
  async function append(inside: StoresInTransaction, entries: readonly AuditNote[]): Promise<number> {
    const notes = entries.flatMap(({ by, record }) => {
      const detail = detailOf(record)
      return detail ? [{ tenant_id: record.tenant_id ?? by.tenant_id, by, record, detail }] : []
    })
    const byTenant = Map.groupBy(notes, ({ tenant_id }) => tenant_id)
    // In one order everywhere, so that two transactions never wait for each other.
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
      const isBounded = mayWait && writer !== undefined && hasWrittenTooMuch(writer)
      if (isBounded && notes.some((note) => !isAlwaysTaken(note) && detailOf(note.record))) {
        // A transaction that runs again has its turn.
        wait_s ??= takeTurn(writer)
        if (wait_s > 0) throw new Failure('tooMany', { message: tooMuch, retryAfter: wait_s })
      }
      return { result: done, bytes: await append(inside, notes) }
    })
    if (writer !== undefined && bytes > 0) count(writer, bytes)
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
      // A person who has written too much has one entry for each sign-in.
      const network = hasWrittenTooMuch(writer) ? `sign-in ${writer?.turn}` : neighbourhood(source)
      // Callers that come before the entry is written wait for the same one.
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
