// The contract as an OpenAPI 3.1 document. Everything in it comes from the operations, except for the titles
// of the nouns. `fieldsOf` turns a schema into rows for people, so that pages and browsable reference use the
// same words.
import type { TSchema } from './type.ts'
import type { Access } from './access.ts'
import { AcceptRule } from './accept-rules.ts'
import { Announcement } from './announcements.ts'
import { ApiKey } from './api-keys.ts'
import { AuditStream } from './audit-streams.ts'
import { DataBudget } from './budgets.ts'
import { Connector } from './connectors.ts'
import { Device } from './devices.ts'
import { EnrolmentKey } from './enrolment-keys.ts'
import { EnrolmentToken } from './enrolment-tokens.ts'
import { failureHeader, failures, type FailureKind } from './failures.ts'
import { FirewallRule } from './firewall.ts'
import { addresses, type Contract, operations } from './index.ts'
import { Namespace } from './namespaces.ts'
import { allFailures, type Method, type Operation } from './operation.ts'
import { PublicKey } from './public-keys.ts'
import { SessionInvitation } from './session-invitations.ts'
import { Frame, Session } from './sessions.ts'
import { UserSession } from './users.ts'

type Limit = 'minLength' | 'maxLength' | 'minimum' | 'maximum' | 'minItems' | 'maxItems'
/** Only the keywords that this project reads. */
export interface Schema extends Readonly<Partial<Record<Limit, number>>> {
  readonly $ref?: string
  readonly type?: string
  readonly format?: string
  readonly description?: string
  readonly properties?: Readonly<Record<string, Schema>>
  readonly required?: readonly string[]
  readonly items?: Schema
  readonly anyOf?: readonly Schema[]
  readonly enum?: readonly (string | number)[]
  readonly [keyword: string]: unknown
}
export interface Parameter {
  readonly name: string
  readonly in: 'path' | 'query'
  readonly required: boolean
  readonly description?: string
  readonly schema: Schema
  readonly example?: unknown
}
export type Content = Readonly<Record<string, { readonly schema: Schema; readonly example?: unknown }>>
export interface Header {
  readonly $ref?: string
  readonly description?: string
  readonly schema?: Schema
}
export interface Response {
  readonly description: string
  readonly headers?: Readonly<Record<string, Header>>
  readonly content?: Content
  readonly 'x-failures'?: readonly FailureKind[]
}
export interface DocumentedOperation {
  readonly operationId: string
  readonly tags: readonly [keyof Contract]
  readonly summary: string
  readonly description: string
  readonly deprecated?: true
  /** As a sentence. */
  readonly 'x-access': string
  /** The operation that this entry is another address of. */
  readonly 'x-alias-of'?: string
  readonly 'x-codeSamples': readonly [{ readonly lang: 'Shell'; readonly source: string }]
  readonly security: readonly Readonly<Record<string, readonly []>>[]
  readonly parameters?: readonly Parameter[]
  readonly requestBody?: { readonly required: true; readonly content: Content }
  readonly responses: Readonly<Record<string, Response>>
}
export interface OpenApiDocument {
  readonly openapi: '3.1.1'
  readonly info: { readonly title: string; readonly version: string; readonly description: string }
  readonly servers?: readonly { readonly url: string }[]
  readonly tags: readonly {
    readonly name: string
    readonly description: string
    readonly 'x-displayName': string
  }[]
  readonly paths: Readonly<Record<string, Partial<Record<Lowercase<Method>, DocumentedOperation>>>>
  readonly components: {
    readonly schemas: Readonly<Record<string, Schema>>
    readonly headers: Readonly<Record<string, Header>>
    readonly securitySchemes: Readonly<Record<string, object>>
  }
}

