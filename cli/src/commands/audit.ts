// `hawser audit` shows the audit log, `--follow` continues with new entries, and `hawser audit verify` checks an
// export without the server: every hash, the numbers, and the signature of the head.
import { createHash, createPublicKey, verify as verifySignature } from 'node:crypto'
import { createReadStream } from 'node:fs'
import { createInterface } from 'node:readline'
import { setTimeout as sleep } from 'node:timers/promises'
import type { AuditEntry, AuditHead } from '@hawser/contract/audit'
import { hashedText, signedText } from '@hawser/contract/audit-chain'
import { client } from '@hawser/contract/client'
import { defined } from '@hawser/contract/defined'
import { wholeNumber, type Command } from '../command.ts'
import { CliError, usageCode } from '../errors.ts'
import { momentOf } from '../moment.ts'
import { fileText } from '../generated-commands.ts'
import { safeText } from '../safe-text.ts'

const follow_ms = 2000
const mostShown = 100_000

function lineOf({ seq, at, action, actor, source, target, detail }: AuditEntry): string {
  const about = Object.keys(detail).length === 0 ? '' : ` ${JSON.stringify(detail)}`
  const who = actor.name || actor.id || actor.kind
  const what = target.name || target.id
  return safeText(`${seq} ${at} ${action} ${what} by ${who}${source && ` from ${source}`}${about}`)
}

const list: Command = {
  words: ['audit', 'list'],
  summary: 'Shows the audit log: who changed what, who logged in, who was refused.',
  options: [
    { name: 'action', value: 'beginning', doc: 'such as `firewall.` or `device.accepted`' },
    { name: 'actor', value: 'name', doc: 'the id or the name of who did it' },
    { name: 'target', value: 'name', doc: 'the id or the name of what it was done to' },
    { name: 'source', value: 'address', doc: 'the address that it came from' },
    { name: 'from', value: 'moment', doc: 'not before, such as 2026-11-17T10:00:00Z, or 2h: two hours ago' },
    { name: 'to', value: 'moment', doc: 'before' },
    { name: 'limit', value: 'number', doc: 'the number of entries; default: 50' },
    { name: 'follow', short: 'f', doc: 'continues with new entries until Ctrl-C' },
  ],
  async run(given, context) {
    const limit = wholeNumber(given, 'limit', 50, 1, mostShown)
    const api = client(context.options())
    const filter = defined({
      ...Object.fromEntries(['action', 'actor', 'target', 'source'].map((name) => [name, given.value(name)])),
      from: momentOf(given.value('from')),
      to: momentOf(given.value('to')),
    })
    const show = (entries: readonly AuditEntry[]): void => {
      for (const entry of entries)
        process.stdout.write(context.output === 'json' ? `${JSON.stringify(entry)}\n` : `${lineOf(entry)}\n`)
    }
    // Newer entries are for --follow.
    let after = (await api.audit.head({})).body.seq
    const newest: AuditEntry[] = []
    for (let before: number | null = after + 1; before !== null && newest.length < limit;) {
      const page: { entries: AuditEntry[]; next: number | null } = (
        await api.audit.list({ query: { ...filter, before, limit: Math.min(500, limit - newest.length) } })
      ).body
      newest.push(...page.entries)
      before = page.next
    }
    show(newest.toReversed())
    if (newest.length === 0 && !given.flag('follow')) context.say('There is nothing here.')
    if (given.flag('follow') !== true) return undefined
    for (;;) {
      const { entries, next } = (await api.audit.list({ query: { ...filter, after, limit: 500 } })).body
      show(entries)
      after = next ?? entries.at(-1)?.seq ?? after
      if (next === null) await sleep(follow_ms)
    }
  },
}

const damaged = (sentence: string): CliError => new CliError(sentence, 1)

function parsed(text: string, where: string): unknown {
  try {
    return JSON.parse(text) as unknown
  } catch {
    throw damaged(`${where} is not JSON.`)
  }
}

function isSigned({ public_key, signature, ...head }: AuditHead): boolean {
  try {
    const x = Buffer.from(public_key, 'base64').toString('base64url')
    const key = createPublicKey({ key: { kty: 'OKP', crv: 'Ed25519', x }, format: 'jwk' })
    return verifySignature(null, Buffer.from(signedText(head)), key, Buffer.from(signature, 'base64'))
  } catch {
    // An invalid key has signed nothing.
    return false
  }
}

/** A head saved earlier: the answer of `hawser audit head -o json`. */
function keptHead(file: string): AuditHead {
  const head = parsed(fileText(file), file) as AuditHead
  if (typeof head !== 'object' || head === null || !isSigned(head))
    throw damaged(`${file} is not a head signed by a server.`)
  return head
}

