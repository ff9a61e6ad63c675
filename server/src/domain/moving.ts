// Moving in from another installation, a ShellHub. Everything happens in one transaction: what is only tried, meets a problem
// or is broken off leaves nothing behind. What is here already, by its id, stays as it is, so that a second run adds what is
// missing and changes nothing. Nothing gets in that the interface would refuse.
import { Failure } from '@hawser/contract/failures'
import type { Source } from '../import/found.ts'
import { iso, type Clock } from '../kit/clock.ts'
import type { Vault } from '../kit/secrets.ts'
import type { Stores, StoresInTransaction } from '../storage/stores.ts'
import { movePeople, type Places } from './moving-people.ts'
import { moveReport, shown, type MoveReport } from './moving-report.ts'
import { moveThings } from './moving-things.ts'
import type { KeyReader } from './public-keys.ts'

export interface MovingParts {
  stores: Stores
  vault: Vault
  clock: Clock
  keys: KeyReader
  /** Whether there is a payment provider. */
  billed: boolean
}

export interface Wishes {
  /** Find out and write nothing. */
  readonly dryRun: boolean
  /** Go on without what cannot be moved. */
  readonly leaveOut: boolean
  /** Somebody here with the same username and e-mail address is the same person. */
  readonly samePeople: boolean
  /** Only these, by name; empty: all. */
  readonly namespaces: readonly string[]
  /** ShellHub's: what it signed for devices of these namespaces counts here. */
  readonly signingKey: { readonly fingerprint: string; readonly public_key: string } | undefined
}

/** What one run works with. */
export interface Move {
  readonly inside: StoresInTransaction
  readonly source: Source
  readonly report: MoveReport
  readonly wishes: Wishes
  readonly parts: MovingParts
  readonly places: Places
}

export interface Moved {
  readonly report: MoveReport
  readonly written: boolean
}

/** Thrown to have the transaction undone; known by its identity. */
const undone = new Error('nothing is to be written')

const stays: readonly (readonly [RegExp, string])[] = [
  [/session|recorded/, 'The history of sessions and their recordings stays behind'],
  [/invitation/, 'Invitations that were not answered stay behind: add these people as members'],
  [/licen[cs]e|billing|stripe/, 'Licences and billing stay behind'],
  [/private_keys/, 'Keys that ShellHub used among its own parts are not needed'],
  [/^(removed|connected)_devices$/, 'Lists of removed and of connected devices stay behind'],
  [/^(bun_)?migrations?|^migration_locks?|^systems?$/, ''],
]

export async function moveIn(parts: MovingParts, source: Source, wishes: Wishes): Promise<Moved> {
  let report = moveReport()
  try {
    await parts.stores.transaction(async (inside) => {
      // The transaction may be run again, and then everything is counted anew.
      report = moveReport()
      const places: Places = { people: new Map(), namespaces: new Set(), left: new Set(), wanted: await wanted(source, wishes) }
      const move: Move = { inside, source, report, wishes, parts, places }
      await tellRest(move)
      await movePeople(move)
      await moveThings(move)
      await trustTokens(move)
      if (wishes.dryRun || (report.problems > 0 && !wishes.leaveOut)) throw undone
    })
    return { report, written: true }
  } catch (error) {
    if (error !== undone) throw error
    return { report, written: false }
  }
}

/** Of chosen namespaces: who and what belongs to them. */
async function wanted(source: Source, { namespaces }: Wishes): Promise<Places['wanted']> {
  if (namespaces.length === 0) return undefined
  const names = new Set(namespaces.map((name) => name.toLowerCase()))
  const found = { tenants: new Set<string>(), people: new Set<string>() }
  for await (const { name, tenant_id, owner, members } of source.namespaces()) {
    if (!names.delete(name.toLowerCase())) continue
    found.tenants.add(tenant_id.toLowerCase())
    for (const id of [owner, ...members.map((member) => member.id)]) found.people.add(id)
  }
  if (names.size > 0)
    throw new Failure('notFound', { message: `There is no namespace ${[...names].map(shown).join(', ')} in ${source.title}.` })
  return found
}

/** Running agents have tokens that ShellHub signed, and ask for none of ours before they are connected. */
async function trustTokens({ inside, report, wishes, parts, places }: Move): Promise<void> {
  const { signingKey } = wishes
  if (!signingKey) return report.note('Without --public-key agents that are running come back only when each of them is restarted')
  for (const tenant_id of places.namespaces) await inside.shellHubKeys.add({ ...signingKey, tenant_id, added_at: iso(parts.clock.now()) })
}

async function tellRest({ source, report }: Move): Promise<void> {
  for (const name of await source.rest()) {
    // People would sign in with less than they did, and nobody would notice.
    if (/mfa|factor/.test(name)) {
      report.problem(`${shown(name)}: second factors are kept there in a form that is not known; those who have one would sign in without.`)
      continue
    }
    const sentence = stays.find(([pattern]) => pattern.test(name))?.[1] ?? `${shown(name)} is not known here and stays behind`
    if (sentence !== '') report.note(sentence)
  }
}