export const nouns: Readonly<Record<keyof Contract, readonly [title: string, sentence: string]>> = {
  devices: ['Devices', 'Machines with an agent: enrolled, accepted, named and tagged.'],
  notes: ['Notes', 'What people have written down about a device, in Markdown.'],
  enrolmentTokens: [
    'Enrolment tokens',
    'How many agents join: without a tenant id, named, tagged and accepted at once.',
  ],
  pairings: ['Pairing', 'How one agent joins without any id: it shows a code, and a member confirms it.'],
  acceptRules: ['Accept rules', 'Which new devices are accepted without a person.'],
  agents: ['Agents', 'The agent that the server offers, and who runs it; updates.'],
  budgets: ['Data budgets', 'How many bytes a month devices may use, and what happens above that.'],
  enrolmentKeys: [
    'Enrolment keys',
    'How devices that can carry no agent join, by an outgoing SSH connection of their own.',
  ],
  services: ['Services', 'Web pages of devices, opened in a browser at addresses of their own.'],
  webEndpoints: ['Web endpoints', 'Public services, in the form that newer clients of ShellHub know.'],
  tags: ['Tags', 'Plain words on devices, public keys and firewall rules.'],
  publicKeys: ['Public keys', 'Keys that let people in without a password.'],
  identityCertificates: ['Identity certificates', 'How SSH clients say who is signed in.'],
  apiKeys: ['API keys', 'Credentials of a namespace, for scripts.'],
  namespaces: ['Namespaces', 'A team’s own world of devices, keys, rules and sessions, and its members.'],
  invitations: ['Invitations', 'People who are invited into the namespace by e-mail.'],
  sessions: ['Sessions', 'Connections made to devices, and their recordings.'],
  terminals: [
    'Terminals',
    'Terminals in a browser, and their files. The contract defines the protocol on their WebSocket.',
  ],
  recordings: [
    'Recordings',
    'What terminals showed, for players: a part at a time, and where a text is, in one or in all.',
  ],
  firewall: ['Firewall rules', 'Who may connect to which device, from where, as which user.'],
  policies: [
    'Policies',
    'What is forbidden in sessions: transfers of files, forwards, subsystems, services.',
  ],
  logins: ['Logins', 'Why a login to a device is let in or refused.'],
  announcements: ['Announcements', 'Announcements of the server’s administrator.'],
  users: ['Users', 'Sign-in, tokens, the profile, registration and the ways back in.'],
  signIns: ['Sign-ins', 'Where you are signed in, and how to end it.'],
  mfa: ['Second factor', 'Time-based codes, recovery codes and the reset by two e-mails.'],
  billing: ['Billing', 'Customer, subscription and payment methods at the payment provider.'],
  connectors: ['Connectors', 'Container engines whose containers are offered as devices.'],
  audit: ['Audit log', 'Who changed what, who came in and who was refused; numbered, chained and signed.'],
  auditStreams: ['Audit streams', 'Webhooks and syslog servers that get the audit log as it grows.'],
  system: ['Server', 'What agents ask first, health, figures and the first set-up.'],
}

const shared = {
  Device,
  Namespace,
  Session,
  PublicKey,
  FirewallRule,
  ApiKey,
  Announcement,
  Connector,
  EnrolmentKey,
  EnrolmentToken,
  AcceptRule,
  DataBudget,
  AuditStream,
  UserSession,
  Frame,
  SessionInvitation,
}
const nameOf = new Map<unknown, string>(Object.entries(shared).map(([name, schema]) => [schema, name]))
const failureShapes = {
  Failure: { type: 'object', required: ['message'], properties: { message: { type: 'string' } } },
  FailureFields: {
    type: 'array',
    items: { type: 'string' },
    description: 'The names of the offending fields.',
  },
  FailureCode: {
    type: 'object',
    required: ['message'],
    properties: { message: { type: 'string' }, code: { type: 'string' } },
  },
} as const

const ref = (name: string): Schema => ({ $ref: `#/components/schemas/${name}` })

/** A schema with references to the shared ones. A field with a default is not required. */
function written(schema: TSchema): Schema {
  const name = nameOf.get(schema)
  return name ? ref(name) : spelledOut(schema)
}

function spelledOut(schema: TSchema): Schema {
  const copy = Object.fromEntries(
    Object.entries(schema).map(([keyword, value]) => [keyword, part(value)]),
  ) as Schema
  if (!Array.isArray(copy.required)) return copy
  const required = copy.required.filter((name: string) => copy.properties?.[name]?.default === undefined)
  const { required: _, ...rest } = copy
  return required.length > 0 ? { ...rest, required } : rest
}

function part(value: unknown): unknown {
  if (Array.isArray(value)) return value.map(part)
  return typeof value === 'object' && value !== null ? written(value) : value
}

/** Without its full stop. */
export function accessSentence(access: Access): string {
  if (access.who === 'anyone') return 'anyone'
  if (access.who === 'device') return 'a device with its own token'
  if (access.who === 'user')
    return `a signed-in user${access.anyRole ? ', also with a token that a role change has ended' : ''}`
  if (access.who === 'user-or-key') return 'a signed-in user; an API key too, for its own namespace'
  const who = access.who === 'device-or-member' ? 'the device itself, or a member' : 'a member'
  const where = access.who === 'member' && access.of === 'path' ? ' of the namespace in the path' : ''
  const role = access.role === 'owner' ? 'the role owner' : `at least the role ${access.role}`
  return `${who}${where} with ${role}; ${access.apiKey ? 'an API key too' : 'no API key'}`
}

function security(access: Access): DocumentedOperation['security'] {
  if (access.who === 'anyone') return []
  const key =
    access.who === 'user-or-key' ||
    ((access.who === 'member' || access.who === 'device-or-member') && access.apiKey)
  return key ? [{ jwt: [] }, { apiKey: [] }] : [{ jwt: [] }]
}

