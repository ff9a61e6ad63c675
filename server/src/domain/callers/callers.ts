// The gate: turns the credentials of a request into a caller that the operation admits, or into a refusal, in
// the same order everywhere: who is it (401), may they (403), and only then input and stored data. Roles come
// from the database on every request; a token only identifies its holder.
import { rank, type Access, type Role } from '@hawser/contract/access'
import { Failure } from '@hawser/contract/failures'
import type { Clock } from '../../kit/clock.ts'
import { hashOf } from '../../kit/secrets.ts'
import type { UserStanding } from '../../storage/callers.ts'
import type { Stores } from '../../storage/stores.ts'
import type { UserRow } from '../../storage/users.ts'
import type { ShellHubTokens } from './shellhub-tokens.ts'
import type { DeviceFacts, Tokens } from './tokens.ts'

export interface RequestOrigin {
  /** The address of the TCP peer, or the one that a trusted proxy names. */
  readonly source: string
  /** host[:port] as the caller typed it. */
  readonly host: string
  readonly secure: boolean
  readonly request_id?: string | undefined
  readonly agent?: string | undefined
}
export interface AnonymousCaller extends RequestOrigin {
  readonly kind: 'anonymous'
}
export interface UserCaller extends RequestOrigin {
  readonly kind: 'user'
  readonly id: string
  /** The sign-in of the token that the request carries, a dot, and the token's own id. */
  readonly token_id: string
  /** The user's epoch when that token was made. */
  readonly epoch: number
  /** Seconds since 1970. */
  readonly exp: number
  /** The latest end of tokens issued for that one, in seconds since 1970. */
  readonly until?: number | undefined
  readonly username: string
  readonly tenant_id: string | null
  readonly role: Role | null
  /** The namespace that the token names, also when a change of role there has ended the token. */
  readonly token_tenant?: string | undefined
}
export interface KeyCaller extends RequestOrigin {
  readonly kind: 'key'
  readonly name: string
  readonly created_by: string
  /** Seconds since 1970. */
  readonly exp: number | undefined
  readonly tenant_id: string
  readonly role: Role
}
export interface DeviceCaller extends RequestOrigin {
  readonly kind: 'device'
  readonly uid: string
  readonly tenant_id: string
  /** Whether the token has proved the device's key in a tunnel. Strangers can get tokens that have not. */
  readonly proved: boolean
}
export type MemberCaller = (UserCaller & { readonly tenant_id: string; readonly role: Role }) | KeyCaller
export type Caller = AnonymousCaller | UserCaller | KeyCaller | DeviceCaller

export interface Credentials {
  readonly bearer: string | undefined
  readonly apiKey: string | undefined
  /** The namespace that the path names. */
  readonly tenant: string | undefined
}

export interface Gate {
  /** Calls `identified` early, so that the log names a caller who is refused, too. */
  admit(
    access: Access,
    credentials: Credentials,
    from: RequestOrigin,
    identified?: (caller: Caller) => void,
  ): Promise<Caller>
  /** By the signature alone: whether the device still exists is not checked. */
  deviceOfToken(bearer: string | undefined): Promise<SignedDevice>
}

export interface SignedDevice {
  readonly uid: string
  readonly tenant_id: string
  /** Signed by a ShellHub that the device has moved from; it may count no longer. */
  readonly byShellHub: boolean
  readonly token: string
  /** Set if exactly one caller of Auth device got the token. */
  readonly sole_token?: string | undefined
  readonly said?: DeviceFacts | undefined
}

/** Whether a token was made under the present password, or set it. */
function outlivesPasswords(
  standing: Pick<UserStanding, 'epoch' | 'kept_token'>,
  epoch: number,
  token_id: string,
): boolean {
  return standing.epoch === epoch || standing.kept_token === token_id
}

/** The first part of a caller's `token_id`. */
export function signInOf(token_id: string): string {
  return token_id.split('.', 1)[0] ?? ''
}

/** People share the server's capacity, and a person's sign-ins share that person's turns. */
export interface CallTurn {
  readonly person: string
  readonly signIn: string
}

