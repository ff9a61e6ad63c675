// Writes docs/reference/ from the contract: what every operation takes and gives, who may call it, how it can
// fail, and the OpenAPI document; and from the table of settings how a server is configured. It also writes the
// index of docs/decisions/ from the decisions. The pages are checked in, so that they can be read without running
// anything; a test compares them with what `referencePages` and `decisionsPage` give, so that they cannot fall
// behind. A new page of the reference is one more row of `pages`.
import { mkdirSync, readdirSync, readFileSync, writeFileSync } from 'node:fs'
import { addresses, type NamedOperation, operations } from '@hawser/contract'
import { type Access, rank, type Role, roles } from '@hawser/contract/access'
import { auditActions, declaredActions, type AuditAction } from '@hawser/contract/audit-actions'
import { failureHeader, failures, type FailureKind } from '@hawser/contract/failures'
import {
  callLimits,
  deviceLimits,
  peopleLimits,
  serviceLimits,
  sessionLimits,
  type Limit,
} from '@hawser/contract/limits'
import {
  type DocumentedOperation,
  type Field,
  fieldsOf,
  nouns,
  openapi,
  rulesOf,
  type Schema,
  typeOf,
} from '@hawser/contract/openapi'
import { allFailures } from '@hawser/contract/operation'
import { settings } from '../server/src/config.ts'

const { version } = JSON.parse(readFileSync(new URL('../package.json', import.meta.url), 'utf8')) as {
  version: string
}
const document = openapi({ version })
const documented = new Map(
  Object.values(document.paths).flatMap((methods) =>
    Object.values(methods).map((entry) => [entry.operationId, entry] as const),
  ),
)
const notice = '<!-- Written by `npm run reference` from the code; changes made here are lost. -->'

const pages: Record<string, () => string> = {
  'operations.md': operationsPage,
  'access.md': accessPage,
  'failures.md': failuresPage,
  'audit.md': auditPage,
  'limits.md': limitsPage,
  'configuration.md': configurationPage,
  'openapi.json': () => `${JSON.stringify(document, null, 2)}\n`,
}

/** File name → text of each page of the reference. */
export function referencePages(): Record<string, string> {
  return Object.fromEntries(Object.entries(pages).map(([name, page]) => [name, page()]))
}

function page(...parts: readonly string[]): string {
  return `${[notice, ...parts.filter(Boolean)].join('\n\n')}\n`
}

function table(head: readonly string[], rows: readonly (readonly string[])[]): string {
  if (rows.length === 0) return ''
  // A bar ends a cell even inside code, and a pattern may have one.
  const line = (cells: readonly string[]) =>
    `| ${cells.map((cell) => cell.replaceAll('|', '\\|')).join(' | ')} |`
  return [line(head), line(head.map(() => '---')), ...rows.map(line)].join('\n')
}

const code = (text: string) => `\`${text}\``
/** The address of an operation’s heading, as Markdown readers make it. */
const anchor = (id: string) => id.toLowerCase().replaceAll('.', '')

// operations.md

function operationsPage(): string {
  const contents = Object.entries(nouns).map(([noun, [title, sentence]]) => {
    const links = operations
      .filter((named) => named.noun === noun)
      .map(({ id, verb }) => `[${verb}](#${anchor(id)})`)
    return `- [${title}](#${title.toLowerCase().replaceAll(' ', '-')}): ${sentence}\n  ${links.join(' · ')}`
  })
  const chapters = Object.entries(nouns).flatMap(([noun, [title, sentence]]) => [
    `## ${title}`,
    sentence,
    ...operations.filter((named) => named.noun === noun).flatMap(operationParts),
  ])
  const shapes = Object.entries(document.components.schemas).flatMap(([name, schema]) => [
    `### ${name}`,
    schema.description ?? '',
    fieldTable(fieldsOf(schema)) || `${typeOf(schema)}.`,
  ])
  return page(
    '# Operations',
    'Everything that the server offers over HTTP. A body is JSON both ways. A list is an array; its header `X-Total-Count` says how ' +
      'many there are before paging. Who may do what is on [one page](access.md), how things fail on [another](failures.md), and the ' +
      'same for programs in [openapi.json](openapi.json).',
    contents.join('\n'),
    ...chapters,
    '## Shapes',
    'What several operations answer with.',
    ...shapes,
  )
}