function parameters(op: Operation): Parameter[] {
  return (['path', 'query'] as const).flatMap((where) => {
    const object = written((where === 'path' ? op.params : op.query) ?? {})
    const examples = (where === 'path' ? op.example.params : op.example.query) ?? {}
    return Object.entries(object.properties ?? {}).map(([name, { description, ...schema }]) => ({
      name,
      in: where,
      required: object.required?.includes(name) ?? false,
      ...(description && { description }),
      schema,
      ...(name in examples && { example: typed(examples[name], schema) }),
    }))
  })
}

/** The contract has parameters' examples as strings. */
function typed(example: string | undefined, schema: Schema): unknown {
  return schema.type === 'integer' || schema.type === 'boolean' ? JSON.parse(example ?? 'null') : example
}

function answer(op: Operation): Response {
  const headers = {
    ...(op.list && {
      'X-Total-Count': { description: 'How many there are before paging.', schema: { type: 'integer' } },
    }),
    ...Object.fromEntries(
      Object.entries(op.headers?.properties ?? {}).map(([name, header]) => [name, headerOf(header)]),
    ),
  }
  const json = op.list ? { type: 'array', items: written(op.list) } : op.answer && written(op.answer)
  const content = json
    ? { 'application/json': { schema: json } }
    : op.text
      ? { [op.text]: { schema: { type: 'string' } } }
      : undefined
  return {
    description: op.list ? 'A list.' : content ? 'The answer.' : 'Done; the body is empty.',
    ...(Object.keys(headers).length > 0 && { headers }),
    ...(content && { content }),
  }
}

function headerOf(header: TSchema): { description?: string; schema: Schema } {
  const { description, ...schema } = written(header)
  return { ...(description && { description }), schema }
}

function shapeOf(kind: FailureKind, op: Operation): keyof typeof failureShapes {
  if (op.failureBody === 'code') return 'FailureCode'
  return op.failureBody === 'fields' && (kind === 'invalidFields' || kind === 'takenFields')
    ? 'FailureFields'
    : 'Failure'
}

/** The description has a line `kind: sentence` for each failure; a header names it. */
function refusals(op: Operation): Record<string, Response> {
  const responses = [...Map.groupBy(allFailures(op), (kind) => failures[kind].status)].map(
    ([status, kinds]) => {
      const shapes = [...new Set(kinds.map((kind) => shapeOf(kind, op)))].map(ref)
      const schema = shapes.length === 1 && shapes[0] ? shapes[0] : { anyOf: shapes }
      const description = kinds.map((kind) => `${kind}: ${failures[kind].message}`).join('\n')
      const headers = { [failureHeader]: { $ref: '#/components/headers/Failure' } }
      return [
        status,
        { description, headers, content: { 'application/json': { schema } }, 'x-failures': kinds },
      ] as const
    },
  )
  return Object.fromEntries(responses)
}

const quoted = (text: string) => `'${text.replaceAll(`'`, `'\\''`)}'`

function curl(op: Operation, method: Method, path: string, server: string): string {
  const filled = path.replace(/:(\w+)/g, (_, name: string) =>
    encodeURIComponent(op.example.params?.[name] ?? name),
  )
  const query = new URLSearchParams(op.example.query).toString()
  const lines = [
    `curl${method === 'GET' ? '' : ` -X ${method}`} ${quoted(server + filled + (query && `?${query}`))}`,
  ]
  if (op.access.who !== 'anyone') lines.push('-H "Authorization: Bearer $TOKEN"')
  if (op.body)
    lines.push(`-H 'Content-Type: application/json'`, `-d ${quoted(JSON.stringify(op.example.body))}`)
  return lines.join(' \\\n  ')
}

