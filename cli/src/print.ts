// Output: a table for people, JSON for programs. A table shows the columns that matter, shortens ids to a
// prefix that still names the object, and fits the terminal. JSON is the server's full response. Control
// characters in values never reach the terminal.
import { safeJson, safeText } from './safe-text.ts'

export interface Shape {
  /** Paths of fields, in this order. */
  readonly columns?: readonly string[] | undefined
  /** On all pages. */
  readonly total?: number | undefined
  /** The sentence for an empty list. */
  readonly empty?: string
}

/**
 * The columns of lists, by noun or by operation; one with a question mark only where some row has it. Other
 * lists show their plain fields.
 */
export const columnsOf: Readonly<Record<string, readonly string[]>> = {
  devices: ['name', 'status', 'online', 'tags', 'info.pretty_name', 'last_seen', 'uid'],
  sessions: [
    'uid',
    'device.name',
    'username',
    'person.name',
    'ip_address',
    'started_at',
    'active',
    'held',
    'recorded',
    'resumes?',
  ],
  publicKeys: ['name', 'username', 'filter', 'owner_name', 'certificate_authority', 'fingerprint_sha256'],
  enrolmentTokens: ['name', 'hint', 'used', 'most_devices', 'accept', 'expires_at', 'id'],
  acceptRules: ['id', 'priority', 'source', 'hostname', 'mac', 'platform', 'tags'],
  budgets: ['id', 'device_name', 'tag', 'used', 'bytes', 'state', 'month'],
  enrolmentKeys: ['name', 'fingerprint_sha256', 'created_at'],
  apiKeys: ['name', 'role', 'expires_in', 'created_at'],
  namespaces: ['name', 'device_count', 'members', 'tenant_id'],
  firewall: ['id', 'priority', 'action', 'active', 'source_ip', 'username', 'filter'],
  logins: ['reference', 'last_at', 'reason', 'sshid', 'source', 'times'],
  connectors: ['uid', 'enable', 'address', 'port', 'secure', 'status.state'],
  auditStreams: ['name', 'kind', 'state', 'sent_seq', 'unsent', 'dead_letters', 'uid'],
  'auditStreams.deadLetters': ['id', 'from_seq', 'to_seq', 'reason', 'queued', 'at', 'error'],
  invitations: ['email', 'role', 'invited_by', 'sent_at', 'expires_at', 'id'],
  signIns: ['client', 'source', 'created_at', 'used_at', 'used_from', 'current', 'id'],
  services: ['name', 'device_name', 'scheme', 'host', 'port', 'audience', 'url'],
  webEndpoints: ['full_address', 'device.name', 'host', 'port', 'ttl', 'address'],
  announcements: ['date', 'title', 'uuid'],
}

const mostColumns = 7

export function print(value: unknown, output: 'table' | 'json', shape: Shape = {}): void {
  if (output === 'json') {
    if (value !== undefined) process.stdout.write(`${safeJson(value)}\n`)
    return
  }
  if (value === undefined) process.stderr.write('Done.\n')
  else if (Array.isArray(value)) printRows(value, shape)
  else if (typeof value === 'object' && value !== null) printObject(value as Record<string, unknown>)
  else process.stdout.write(`${cell(value)}\n`)
}

function printRows(
  rows: readonly unknown[],
  { columns, total, empty = 'There is nothing here.' }: Shape,
): void {
  if (rows.length === 0) return void process.stderr.write(`${empty}\n`)
  if (rows.some((row) => typeof row !== 'object' || row === null)) {
    process.stdout.write(rows.map((row) => `${cell(row)}\n`).join(''))
  } else {
    const objects = rows as Record<string, unknown>[]
    const has = (name: string): boolean => objects.some((row) => at(row, name) !== undefined)
    const shown = (columns ?? plainFields(objects[0]!)).flatMap((name) =>
      !name.endsWith('?') ? name : has(name.slice(0, -1)) ? name.slice(0, -1) : [],
    )
    const head = shown.map(headingOf)
    const cells = objects.map((row) => shown.map((name) => cell(at(row, name), name)))
    process.stdout.write(aligned([head, ...cells], process.stdout.isTTY ? process.stdout.columns : undefined))
    noteConflicts(objects)
  }
  if (total !== undefined && total > rows.length)
    process.stderr.write(`${rows.length} of ${total}; --all shows all, --page 2 the next.\n`)
}

