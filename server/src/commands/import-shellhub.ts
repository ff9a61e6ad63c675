// `hawser import shellhub <folder | postgres://…>`: composition of the import. The server on this data folder
// must be stopped, so that nothing else writes. A dry run creates no database.
import { mkdtempSync, readFileSync, rmSync } from 'node:fs'
import os from 'node:os'
import path from 'node:path'
import { parseArgs } from 'node:util'
import { Failure } from '@hawser/contract/failures'
import { fingerprintMd5, parsePublicKeyLine, publicKeyLine } from '@hawser/ssh'
import type { Config } from '../config.ts'
import { importFrom } from '../import/importer.ts'
import type { ImportOptions } from '../import/run.ts'
import { readShellHubKey } from '../domain/callers/shellhub-tokens.ts'
import { openDump } from '../import/dump.ts'
import type { Source } from '../import/source.ts'
import { openTables } from '../import/tables.ts'
import { systemClock } from '../kit/clock.ts'
import { masterKey, vault } from '../kit/secrets.ts'
import { isInstalled, openDatabase } from '../storage/database.ts'
import { openShellHub } from '../storage/shellhub.ts'
import { stores } from '../storage/stores.ts'

export const usage = [
  'Usage: hawser import shellhub <folder | postgres://…> [options]',
  '',
  'Moves people, namespaces, members, devices, public keys, firewall rules and API keys from a ShellHub: from a folder of',
  '<collection>.json files (MongoDB, by mongoexport or bsondump) or from its PostgreSQL database, which is only read.',
  'The server must be stopped. Existing data stays unchanged; everything is written at once or not at all.',
  '',
  '  --dry-run           says what would be done and writes nothing',
  '  --namespace <name>  moves only this namespace and its members; may be repeated',
  '  --same-people       a user here with the same username and e-mail address is the same person',
  '  --leave-out         leaves out and lists what cannot be moved',
  '  --public-key <file> ShellHub’s api_public_key: running agents come back with the token they have from there',
].join('\n')

interface Wanted extends Omit<ImportOptions, 'signingKey'> {
  readonly from: string
  readonly publicKey: string | undefined
}

/** Undefined when the arguments ask for help. */
export function readArguments(args: string[]): Wanted | undefined {
  try {
    const { values, positionals } = parseArgs({
      args,
      allowPositionals: true,
      options: {
        'dry-run': { type: 'boolean', default: false },
        'leave-out': { type: 'boolean', default: false },
        'same-people': { type: 'boolean', default: false },
        namespace: { type: 'string', multiple: true, default: [] },
        'public-key': { type: 'string' },
        help: { type: 'boolean', short: 'h', default: false },
      },
    })
    if (values.help || args.length === 0) return undefined
    const [what, from, ...more] = positionals
    if (what !== 'shellhub' || from === undefined || more.length > 0)
      throw new Error('shellhub and one source are expected')
    const {
      'dry-run': dryRun,
      'leave-out': leaveOut,
      'same-people': samePeople,
      namespace: namespaces,
    } = values
    return { from, dryRun, leaveOut, samePeople, namespaces, publicKey: values['public-key'] }
  } catch (cause) {
    // The message does not repeat the arguments, because they may contain a password.
    throw new Failure('invalid', { message: usage, cause })
  }
}

function textOf(file: string): string {
  try {
    return readFileSync(path.resolve(file), 'utf8')
  } catch (cause) {
    throw new Failure('invalid', { message: `The file ${file} cannot be read.`, cause })
  }
}

function placeOf(url: string): string {
  const { hostname, port, pathname } = new URL(url)
  return `${hostname}:${port || 5432}${pathname}`
}

async function open(from: string, ours: string): Promise<Source> {
  if (/^postgres(ql)?:\/\//.test(from)) {
    if (!URL.canParse(from))
      throw new Failure('invalid', { message: 'The address of the PostgreSQL database is not valid.' })
    if (ours !== '' && placeOf(from) === placeOf(ours))
      throw new Failure('invalid', {
        message: 'This is the database of HAWSER_DATABASE: Hawser needs one of its own.',
      })
    return openTables(await openShellHub(from))
  }
  if (/^[a-z+]+:\/\//.test(from))
    throw new Failure('invalid', {
      message:
        'A folder of JSON files or the address of a PostgreSQL database is expected; see `hawser import`.',
    })
  return openDump(path.resolve(from))
}

export async function importShellHub(
  config: Config,
  { from, publicKey, ...options }: Wanted,
): Promise<{ done: boolean; lines: string[] }> {
  const signingKey = publicKey === undefined ? undefined : readShellHubKey(textOf(publicKey))
  await using parts = new AsyncDisposableStack()
  const source = parts.use(await open(from, config.HAWSER_DATABASE))
  const fresh = !(await isInstalled({ url: config.HAWSER_DATABASE, folder: config.HAWSER_DATA }))
  const place = config.HAWSER_DATABASE ? 'the database of HAWSER_DATABASE' : config.HAWSER_DATA
  let folder = config.HAWSER_DATA
  if (options.dryRun && fresh && !config.HAWSER_DATABASE) {
    folder = mkdtempSync(path.join(os.tmpdir(), 'hawser-import-'))
    parts.defer(() => rmSync(folder, { recursive: true, force: true }))
  }
  const opened = parts.use(
    await openDatabase({
      url: config.HAWSER_DATABASE,
      folder,
      now: () => new Date(systemClock.now()).toISOString(),
      // Every failed query also rejects, and so reaches the caller.
      onError: () => undefined,
    }),
  )
  const { report, written } = await importFrom(
    {
      stores: stores(opened),
      vault: vault(masterKey(folder, config.HAWSER_SECRET)),
      clock: systemClock,
      keys: { parse: parsePublicKeyLine, line: publicKeyLine, fingerprint: fingerprintMd5 },
      billed: config.HAWSER_STRIPE_KEY !== '',
    },
    source,
    { ...options, signingKey },
  )
  const refused = report.problems > 0 && !options.leaveOut
  const outcome = refused
    ? 'Nothing was written. Repair what is in the way, or use --leave-out to go on without it.'
    : written
      ? 'Done. Start the server, and let its name, or SHELLHUB_SERVER_ADDRESS of the agents, point to it.'
      : 'This was a dry run: nothing was written.'
  return {
    done: !refused,
    lines: [
      `From ${source.title}, into ${place}${fresh ? ', a new installation' : ''}:`,
      '',
      ...report.lines(),
      '',
      outcome,
    ],
  }
}