export function openapi(options: { version: string; servers?: readonly string[] }): OpenApiDocument {
  const server = options.servers?.[0] ?? 'https://hawser.example.com'
  const paths: Record<string, Partial<Record<Lowercase<Method>, DocumentedOperation>>> = {}
  for (const { id, noun, op } of operations) {
    const given = parameters(op)
    addresses(op).forEach(({ method, path }, index) => {
      const item = (paths[path.replace(/:(\w+)/g, '{$1}')] ??= {})
      item[method.toLowerCase() as Lowercase<Method>] = {
        operationId: index === 0 ? id : `${id}-${index + 1}`,
        tags: [noun],
        summary: op.title,
        description: index === 0 ? op.summary : `Another address of the same operation, ${id}. ${op.summary}`,
        ...(op.deprecated && { deprecated: true }),
        'x-access': accessSentence(op.access),
        ...(index > 0 && { 'x-alias-of': id }),
        'x-codeSamples': [{ lang: 'Shell', source: curl(op, method, path, server) }],
        security: security(op.access),
        ...(given.length > 0 && { parameters: given }),
        ...(op.body && {
          requestBody: {
            required: true,
            content: { 'application/json': { schema: written(op.body), example: op.example.body } },
          },
        }),
        responses: { 200: answer(op), ...refusals(op) },
      }
    })
  }
  const schemas = Object.fromEntries(
    Object.entries(shared).map(([name, schema]) => [name, spelledOut(schema)]),
  )
  return {
    openapi: '3.1.1',
    info: {
      title: 'Hawser',
      version: options.version,
      description: 'Reach any Linux device behind NAT with the SSH client you already have.',
    },
    ...(options.servers && { servers: options.servers.map((url) => ({ url })) }),
    tags: Object.entries(nouns).map(([name, [title, description]]) => ({
      name,
      description,
      'x-displayName': title,
    })),
    paths,
    components: {
      schemas: { ...schemas, ...failureShapes },
      headers: {
        Failure: {
          description: 'The kind of the failure; `x-failures` of the response lists those that it can be.',
          schema: { type: 'string', enum: Object.keys(failures) },
        },
      },
      securitySchemes: {
        jwt: {
          type: 'http',
          scheme: 'bearer',
          bearerFormat: 'JWT',
          description: 'The token of a sign-in, or of a device.',
        },
        apiKey: {
          type: 'apiKey',
          in: 'header',
          name: 'X-API-Key',
          description: 'An API key of a namespace.',
        },
      },
    },
  }
}

/** Nested names are dotted. Texts may have `code` in backticks. */
export interface Field {
  readonly name: string
  readonly type: string
  readonly required: boolean
  readonly rules: readonly string[]
  readonly description: string
}

/** Nested fields included; references are not followed. */
export function fieldsOf(schema: Schema, prefix = ''): Field[] {
  if (schema.anyOf)
    return schema.anyOf
      .flatMap((branch) => fieldsOf(branch, prefix))
      .map((field) => ({ ...field, required: false }))
  if (schema.items) return fieldsOf(schema.items, `${prefix}[]`)
  return Object.entries(schema.properties ?? {}).flatMap(([key, property]) => {
    const name = prefix ? `${prefix}.${key}` : key
    const { description = '' } = property
    const required = schema.required?.includes(key) ?? false
    return [
      { name, type: typeOf(property), required, rules: rulesOf(property), description },
      ...fieldsOf(property, name),
    ]
  })
}

/** Such as `string`, `array of Device`, `{hostname} or {tags}`. */
export function typeOf(schema: Schema): string {
  if (schema.$ref) return schema.$ref.slice(schema.$ref.lastIndexOf('/') + 1)
  if (schema.anyOf) return [...new Set(schema.anyOf.map(branchOf))].join(' or ')
  if (schema.items) return `array of ${typeOf(schema.items)}`
  if (schema.enum) return [...new Set(schema.enum.map((value) => typeof value))].join(' or ')
  return schema.type ?? 'any JSON'
}

const branchOf = (branch: Schema) =>
  branch.properties ? `{${Object.keys(branch.properties).join(', ')}}` : typeOf(branch)

export function rulesOf(schema: Schema): string[] {
  const code = (value: unknown) => `\`${typeof value === 'string' ? value : JSON.stringify(value)}\``
  const alternatives =
    schema.anyOf
      ?.flatMap((branch) => (branch.properties ? [] : [rulesOf(branch).join(', ')]))
      .filter(Boolean) ?? []
  return [
    ...(schema.enum ? [`one of ${schema.enum.map(code).join(', ')}`] : []),
    ...(schema.const === ''
      ? ['empty']
      : schema.const === undefined
        ? []
        : [`exactly ${code(schema.const)}`]),
    ...between(schema.minLength, schema.maxLength, ' characters'),
    ...between(schema.minimum, schema.maximum, ''),
    ...between(schema.minItems, schema.maxItems, ' items'),
    ...(schema.uniqueItems ? ['no repeats'] : []),
    ...(schema.pattern ? [`matches ${code(schema.pattern)}`] : []),
    ...(schema.format ? [schema.format] : []),
    ...(schema.items && !schema.items.properties ? rulesOf(schema.items).map((rule) => `each: ${rule}`) : []),
    ...(alternatives.length > 0 ? [alternatives.join(', or ')] : []),
    ...(schema.default === undefined ? [] : [`default ${code(schema.default)}`]),
  ]
}

function between(low: number | undefined, high: number | undefined, unit: string): string[] {
  if (low === undefined && high === undefined) return []
  if (high === undefined) return [`at least ${low}${unit}`]
  return [low === undefined ? `at most ${high}${unit}` : `${low} to ${high}${unit}`]
}