/** An export that was found to be complete. */
export interface CheckedExport {
  readonly head: AuditHead
  readonly first: AuditEntry
  readonly last: AuditEntry
}

/** Throws an error that names the first broken line. */
export async function checkExport(lines: AsyncIterable<string>, kept?: AuditHead): Promise<CheckedExport> {
  let head: AuditHead | undefined
  let first: AuditEntry | undefined
  let last: AuditEntry | undefined
  let sawKept = false
  let line = 0
  for await (const text of lines) {
    line += 1
    const where = `Line ${line}`
    if (head) throw damaged(`${where} comes after the head.`)
    const value = parsed(text, where)
    if (typeof value !== 'object' || value === null) throw damaged(`${where} is not an entry.`)
    if ('head' in value) {
      head = value.head as AuditHead
      continue
    }
    const entry = value as AuditEntry
    if (last && (entry.seq !== last.seq + 1 || entry.tenant_id !== last.tenant_id))
      throw damaged(`${where}: entry ${entry.seq} does not follow entry ${last.seq}; some are missing.`)
    if (last && hashOf(last.hash, entry) !== entry.hash)
      throw damaged(`${where}: entry ${entry.seq} was changed, or the one before it.`)
    if (kept?.seq === entry.seq) {
      if (kept.hash !== entry.hash || kept.tenant_id !== entry.tenant_id)
        throw damaged(`Entry ${entry.seq} is not the one that the stored head names: the log was rewritten.`)
      sawKept = true
    }
    first ??= entry
    last = entry
  }
  if (typeof head !== 'object' || head === null)
    throw damaged('The export has no head at its end: it is incomplete.')
  if (!first || !last) throw damaged('The export has no entries.')
  if (first.seq !== head.first_seq || hashOf(head.first_hash, first) !== first.hash)
    throw damaged(`Entry ${first.seq} does not follow what the head names: entries before it are missing.`)
  if (last.seq !== head.seq || last.hash !== head.hash || last.tenant_id !== head.tenant_id)
    throw damaged(`The export ends with entry ${last.seq}, and the head names entry ${head.seq}.`)
  if (!isSigned(head)) throw damaged('The signature of the head is wrong.')
  if (kept && !sawKept)
    throw damaged(`The export does not have entry ${kept.seq}, which the stored head names.`)
  return { head, first, last }
}

const verify: Command = {
  words: ['audit', 'verify'],
  summary:
    'Checks an export of the audit log without the server: that nothing in it was changed or left out.',
  arguments: [{ name: 'file', doc: 'made by `hawser audit export`', completes: 'file' }],
  options: [
    {
      name: 'key',
      value: 'base64',
      doc: 'the public key that must have signed; `hawser audit head` shows it',
    },
    {
      name: 'head',
      value: 'file',
      doc: 'a head stored earlier (`hawser audit head -o json`), which the export must contain',
      completes: 'file',
    },
  ],
  details: ['An export with a filter leaves entries out, so it cannot be verified.'],
  async run(given, context) {
    const [file = ''] = given.words
    const kept = given.value('head') === undefined ? undefined : keptHead(given.value('head') ?? '')
    const lines = createInterface({ input: createReadStream(file), crlfDelay: Infinity })
    const { head, first, last } = await checkExport(lines, kept).catch((error: unknown) => {
      // A missing file, or a folder.
      if (error instanceof Error && 'syscall' in error)
        throw new CliError(`${file} cannot be read: ${error.message}.`, usageCode, error)
      throw error
    })
    const key = given.value('key') ?? kept?.public_key
    if (key !== undefined && key !== head.public_key)
      throw damaged(`The head is signed with another key: ${safeText(head.public_key)}`)
    const entries = last.seq - first.seq + 1
    if (context.output === 'json') context.print({ ...head, entries })
    else
      process.stdout.write(
        `${entries} entries, ${first.seq} to ${last.seq}, are as they were written; ` +
          `signed at ${safeText(head.signed_at)} with ${safeText(head.public_key)}.\n`,
      )
    if (key === undefined)
      context.say('To check whose key that is, give --key: `hawser admin audit key` prints the server’s.')
  },
}

function hashOf(previous: string, entry: AuditEntry): string {
  try {
    return createHash('sha256').update(hashedText(previous, entry)).digest('hex')
  } catch {
    // A line that is not an entry has no hash.
    return ''
  }
}

export const auditCommands: readonly Command[] = [list, verify]