/** `device.name` is the DEVICE, `status.state` the STATE. */
function headingOf(column: string): string {
  const words = column.split('.')
  const word = words.at(-1) === 'name' ? words.at(-2) : words.at(-1)
  return (word ?? column).replaceAll('_', ' ').toUpperCase()
}

/** A person would overlook devices whose identity two machines use in a column. */
function noteConflicts(rows: readonly Record<string, unknown>[]): void {
  for (const { conflict, name } of rows)
    if (typeof conflict === 'object' && conflict !== null)
      process.stderr.write(
        `${cell(name)}: two machines use this identity; \`hawser devices get\` shows where they connect from.\n`,
      )
}

function plainFields(row: Record<string, unknown>): string[] {
  const plain = Object.keys(row).filter((name) => typeof row[name] !== 'object')
  return (plain.length > 0 ? plain : Object.keys(row)).slice(0, mostColumns)
}

function printObject(object: Record<string, unknown>, indent = ''): void {
  const width = Math.max(0, ...Object.keys(object).map((name) => safeText(name).length))
  for (const [name, value] of Object.entries(object)) {
    const label = `${indent}${safeText(name).padEnd(width)}  `
    if (
      typeof value === 'object' &&
      value !== null &&
      !Array.isArray(value) &&
      Object.keys(value).length > 0
    ) {
      process.stdout.write(`${label.trimEnd()}\n`)
      printObject(value as Record<string, unknown>, `${indent}  `)
    } else {
      process.stdout.write(`${label}${cell(value)}\n`)
    }
  }
}

function at(row: Record<string, unknown>, name: string): unknown {
  return name
    .split('.')
    .reduce<unknown>(
      (value, key) =>
        typeof value === 'object' && value !== null ? (value as Record<string, unknown>)[key] : undefined,
      row,
    )
}

/** One value on one line. In a column of a table, ids and timestamps are shortened. */
function cell(value: unknown, column?: string): string {
  if (value === undefined || value === null || value === '') return '-'
  if (typeof value === 'boolean') return value ? 'yes' : 'no'
  if (typeof value === 'string') {
    if (column && /^[0-9a-f]{64}$/.test(value)) return value.slice(0, 12)
    if (column && /^\d{4}-\d\d-\d\dT\d\d:\d\d:\d\d/.test(value))
      return `${value.slice(0, 10)} ${value.slice(11, 16)}`
    return safeText(value)
  }
  if (typeof value === 'number')
    return column === 'expires_in'
      ? value < 0
        ? 'never'
        : new Date(value * 1000).toISOString().slice(0, 10)
      : String(value)
  if (Array.isArray(value)) {
    if (column === 'members') return String(value.length)
    return value.length === 0
      ? '-'
      : value
          .map((one: unknown) => (typeof one === 'object' ? safeText(JSON.stringify(one)) : cell(one)))
          .join(', ')
  }
  return Object.entries(value as Record<string, unknown>)
    .map(([name, inner]) => `${safeText(name)}: ${cell(inner)}`)
    .join('; ')
}

/** Aligns columns. Lines longer than `most` are cut, because wrapped rows cannot be read. */
export function aligned(rows: readonly (readonly string[])[], most?: number): string {
  const widths = (rows[0] ?? []).map((_, i) => Math.max(...rows.map((row) => (row[i] ?? '').length)))
  return rows
    .map((row) => {
      const line = row
        .map((text, i) => text.padEnd(widths[i] ?? 0))
        .join('  ')
        .trimEnd()
      return `${most && line.length > most ? `${line.slice(0, most - 1)}…` : line}\n`
    })
    .join('')
}
