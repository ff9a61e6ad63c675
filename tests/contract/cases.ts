// What the contract says about each operation, made ready for tests: every address of it, its example as a
// request, who may send that, and what is expected. What does not follow from the contract is listed here
// with its reason, and only that.
import { addresses, operations, type NamedOperation } from '@hawser/contract'
import { rank, roles, type Role } from '@hawser/contract/access'
import { sample } from '@hawser/contract/examples'
import type { Operation } from '@hawser/contract/operation'
import type { Cast, Credential, Sent, Stage } from './stage.ts'

/** One operation at one of its addresses. */
export interface Case extends NamedOperation {
  /** `devices.auth POST /api/auth/device` */
  readonly name: string
  readonly method: string
  readonly path: string
}

export const cases: readonly Case[] = operations.flatMap((named) =>
  addresses(named.op).map(({ method, path }) => ({
    ...named,
    name: `${named.id} ${method} ${path}`,
    method,
    path,
  })),
)

interface Outcome {
  readonly status: number
  readonly code?: string
  readonly because: string
}

const noProvider = {
  status: 424,
  code: 'provider_not_configured',
  because: 'the server of the tests has no payment provider',
}

/** Examples whose answer is not 200. */
const otherwise: Readonly<Record<string, Outcome>> = {
  'billing.getCustomer': noProvider,
  'billing.createCustomer': noProvider,
  'billing.getSubscription': noProvider,
  'billing.createSubscription': noProvider,
  'billing.attachPaymentMethod': noProvider,
  'billing.detachPaymentMethod': noProvider,
  'billing.setDefaultPaymentMethod': noProvider,
  'billing.portal': noProvider,
  'billing.evaluate': noProvider,
  'billing.report': noProvider,
  'billing.webhook': noProvider,
  'devices.choose': noProvider,
  'devices.authSsh': {
    status: 404,
    because: 'the server signs only for a login that it is making, and none is going on',
  },
  'terminals.attach': { status: 404, because: 'the session is not one of the caller’s own' },
  'terminals.files': { status: 404, because: 'the caller has no terminal open' },
  'recordings.window': { status: 404, because: 'nothing was recorded of the session of the example' },
  'recordings.filmstrip': { status: 404, because: 'nothing was recorded of the session of the example' },
  'recordings.search': { status: 404, because: 'nothing was recorded of the session of the example' },
  'auditStreams.test': { status: 424, because: 'the receiver of the example cannot be reached' },
  'services.scan': { status: 409, because: 'the device of the example has no tunnel' },
  'connectors.info': { status: 424, because: 'the engine of the example cannot be reached' },
}

export function outcomeOf(id: string): { readonly status: number; readonly code?: string } {
  return otherwise[id] ?? { status: 200 }
}

export const listedOutcomes = Object.keys(otherwise)

/** Whose data an example is about, where the contract admits any signed-in user. */
const actors: Readonly<Record<string, keyof Pick<Cast, 'observer' | 'administrator' | 'careful'>>> = {
  'mfa.enable': 'administrator', // has the draft
  'mfa.disable': 'careful', // has a second factor
}

/**
 * Where the contract admits more roles than the rule: it is for the person of a session, whatever their
 * role, and for these.
 */
const narrower: Readonly<Record<string, Role>> = {
  'sessions.invite': 'administrator',
  'sessions.invitations': 'administrator',
  'sessions.uninvite': 'administrator',
}

/** A device has to have a tunnel that proved its key, which the device of the examples has not. */
const fromTheTunnel: ReadonlySet<string> = new Set(['sessions.setAuthenticated', 'sessions.record'])

/** Those that the contract admits, the humblest first; nobody, where no credential is needed. */
export function admitted({ id, op }: NamedOperation, cast: Cast): [string, Credential][] {
  const { access } = op
  if (access.who === 'anyone') return [['nobody', cast.nobody]]
  if (access.who === 'device') return [['device', cast.device]]
  if (access.who === 'user' || access.who === 'user-or-key') {
    const actor = actors[id] ?? 'observer'
    return [[actor, cast[actor]]]
  }
  const members = roles
    .filter((role) => rank(role) >= rank(narrower[id] ?? access.role))
    .map((role): [string, Credential] => [role, cast[role]])
  return access.who === 'device-or-member' && !fromTheTunnel.has(id)
    ? [...members, ['device', cast.device]]
    : members
}

export function humblest(named: NamedOperation, cast: Cast): Credential {
  return admitted(named, cast)[0]![1]
}

export function rolesBelow(op: Operation): Role[] {
  const { access } = op
  return 'role' in access ? roles.filter((role) => rank(role) < rank(access.role)) : []
}

/** Whether the operation is about a namespace, the caller's or the one in the path. */
export function isOfNamespace({ access }: Operation): boolean {
  return access.who === 'member' || access.who === 'device-or-member'
}

export function isOfPath({ access }: Operation): boolean {
  return access.who === 'member' && access.of === 'path'
}

export function takesKey({ access }: Operation): boolean {
  return access.who === 'user-or-key' || ('apiKey' in access && access.apiKey)
}

export function takesDevice({ access }: Operation): boolean {
  return access.who === 'device' || access.who === 'device-or-member'
}

/** An address with its parameters filled in. */
export function fill(path: string, params: Readonly<Record<string, string>> = {}): string {
  return path.replace(/:(\w+)/g, (_, name: string) => encodeURIComponent(params[name] ?? ''))
}

/** The example as it is sent, by nobody yet. `change` replaces parts of it. */
export function request(
  { id, op, method, path }: Case,
  { world }: Pick<Stage, 'world'>,
  change: { params?: Record<string, string>; query?: Record<string, string>; body?: unknown } = {},
): Sent {
  const { params, query } = op.example
  const search = new URLSearchParams({ ...query, ...change.query }).toString()
  const body = 'body' in change ? change.body : exampleBody(id, op, world)
  return {
    method,
    path: fill(path, { ...params, ...change.params }) + (search ? `?${search}` : ''),
    ...(body === undefined ? {} : { json: body }),
  }
}

/** The body of the example, with the code of the moment where the example has its place-holder. */
export function exampleBody(id: string, { example }: Operation, world: Stage['world']): unknown {
  if (example.body === undefined) return undefined
  const live = world.totp(id === 'mfa.enable' ? sample.draftSecret : sample.mfaSecret)
  return JSON.parse(JSON.stringify(example.body), (_, value: unknown) =>
    value === sample.totp ? live : value,
  ) as unknown
}