function operationParts({ id, op }: NamedOperation): string[] {
  const entry = documented.get(id)
  if (!entry) throw new Error(`${id} is missing in the OpenAPI document`)
  const [main, ...others] = addresses(op).map(({ method, path }) => code(`${method} ${path}`))
  return [
    `### ${id}`,
    `**${op.title}.** ${op.summary}${op.deprecated ? ' Deprecated.' : ''}`,
    `${main}${others.length > 0 ? `; also ${others.join(', ')}` : ''}`,
    `Who: ${entry['x-access']}.`,
    inputTable(entry),
    ...answerParts(entry),
    `Failures, by their kind:\n\n${failureLines(entry).join('\n')}`,
    `\`\`\`sh\n${entry['x-codeSamples'][0].source}\n\`\`\``,
  ]
}

function inputTable(entry: DocumentedOperation): string {
  const parameters = (entry.parameters ?? []).map(({ name, in: where, required, schema, description = '' }) =>
    inputRow({ name, required, type: typeOf(schema), rules: rulesOf(schema), description }, where),
  )
  const body = entry.requestBody?.content['application/json']?.schema
  const fields = body ? fieldsOf(body).map((field) => inputRow(field, 'body')) : []
  const whole = body && fields.length === 0 ? [['', 'body', 'yes', typeOf(body), body.description ?? '']] : []
  return table(['Field', 'In', 'Needed', 'Type and rules', 'Meaning'], [...parameters, ...fields, ...whole])
}

function inputRow(field: Field, where: string): string[] {
  return [
    code(field.name),
    where,
    field.required ? 'yes' : '',
    [field.type, ...field.rules].join('; '),
    field.description,
  ]
}

function fieldTable(fields: readonly Field[]): string {
  return table(
    ['Field', 'Type', 'Meaning'],
    fields.map((field) => [code(field.name), [field.type, ...field.rules].join('; '), field.description]),
  )
}

function answerParts(entry: DocumentedOperation): string[] {
  const answer = entry.responses['200']
  const [type, content] = Object.entries(answer?.content ?? {})[0] ?? []
  const headers = Object.entries(answer?.headers ?? {}).map(
    ([name, { description = '' }]) => `${code(name)} (${description.replace(/\.$/, '')})`,
  )
  const beside = headers.length > 0 ? `; header ${headers.join(', ')}` : ''
  if (!type || !content) return [`Answer: 200 without a body${beside}.`]
  const what = type === 'application/json' ? shape(content.schema) : code(type)
  return [`Answer: 200, ${what}${beside}.`, fieldTable(fieldsOf(content.schema))]
}

function shape(schema: Schema): string {
  if (schema.items) return `array of ${shape(schema.items)}`
  return schema.$ref ? `[${typeOf(schema)}](#${typeOf(schema).toLowerCase()})` : typeOf(schema)
}

function failureLines(entry: DocumentedOperation): string[] {
  return Object.entries(entry.responses).flatMap(([status, response]) =>
    (response['x-failures'] ?? []).map((kind) => `- ${status} ${code(kind)}: ${failures[kind].message}`),
  )
}

// access.md

const columns = ['anyone', 'device', ...roles, 'API key'] as const

/** May the caller of this column call it? An API key is taken to have the role that is needed. */
function mayCall(access: Access, column: (typeof columns)[number]): boolean {
  const isRole = (name: string): name is Role => roles.some((role) => role === name)
  if (access.who === 'anyone') return true
  if (access.who === 'device') return column === 'device'
  if (access.who === 'user') return isRole(column)
  if (access.who === 'user-or-key') return isRole(column) || column === 'API key'
  if (column === 'device') return access.who === 'device-or-member'
  if (column === 'API key') return access.apiKey
  return isRole(column) && rank(column) >= rank(access.role)
}

