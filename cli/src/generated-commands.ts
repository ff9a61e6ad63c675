// The commands generated from the contract. Each operation is `hawser <noun> <verb>`: parameters of its path
// are arguments, fields of its query and its body are options. A new operation is a command without further
// code. Where an argument is the id of a device, a session, a namespace or a member, a name works too
// (resolve.ts).
import { once } from 'node:events'
import { readFileSync } from 'node:fs'
import { operations, type NamedOperation } from '@hawser/contract'
import { defined } from '@hawser/contract/defined'
import { ApiError, call, client, type ClientOptions, type RawInput } from '@hawser/contract/client'
import { DeviceUid, NotAfter, NotBefore, patterns, SessionUid, TenantId } from '@hawser/contract/fields'
import { accessSentence, rulesOf, type Schema } from '@hawser/contract/openapi'
import { promptSecret, readInput } from './prompt.ts'
import type { Argument, Command, ParsedArgs, NameSource, Option } from './command.ts'
import { CliError, usageCode } from './errors.ts'
import type { Context } from './context.ts'
import { momentOf } from './moment.ts'
import { columnsOf } from './print.ts'
import {
  everyPage,
  findAuditStream,
  findDevice,
  findKey,
  findMember,
  findNamespace,
  findService,
  findSession,
} from './resolve.ts'
import { safeText, screenFilter } from './safe-text.ts'
import { openStream } from './stream.ts'

type Kind =
  | 'device'
  | 'session'
  | 'namespace'
  | 'member'
  | 'service'
  | 'public key'
  | 'enrolment key'
  | 'audit stream'
  | 'moment'

interface Field {
  readonly option: string
  /** The option as the field is called, if it has a shorter name. */
  readonly also?: string | undefined
  readonly path: readonly string[]
  readonly schema: Schema
  readonly required: boolean
  readonly kind: Kind | undefined
}

export const kebab = (name: string): string =>
  name
    .replaceAll(/([a-z])([A-Z])/g, '$1-$2')
    .replaceAll('_', '-')
    .toLowerCase()

const isSecret = (field: Field): boolean =>
  field.schema.type !== 'boolean' && /password|secret|^code$|-code$|^token$|^key$/.test(field.option)

const wholeBody: Option = {
  name: 'body',
  value: 'json',
  doc: 'the whole body: JSON, @file, or - for stdin; other options change it',
}

export function generatedCommands(): Command[] {
  return operations.map(commandFor)
}

export function commandFor(named: NamedOperation): Command {
  const { id, noun, verb, op } = named
  const params = Object.entries(schemaOf(op.params)?.properties ?? {}).map(([name, schema]) => ({
    name,
    schema,
    kind: kindOf(noun, name, schema, op.path),
  }))
  const query = fieldsIn(schemaOf(op.query))
  const body = fieldsIn(schemaOf(op.body))
  const paged = op.list !== undefined && query.some(({ option }) => option === 'page')
  const more: Option[] = [
    ...(op.body ? [wholeBody] : []),
    ...(paged ? [{ name: 'all', doc: 'all pages' }] : []),
  ]
  return {
    words: [kebab(noun), kebab(verb)],
    summary: op.summary,
    arguments: params.map(({ name, schema, kind }): Argument => ({
      name: kind?.replace(' ', '-') ?? kebab(name),
      doc: docOf(schema, kind),
      completes: nameable(kind),
    })),
    options: [...[...query, ...body].map((field) => optionOf(field)), ...more],
    details: [
      `Who may: ${accessSentence(op.access)}.`,
      `Calls ${op.method} ${op.path}.`,
      ...(op.deprecated ? ['An older form, for old clients.'] : []),
    ],
    async run(given, context) {
      const options = op.access.who === 'anyone' ? context.anonymous() : context.options()
      const columns = columnsOf[id] ?? columnsOf[noun]
      const input: RawInput = {
        params: await paramsOf(params, given, options),
        query: (await fieldValues(query, given, options)) as Record<string, string>,
      }
      const whole = op.body ? await bodyOf(body, given, options) : undefined
      if (paged && given.flag('all')) {
        const read = async (pages: object) => {
          const result = await callOrThrow(op, { ...input, query: { ...input.query, ...pages } }, options)
          return { body: result.body as unknown[], total: Number(result.headers.get('x-total-count')) }
        }
        context.print(await everyPage(read, progressOf(context)), { columns })
        return
      }
      if (op.streamed && (op.text || context.output === 'json')) {
        const filter = screenFilter()
        const piece = (chunk: string): string => (process.stdout.isTTY ? filter(chunk) : chunk)
        const stream = (await openStream(op, input, options)).setEncoding('utf8')
        for await (const chunk of stream)
          if (!process.stdout.write(piece(chunk as string))) await once(process.stdout, 'drain')
        return
      }
      const { body: answer, headers } = await callOrThrow(
        op,
        { ...input, ...defined({ body: whole }) },
        options,
      )
      if (op.text)
        process.stdout.write(process.stdout.isTTY ? screenFilter()(String(answer)) : String(answer))
      else
        context.print(
          answer,
          op.list
            ? { columns, total: Number(headers.get('x-total-count')) }
            : Array.isArray(answer)
              ? { columns }
              : {},
        )
      // Side effects of the change.
      const notice = headers.get('x-notice')
      if (notice) process.stderr.write(`${safeText(notice)}\n`)
    },
  }
}

