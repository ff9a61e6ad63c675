// The gate: turns the credentials of a request into a caller that the operation admits, or into a refusal. An
// operation admits only the callers that it declares. The order is the same everywhere: who is it (401), may
// they (403), and only then are the input and the stored data looked at. The gate reads roles from the
// database on every request; a token only says who asks.
import { rank, type Access, type Role } from '@hawser/contract/access'
import { Failure } from '@hawser/contract/failures'
import type { Clock } from '../../kit/clock.ts'
import { hashOf } from '../../kit/secrets.ts'
import type { UserStanding } from '../../storage/callers.ts'
import type { Stores } from '../../storage/stores.ts'
import type { UserRow } from '../../storage/users.ts'
import type { ShellHubTokens } from './shellhub-tokens.ts'
import type { DeviceFacts, Tokens } from './tokens.ts'

/** Where a request comes from, and how it reached the server. Every caller has it. */
export interface RequestOrigin {
  /** The address of the TCP peer, or the one that a trusted proxy names. */
  readonly source: string
  /** The server's host[:port] as the caller typed it. */
  readonly host: string
  readonly secure: boolean
  /** The id that the caller gets with the answer, for the log. */
  readonly request_id?: string | undefined
  /** What the client says it is. */
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
  /** When that token ends, in seconds since 1970. */
  readonly exp: number
  /** When tokens issued for that one must end, if there is such a limit; in seconds since 1970. */
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
  /** When the key ends, in seconds since 1970. */
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
  /** The namespace that the path names, where it names one. */
  readonly tenant: string | undefined
}

export interface Gate {
  /** Calls `identified` as soon as it is known who asks: the log names a caller who is refused, too. */
  admit(
    access: Access,
    credentials: Credentials,
    from: RequestOrigin,
    identified?: (caller: Caller) => void,
  ): Promise<Caller>
  /** The device of a token, by the signature alone. The gate does not check that the device still exists. */
  deviceOfToken(bearer: string | undefined): Promise<SignedDevice>
}

export interface SignedDevice {
  readonly uid: string
  readonly tenant_id: string
  /** Whether a ShellHub signed it, from which the device has moved. Such a token may not count any more. */
  readonly byShellHub: boolean
  /** SHA-256 of the token. */
  readonly token: string
  /** The same, if one caller of Auth device got it and nobody else. */
  readonly sole_token?: string | undefined
  /** The device as that caller described it. */
  readonly said?: DeviceFacts | undefined
}

/** Whether a token was made under the present password, or is the one that set the present password. */
function outlivesPasswords(
  standing: Pick<UserStanding, 'epoch' | 'kept_token'>,
  epoch: number,
  token_id: string,
): boolean {
  return standing.epoch === epoch || standing.kept_token === token_id
}

/** The sign-in of a token, which is the first part of a caller's `token_id`. */
export function signInOf(token_id: string): string {
  return token_id.split('.', 1)[0] ?? ''
}

/** Whose turn a call takes. People share what the server can do, and sign-ins of a person the turns of that person. */
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
 * The user of a token, with the present role. Undefined when the token does not count any more: its sign-in was
 * ended, or the password changed.
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
 * The user who calls. Refuses a token that has ended since the gate checked it. `lock`: in a transaction, so that no
 * token can end before its end.
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
 * When tokens issued for the caller must end. A token that outlived a change of password, or a copy of it,
 * must not be prolonged.
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
  /** Told of each request of a sign-in, and when its last use was noted. */
  onUsed?: (sign_in: string, used_at: string, from: RequestOrigin) => void
}

export function gate({ stores, tokens, shellHub, clock, onUsed }: GateParts): Gate {
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
   * A device with the token of the ShellHub that it has moved from. An agent asks for signatures with the
   * token it started with for as long as it runs, even when it has a newer one. So the old token counts for
   * that operation, and for no other.
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

  /** The caller as a member of the namespace that the path names, with the role there and not the token's. */
  async function inNamespace(caller: UserCaller | KeyCaller, tenant: string): Promise<MemberCaller> {
    if (caller.kind === 'key') {
      if (caller.tenant_id !== tenant) throw new Failure('notFound')
      return caller
    }
    const member = await stores.namespaces.member(tenant, caller.id)
    if (!member) throw new Failure('notFound')
    return { ...caller, tenant_id: tenant, role: member.role }
  }

  return {
    async admit(access, { bearer, apiKey, tenant }, from, identified) {
      if (access.who === 'anyone') return { ...from, kind: 'anonymous' }
      // A request with a key and a token is the key's.
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
        access.who === 'member' && access.of === 'path' ? await inNamespace(caller, tenant ?? '') : caller
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