function accessPage(): string {
  const rows = operations.map(({ id, op }) => [
    `[${id}](operations.md#${anchor(id)})`,
    ...columns.map((column) => (mayCall(op.access, column) ? 'yes' : '')),
  ])
  const signedIn = operations.filter(({ op }) => op.access.who === 'user' || op.access.who === 'user-or-key')
  return page(
    '# Who may call what',
    'What is not marked is refused. A role is the caller’s role in the namespace; an API key has a role as well and may do no more ' +
      'than a member with that role. A device may call what is marked only for itself.',
    table(['Operation', ...columns], rows),
    `These need a sign-in but no namespace and no role in one: ${signedIn.map(({ id }) => code(id)).join(', ')}.`,
  )
}

// failures.md

function failuresPage(): string {
  const rows = Object.entries(failures).map(([kind, { status, message }]) => {
    const ending = operations
      .filter(({ op }) => allFailures(op).includes(kind as FailureKind))
      .map(({ id }) => code(id))
    const where =
      ending.length === operations.length
        ? 'all'
        : ending.length === 0
          ? 'no operation; requests that reach none'
          : ending.join(', ')
    return [code(kind), String(status), message, where]
  })
  return page(
    '# Failures',
    'Every failure has a kind, a status and a sentence. The kind is in the response header ' +
      `${code(failureHeader)}, spelled as in this table; programs decide by it. The body is ` +
      '`{"message": "…"}`. On some operations a 400 or 409 is instead a bare array of the names of the ' +
      'offending fields, and billing adds a `code`; the operation’s own entry says so in ' +
      '[openapi.json](openapi.json). The sentence is for people: it may be more precise than the one here, ' +
      'and it may change.',
    'A client that meets a kind that it does not know, or none (a proxy, an older server), decides by the status.',
    table(['Kind', 'Status', 'Meaning', 'Operations'], rows),
  )
}

// audit.md

function auditPage(): string {
  const leaving = (action: AuditAction): string =>
    operations
      .filter(({ op }) => declaredActions(op.audit).includes(action))
      .map(({ id }) => `[${id}](operations.md#${anchor(id)})`)
      .join(', ')
  const rows = (Object.keys(auditActions) as AuditAction[]).map((action) => [
    code(action),
    auditActions[action],
    leaving(action) || 'no operation; an event',
  ])
  const silent = operations.flatMap(({ id, op }) =>
    typeof op.audit === 'object' && 'none' in op.audit
      ? [[`[${id}](operations.md#${anchor(id)})`, op.audit.none]]
      : [],
  )
  return page(
    '# Actions of the audit log',
    'Every operation that changes something, or shows a recording, leaves one of these. A call that was refused, or that changed ' +
      'nothing, leaves nothing. Only a failed test of a receiver leaves its entry.',
    table(['Action', 'Meaning', 'Operations'], rows),
    'These change nothing that the log is for:',
    table(['Operation', 'Reason'], silent),
  )
}

// limits.md

const spans: readonly (readonly [ms: number, word: string])[] = [
  [86_400_000, 'day'],
  [3_600_000, 'hour'],
  [60_000, 'minute'],
  [1_000, 'second'],
]

function spanOf(span_ms: number): string {
  const [ms, word] = spans.find(([unit_ms]) => span_ms % unit_ms === 0) ?? [1, 'millisecond']
  if (span_ms === ms) return word === 'hour' ? 'an hour' : `a ${word}`
  return `in ${span_ms / ms} ${word}s`
}