/** For long lists, on terminals only. */
export function progressOf(context: Context): ((done: number, total: number) => void) | undefined {
  if (!process.stderr.isTTY || context.output === 'json') return undefined
  return (done, total) => void process.stderr.write(done < total ? `\r${done} of ${total} …` : '\r\u001b[K')
}

async function callOrThrow(op: NamedOperation['op'], input: RawInput, options: ClientOptions) {
  const result = await call(op, input, options)
  if (result.status >= 200 && result.status <= 299) return result
  const error = new ApiError(result)
  const rules = error.status === 400 ? rulesFor(op, error.fields ?? []) : []
  throw rules.length > 0
    ? new CliError([safeText(error.message), ...rules].join('\n'), usageCode, error)
    : error
}

/** The rule of each refused field, one per line. */
function rulesFor({ body }: NamedOperation['op'], names: readonly string[]): string[] {
  return fieldsIn(schemaOf(body))
    .filter(({ path }) => names.includes(path[0]!))
    .map(({ option, schema }) => {
      const rule = schema.description?.replace(/\.$/, '') ?? rulesOf(schema).join(', ')
      return `  --${option}${rule ? `: ${rule}` : ''}`
    })
}

async function paramsOf(
  params: readonly { name: string; kind: Kind | undefined }[],
  given: ParsedArgs,
  options: ClientOptions,
) {
  const found: Record<string, string> = {}
  for (const [i, { name, kind }] of params.entries())
    found[name] = await idOf(kind, given.words[i]!, options, found['tenant'])
  return found
}

async function idOf(
  kind: Kind | undefined,
  text: string,
  options: ClientOptions,
  tenant = '',
): Promise<string> {
  const api = client(options)
  if (kind === 'service')
    return new RegExp(patterns.uuid).test(text) ? text : (await findService(api, text)).id
  if (kind === 'device') return /^[0-9a-f]{64}$/.test(text) ? text : (await findDevice(api, text)).uid
  if (kind === 'session') return (await findSession(api, text)).uid
  if (kind === 'namespace') return (await findNamespace(api, text)).tenant_id
  if (kind === 'public key') return findKey((query) => api.publicKeys.list({ query }), kind, text)
  if (kind === 'enrolment key') return findKey((query) => api.enrolmentKeys.list({ query }), kind, text)
  if (kind === 'audit stream') return findAuditStream(api, text)
  if (kind === 'moment') return momentOf(text)
  return kind === 'member' ? findMember(api, tenant, text) : text
}