/** API keys have a turn apart from their maker, who must be able to delete one that somebody has stolen. */
export function turnOf(caller: Caller): CallTurn | undefined {
  if (caller.kind === 'anonymous') return undefined
  if (caller.kind === 'user') return { person: `user ${caller.id}`, signIn: signInOf(caller.token_id) }
  if (caller.kind === 'device') return { person: `device ${caller.uid}`, signIn: '' }
  const maker = caller.created_by || caller.tenant_id
  return { person: `keys of ${maker}`, signIn: `${caller.tenant_id} ${caller.name}` }
}

/**
 * The user of a token, with the present role. Undefined when its sign-in has ended or the password has
 * changed.
 */
export async function standingOf(
  { callers }: Pick<Stores, 'callers'>,
  token: { user_id: string; tenant_id: string; epoch: number; token_id: string },
): Promise<UserStanding | undefined> {
  const standing = await callers.user(token.user_id, token.tenant_id, signInOf(token.token_id))
  const counts =
    standing !== undefined &&
    standing.used_at !== null &&
    outlivesPasswords(standing, token.epoch, token.token_id)
  return counts ? standing : undefined
}

/**
 * Refuses a token that has ended since the gate checked it. `lock`: in a transaction, so that no token ends
 * meanwhile.
 */
export async function callingUser(
  { users }: Pick<Stores, 'users'>,
  { id, epoch, token_id }: UserCaller,
  how: 'find' | 'lock' = 'find',
): Promise<UserRow> {
  const user = await users[how](id)
  if (!user || !outlivesPasswords(user, epoch, token_id)) throw new Failure('unauthenticated')
  return user
}

/**
 * When tokens issued for the caller must end: a token that outlived a change of password must not be
 * prolonged.
 */
export function endOfIssued(user: UserRow, caller: UserCaller): number | undefined {
  return user.epoch === caller.epoch ? caller.until : caller.exp
}

const onlyDevices = 'Only a device may call this operation.'

export interface GateParts {
  stores: Stores
  tokens: Tokens
  shellHub: Pick<ShellHubTokens, 'verify'>
  clock: Clock
  /** Called for each request of a sign-in, with its last recorded use. */
  onUsed?: (sign_in: string, used_at: string, from: RequestOrigin) => void
}

function identification({ stores, tokens, shellHub, clock, onUsed }: GateParts) {
  async function keyCaller(apiKey: string, from: RequestOrigin): Promise<KeyCaller> {
    const key = await stores.callers.key(hashOf(apiKey))
    if (!key || (key.expires_in > 0 && key.expires_in * 1000 <= clock.now()))
      throw new Failure('unauthenticated')
    const role = rank(key.role) <= rank(key.creator_role) ? key.role : key.creator_role
    return {
      ...from,
      kind: 'key',
      name: key.name,
      created_by: key.created_by,
      exp: key.expires_in > 0 ? key.expires_in : undefined,
      tenant_id: key.tenant_id,
      role,
    }
  }

  async function userCaller(
    bearer: string,
    access: Access,
    from: RequestOrigin,
  ): Promise<UserCaller | DeviceCaller> {
    const claims = await tokens.verify(bearer)
    if (!claims) return movedCaller(bearer, access, from)
    if (claims.claims === 'device') return deviceCaller(bearer, claims, from)
    const [epoch, member_epoch] = claims.ver.split('.', 2)
    const token_id = `${(claims as Partial<typeof claims>).sid ?? ''}.${claims.jti}`
    const standing = await standingOf(stores, {
      user_id: claims.id,
      tenant_id: claims.tenant,
      epoch: Number(epoch),
      token_id,
    })
    if (!standing) throw new Failure('unauthenticated')
    onUsed?.(signInOf(token_id), standing.used_at ?? '', from)
    // The token's namespace counts only while the membership is the one that the token was made for.
    const current = claims.tenant !== '' && standing.role !== null && standing.member_epoch === member_epoch
    // After a change of role the caller may still ask for a new token; after the end of the membership not.
    const excused = access.who === 'user' && access.anyRole && standing.role !== null
    if (claims.tenant !== '' && !current && !excused) throw new Failure('unauthenticated')
    return {
      ...from,
      kind: 'user',
      id: claims.id,
      token_id,
      epoch: Number(epoch),
      exp: claims.exp,
      until: claims.until,
      username: standing.username,
      tenant_id: current ? claims.tenant : null,
      role: current ? standing.role : null,
      token_tenant: claims.tenant,
    }
  }

  /**
   * Agents keep asking for signatures with the token they started with, even when they have a newer one. So a
   * token of the ShellHub that a device has moved from counts for that operation, and for no other.
   */
  async function movedCaller(bearer: string, access: Access, from: RequestOrigin): Promise<DeviceCaller> {
    const signed = access.who === 'device' ? await shellHub.verify(bearer) : undefined
    if (!signed) throw new Failure('unauthenticated')
    return deviceCaller(bearer, { uid: signed.uid, tenant: signed.tenant_id }, from)
  }

  async function deviceCaller(
    bearer: string,
    claims: { uid: string; tenant: string },
    from: RequestOrigin,
  ): Promise<DeviceCaller> {
    const device = await stores.of(claims.tenant).devices.find(claims.uid)
    if (!device || device.status === 'rejected') throw new Failure('unauthenticated')
    const proved = device.proved_token === hashOf(bearer)
    return { ...from, kind: 'device', uid: claims.uid, tenant_id: claims.tenant, proved }
  }

  return { keyCaller, userCaller }
}