function mostOf({ max, window_ms, inBytes, setting, times = 1, kind }: Limit): string {
  const fallback = setting && settings[setting as keyof typeof settings].fallback
  if (fallback !== undefined) {
    const [most = '', seconds] = fallback.split('/')
    const span = seconds === undefined ? 'at a time' : spanOf(Number(seconds) * 1000)
    return `${(Number(most) * times).toLocaleString('en')} ${span} by default`
  }
  const most = max ?? 0
  const number = most >= 1024 * 1024 ? `${most / 1024 / 1024} MiB` : most.toLocaleString('en')
  if (inBytes) return `half of ${number} at a time`
  if (window_ms !== undefined) return `${number} ${spanOf(window_ms)}`
  return kind === 'locked' || kind === 'headersTooLarge' ? number : `${number} at a time`
}

function beyondOf({ kind = 'tooMany', message, otherwise }: Limit): string {
  const { status, message: usual } = failures[kind]
  const failed = `${status} ${code(kind)}: ${message ?? usual}`
  if (otherwise === undefined) return failed
  return message === undefined ? otherwise : `${otherwise}: ${message}`
}

function limitsPage(): string {
  const chapter = (title: string, limits: Readonly<Record<string, Limit>>): readonly string[] => [
    `## ${title}`,
    table(
      ['What is limited', 'Counted by', 'At most', 'Beyond it', 'Setting'],
      Object.values(limits).map((limit) => [
        limit.what,
        limit.by,
        mostOf(limit),
        beyondOf(limit),
        limit.setting ? `[${code(limit.setting)}](configuration.md)` : '',
      ]),
    ),
  ]
  return page(
    '# Limits',
    'What gave me 429? Find the sentence of the answer below. The header `Retry-After` says after how many seconds to call again, and ' +
      `${code(failureHeader)} has the [kind](failures.md). Several nodes of a server count most rates of calls together, and everything else each by itself. An address is an ` +
      'IPv4 address or a /64 of IPv6.',
    'Of memory that is counted in bytes one caller gets at most half; a few who take so much leave less for each other.',
    ...chapter('Calls', callLimits),
    ...chapter('People', peopleLimits),
    ...chapter('Devices', deviceLimits),
    ...chapter('Sessions', sessionLimits),
    ...chapter('Services', serviceLimits),
  )
}

// configuration.md

function configurationPage(): string {
  const rows = Object.entries(settings).map(([name, { doc, fallback, example }]) => [
    code(name),
    doc,
    fallback === '' ? 'empty' : code(fallback),
    code(example),
  ])
  return page(
    '# Configuration',
    'The server reads its settings from the environment, once, when it starts. A setting that cannot be used stops it with a list of ' +
      'all that are wrong; so does a variable that begins with `HAWSER_` and is none of these. `hawser admin config print` shows what ' +
      'is in force, without the secrets.',
    table(['Setting', 'Meaning', 'Default', 'Example'], rows),
  )
}

// docs/decisions/README.md

const decisions = new URL('decisions/', import.meta.url)
export const decisionsIndex = new URL('README.md', decisions)

/** The index of the decisions: each with its number, title and status, as its own page states them. */
export function decisionsPage(): string {
  const names = readdirSync(decisions).filter((name) => /^\d{4}-.*\.md$/.test(name))
  const rows = names.toSorted().map((name) => {
    const text = readFileSync(new URL(name, decisions), 'utf8')
    const [, number, title, status] = /^# (\d+)\. (.+)\n\n\*\*Status\.\*\* ([^]+?)\.\n\n/.exec(text) ?? []
    if (!number || !title || !status || Number(number) !== Number(name.slice(0, 4)))
      throw new Error(`docs/decisions/${name} does not begin with its number, title and status`)
    return [number, `[${title}](${name})`, status.replaceAll('\n', ' ')]
  })
  return page(
    '# Decisions',
    'Each page records one decision: its context, what was decided and why, what was not taken, and what follows. How things work in ' +
      'detail is in the [flows](../flows/README.md). A number is used once.',
    table(['Number', 'Title', 'Status'], rows),
  )
}

if (import.meta.main) {
  const folder = new URL('reference/', import.meta.url)
  mkdirSync(folder, { recursive: true })
  for (const [name, text] of Object.entries(referencePages())) writeFileSync(new URL(name, folder), text)
  writeFileSync(decisionsIndex, decisionsPage())
}