async function fieldValues(
  fields: readonly Field[],
  given: ParsedArgs,
  options: ClientOptions,
  into: Record<string, unknown> = {},
) {
  for (const field of fields) {
    const texts = given.values(field.option)
    if (texts.length === 0) continue
    const last = field.path.at(-1)!
    let place = into
    for (const name of field.path.slice(0, -1)) place = (place[name] ??= {}) as Record<string, unknown>
    if (field.schema.type === 'array' && isPlain(field.schema.items))
      place[last] = texts.map((text) => valueOf(field, field.schema.items!, text))
    else if (isSecret(field) && texts[0] === '-')
      place[last] = await promptSecret(field.option, `give --${field.option} a value`)
    else
      place[last] = field.kind
        ? await idOf(field.kind, texts[0]!, options)
        : valueOf(field, field.schema, texts[0]!)
  }
  return into
}

async function bodyOf(fields: readonly Field[], given: ParsedArgs, options: ClientOptions): Promise<unknown> {
  const whole = await readBody(given.value('body'))
  if (fields.length === 0) return whole ?? {}
  const body = await fieldValues(fields, given, options, (whole ?? {}) as Record<string, unknown>)
  const missing = fields.filter(({ required, path }) => required && !Object.hasOwn(body, path[0]!))
  if (missing.length > 0) {
    const each = missing.map(
      (field) => `--${field.option}${field.schema.type === 'boolean' ? ` or --no-${field.option}` : ''}`,
    )
    throw new CliError(`Missing: ${each.join(', ')}. --help explains them.`, usageCode)
  }
  return body
}

async function readBody(text: string | undefined): Promise<unknown> {
  if (text === undefined) return undefined
  const json = text === '-' ? await readInput() : text.startsWith('@') ? fileText(text.slice(1)) : text
  try {
    return JSON.parse(json) as unknown
  } catch (error) {
    throw new CliError(`--body is not JSON: ${(error as Error).message}.`, usageCode)
  }
}

export function fileText(file: string): string {
  try {
    return readFileSync(file, 'utf8')
  } catch (error) {
    throw new CliError(`${file} cannot be read: ${(error as Error).message}.`, usageCode, error)
  }
}

function valueOf(field: Field, schema: Schema, text: string): unknown {
  const wrong = (what: string): never => {
    throw new CliError(`--${field.option} is ${what}, not ${text}.`, usageCode)
  }
  const numeric =
    schema.type === 'integer' ||
    schema.type === 'number' ||
    schema.enum?.every((one) => typeof one === 'number')
  if (numeric)
    return /^-?\d+(\.\d+)?$/.test(text)
      ? Number(text)
      : wrong(schema.type === 'number' ? 'a number' : 'a whole number')
  if (schema.type === 'boolean') return text === 'true'
  if (isPlain(schema)) return text
  try {
    return JSON.parse(text) as unknown
  } catch {
    return isNullableText(schema) ? text : wrong('JSON')
  }
}

/** Text, or `null` for none. */
const isNullableText = ({ anyOf = [] }: Schema): boolean =>
  anyOf.length === 2 && ['null', 'string'].every((type) => anyOf.some((one) => one.type === type))

/** Whether a value needs no JSON syntax: strings, numbers, booleans and choices. */
function isPlain(schema: Schema | undefined): boolean {
  if (!schema) return false
  if (schema.anyOf) return schema.anyOf.every(isPlain)
  return (
    schema.enum !== undefined ||
    schema['const'] !== undefined ||
    /^(string|integer|number|boolean)$/.test(schema.type ?? '')
  )
}

/**
 * The leaf fields of an object. A union gives the fields of all its objects; the server checks combinations.
 */
