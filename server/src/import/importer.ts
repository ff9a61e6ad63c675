// Imports a ShellHub in one transaction: a trial, a problem or an interruption leaves nothing behind. What
// exists here, by its id, stays as it is, so that a second run adds only what is missing. Nothing gets in
// that the interface would refuse.
import { Failure } from '@hawser/contract/failures'
import { audit, theAdministrator } from '../domain/audit/audit.ts'
import type { Source } from './source.ts'
import { iso } from '../kit/clock.ts'
import { importPeople } from './people.ts'
import { importReport, shown, type ImportReport } from './report.ts'
import { importResources } from './resources.ts'
import type { ImporterParts, ImportOptions, ImportRun, Progress } from './run.ts'

export interface ImportResult {
  readonly report: ImportReport
  readonly written: boolean
}

/** Thrown to roll back; recognised by its identity. */
const undone = new Error('nothing is to be written')

const stays: readonly (readonly [RegExp, string])[] = [
  [/session|recorded/, 'The history of sessions and their recordings stays behind'],
  [/invitation/, 'Invitations that were not answered stay behind: add these people as members'],
  [/licen[cs]e|billing|stripe/, 'Licences and billing stay behind'],
  [/private_keys/, 'Keys that ShellHub used among its own parts are not needed'],
  [/^(removed|connected)_devices$/, 'Lists of removed and of connected devices stay behind'],
  [/^(bun_)?migrations?|^migration_locks?|^systems?$/, ''],
]

export async function importFrom(
  parts: ImporterParts,
  source: Source,
  options: ImportOptions,
): Promise<ImportResult> {
  let report = importReport()
  try {
    await parts.stores.transaction(async (inside) => {
      // The transaction may be run again, and then everything is counted anew.
      report = importReport()
      const progress: Progress = {
        people: new Map(),
        namespaces: new Set(),
        left: new Set(),
        wanted: await wanted(source, options),
      }
      const run: ImportRun = { inside, source, report, options, parts, progress }
      await tellRest(run)
      await importPeople(run)
      await importResources(run)
      await trustTokens(run)
      await noteImport(run)
      if (options.dryRun || (report.problems > 0 && !options.leaveOut)) throw undone
    })
    return { report, written: true }
  } catch (error) {
    if (error !== undone) throw error
    return { report, written: false }
  }
}

/** In the server's own audit log, and in that of each imported namespace. */
async function noteImport({ inside, parts, progress }: ImportRun): Promise<void> {
  const command = 'import shellhub'
  const record = { action: 'admin.command', target: { kind: 'command', id: command, name: command } } as const
  const writing = audit({ stores: parts.stores, clock: parts.clock })
  const logs = ['', ...progress.namespaces]
  await writing.append(
    inside,
    logs.map((tenant_id) => ({ by: theAdministrator, record: { ...record, tenant_id } })),
  )
}

/** For chosen namespaces: who and what belongs to them. */
async function wanted(source: Source, { namespaces }: ImportOptions): Promise<Progress['wanted']> {
  if (namespaces.length === 0) return undefined
  const names = new Set(namespaces.map((name) => name.toLowerCase()))
  const found = { tenants: new Set<string>(), people: new Set<string>() }
  for await (const { name, tenant_id, owner, members } of source.namespaces()) {
    if (!names.delete(name.toLowerCase())) continue
    found.tenants.add(tenant_id.toLowerCase())
    for (const id of [owner, ...members.map((member) => member.id)]) found.people.add(id)
  }
  if (names.size > 0)
    throw new Failure('notFound', {
      message: `There is no namespace ${[...names].map(shown).join(', ')} in ${source.title}.`,
    })
  return found
}

/** Running agents have tokens that ShellHub signed, and ask for none of ours before they are connected. */
async function trustTokens({ inside, report, options, parts, progress }: ImportRun): Promise<void> {
  const { signingKey } = options
  if (!signingKey)
    return report.note(
      'Without --public-key agents that are running come back only when each of them is restarted',
    )
  for (const tenant_id of progress.namespaces)
    await inside.shellHubKeys.add({ ...signingKey, tenant_id, added_at: iso(parts.clock.now()) })
}

async function tellRest({ source, report }: ImportRun): Promise<void> {
  for (const name of await source.rest()) {
    // Otherwise sign-ins would silently require less than before.
    if (/mfa|factor/.test(name)) {
      report.problem(
        `${shown(name)}: second factors are kept there in a form that is not known; those who have one would sign in without.`,
      )
      continue
    }
    const sentence =
      stays.find(([pattern]) => pattern.test(name))?.[1] ??
      `${shown(name)} is not known here and stays behind`
    if (sentence !== '') report.note(sentence)
  }
}