/** Uses the role in the path's namespace, not the token's. */
async function inNamespace(
  stores: Pick<Stores, 'namespaces'>,
  caller: UserCaller | KeyCaller,
  tenant: string,
): Promise<MemberCaller> {
  if (caller.kind === 'key') {
    if (caller.tenant_id !== tenant) throw new Failure('notFound')
    return caller
  }
  const member = await stores.namespaces.member(tenant, caller.id)
  if (!member) throw new Failure('notFound')
  return { ...caller, tenant_id: tenant, role: member.role }
}

export function gate(parts: GateParts): Gate {
  const { stores, tokens, shellHub } = parts
  const { keyCaller, userCaller } = identification(parts)

  return {
    async admit(access, { bearer, apiKey, tenant }, from, identified) {
      if (access.who === 'anyone') return { ...from, kind: 'anonymous' }
      // A request with both a key and a token is the key's.
      const caller =
        apiKey !== undefined
          ? await keyCaller(apiKey, from)
          : bearer !== undefined
            ? await userCaller(bearer, access, from)
            : undefined
      if (!caller) throw new Failure('unauthenticated')
      identified?.(caller)
      if (caller.kind === 'device') {
        if (access.who === 'device' || access.who === 'device-or-member') return caller
        throw new Failure('deviceRefused')
      }
      if (access.who === 'device') throw new Failure('forbidden', { message: onlyDevices })
      if (caller.kind === 'key' && (access.who === 'user' || ('apiKey' in access && !access.apiKey)))
        throw new Failure('apiKeyRefused')
      if (access.who === 'user' || access.who === 'user-or-key') return caller
      const member =
        access.who === 'member' && access.of === 'path'
          ? await inNamespace(stores, caller, tenant ?? '')
          : caller
      if (member !== caller) identified?.(member)
      if (member.tenant_id === null || member.role === null) throw new Failure('noNamespace')
      if (rank(member.role) < rank(access.role)) throw new Failure('roleTooLow')
      return member
    },
    async deviceOfToken(bearer) {
      if (bearer === undefined) throw new Failure('unauthenticated')
      const claims = await tokens.verify(bearer)
      if (claims && claims.claims !== 'device') throw new Failure('forbidden', { message: onlyDevices })
      const token = hashOf(bearer)
      if (claims)
        return {
          uid: claims.uid,
          tenant_id: claims.tenant,
          byShellHub: false,
          token,
          sole_token: claims.sole ? token : undefined,
          said: claims.said,
        }
      const moved = await shellHub.verify(bearer)
      if (!moved) throw new Failure('unauthenticated')
      return { ...moved, byShellHub: true, token }
    },
  }
}