function fieldsIn(schema: Schema | undefined, path: readonly string[] = [], required = true): Field[] {
  if (!schema) return []
  const branches = schema.anyOf?.filter((branch) => branch.properties)
  if (branches && branches.length > 0)
    return branches.flatMap((branch) => fieldsIn(branch, path, required && branches.length === 1))
  if (!schema.properties) {
    if (path.length === 0) return []
    const [option, kind] = [path.map(kebab).join('-'), kindOf('', '', schema, '')]
    if (kind === 'device' && option === 'device-uid')
      return [{ option: 'device', also: option, path, schema, required, kind }]
    return [{ option, path, schema, required, kind }]
  }
  const must = new Set(schema.required)
  return Object.entries(schema.properties).flatMap(([name, inner]) =>
    fieldsIn(inner, [...path, name], required && must.has(name) && inner['default'] === undefined),
  )
}

function optionOf(field: Field): Option {
  const { schema } = field
  const leaf = schema.type === 'array' && isPlain(schema.items) ? schema.items! : schema
  const many = leaf !== schema
  const choices = leaf.enum?.map(String)
  const fallback = schema['default'] === undefined ? '' : `; default: ${JSON.stringify(schema['default'])}`
  const doc = [
    docOf(schema, field.kind),
    isNullableText(schema) ? '(null: none)' : '',
    field.required ? '(required)' : '',
    many ? '(may be repeated)' : '',
  ]
    .filter(Boolean)
    .join(' ')
  return {
    name: field.option,
    also: field.also,
    ...(schema.type === 'boolean' ? {} : { value: field.kind ?? valueName(leaf) }),
    doc: `${doc || 'see the reference'}${isSecret(field) ? '; - prompts for it' : ''}${fallback}`,
    many,
    choices,
    completes: nameable(field.kind),
  }
}

function valueName(schema: Schema): string {
  if (schema.type === 'integer') return 'number'
  return isPlain(schema) || isNullableText(schema) ? 'text' : 'json'
}

function docOf(schema: Schema, kind: Kind | undefined): string {
  if (kind === 'device') return 'a device: its name, or its uid or the start of it'
  if (kind === 'session') return 'a session: its uid or the start of it, or `last`'
  if (kind === 'namespace') return 'a namespace: its name or its id'
  if (kind === 'service') return 'a service: its name, or device/name, or its id'
  if (kind === 'member') return 'a member: the username or the id'
  if (kind === 'public key' || kind === 'enrolment key')
    return 'a key: its name or its fingerprint, SHA-256 or MD5'
  if (kind === 'audit stream') return 'an audit stream: its name or its uid'
  if (kind === 'moment') return `${schema.description?.replace(/\.$/, '')}; or 7d: a week ago`
  const choices = (schema.items ?? schema).enum?.join(', ')
  return (
    [schema.description?.replace(/\.$/, ''), choices && `one of ${choices}`].filter(Boolean).join('; ') ||
    (schema.type ?? '')
  )
}

function nameable(kind: Kind | undefined): NameSource | undefined {
  const named = ['device', 'session', 'namespace', 'service'] as const
  return named.find((one) => one === kind)
}

function kindOf(noun: string, name: string, schema: Schema, path: string): Kind | undefined {
  const same = (other: object): boolean =>
    (schema as object) === other ||
    (schema.description !== undefined && schema.description === (other as Schema).description)
  if (same(DeviceUid)) return 'device'
  if (same(SessionUid)) return 'session'
  if (same(TenantId)) return 'namespace'
  if (same(NotBefore) || same(NotAfter)) return 'moment'
  if (noun === 'publicKeys' && name === 'fingerprint') return 'public key'
  if (noun === 'enrolmentKeys' && name === 'fingerprint') return 'enrolment key'
  if (noun === 'auditStreams' && name === 'uid') return 'audit stream'
  if (noun === 'services' && name === 'id') return 'service'
  return noun === 'namespaces' && name === 'uid' && path.includes('/members/') ? 'member' : undefined
}

/** The contract's schemas are JSON Schema; this file reads nothing else of them. */
function schemaOf(schema: object | undefined): Schema | undefined {
  return schema as Schema | undefined
}
