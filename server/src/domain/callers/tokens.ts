// Tokens: RS256 JWTs for users (72 hours) and devices (no end, because agents never renew the one they use).
// Signing keys are stored sealed, so that tokens outlive a restart; older keys still verify. Verifying is
// slow, so a bounded map caches verified tokens; it grants nothing, since the gate asks the database every
// time.
import { createPrivateKey, createPublicKey, generateKeyPair, type KeyObject } from 'node:crypto'
import { promisify } from 'node:util'
import { decodeProtectedHeader, jwtVerify, SignJWT } from 'jose'
import { Failure } from '@hawser/contract/failures'
import type { DeviceReport } from '@hawser/contract/reports'
import { BoundedMap } from '../../kit/bounded-map.ts'
import { iso, type Clock } from '../../kit/clock.ts'
import { hashOf, type Vault } from '../../kit/secrets.ts'
import { newUuid } from '../../kit/ids.ts'
import type { Stores } from '../../storage/stores.ts'

export interface UserClaims {
  readonly claims: 'user'
  readonly jti: string
  /** The token's sign-in. Tokens of older servers have none, and no longer count. */
  readonly sid: string
  readonly id: string
  /** Empty: no namespace. */
  readonly tenant: string
  readonly name: string
  readonly mfa: boolean
  /** `<user epoch>.<member epoch>`: the token ends when the password or the role changes. */
  readonly ver: string
  /** Seconds since 1970. */
  readonly exp: number
  /**
   * When tokens issued for this one must end, in seconds since 1970: with their sign-in, or with a token that
   * outlived a password. Absent in tokens of older servers.
   */
  readonly until?: number
}
export interface DeviceClaims {
  readonly claims: 'device'
  readonly uid: string
  readonly tenant: string
  /** Exactly one caller of Auth device got it; absent: others may have it, too. */
  readonly sole?: true
  /** Counts once a tunnel with this token has proved the key. */
  readonly said?: DeviceFacts
}
export type DeviceFacts = Pick<DeviceReport, 'info' | 'agent'>
export type Claims = UserClaims | DeviceClaims

export interface Tokens {
  forUser(claims: Omit<UserClaims, 'claims' | 'jti' | 'exp'>): Promise<string>
  forDevice(claims: Omit<DeviceClaims, 'claims'>): Promise<string>
  verify(token: string): Promise<Claims | undefined>
}

export const user_token_hours = 72
const remembered_tokens = 50_000
/** Longer tokens carry long descriptions of devices, and are verified each time. */
const longestRemembered_characters = 2048
const reload_ms = 1000
/** Clocks of nodes differ: another node's new token may seem to come from the future. */
const skew_s = 600

export async function tokens({
  stores,
  vault,
  clock,
}: {
  stores: Stores
  vault: Vault
  clock: Clock
}): Promise<Tokens> {
  let keys = await loadKeys(stores, vault, clock)
  const publicKeys = new Map(keys.map((key) => [key.kid, key.publicKey]))
  let loaded_at = clock.now()
  /** Reads the keys again for an unknown one, which a node that started at the same moment may have made. */
  const keyOf = async (kid: string): Promise<KeyObject | undefined> => {
    if (!publicKeys.has(kid) && clock.now() - loaded_at > reload_ms) {
      loaded_at = clock.now()
      keys = await loadKeys(stores, vault, clock)
      for (const key of keys) publicKeys.set(key.kid, key.publicKey)
    }
    return publicKeys.get(kid)
  }
  const verified = new BoundedMap<string, { claims: Claims; exp: number }>(remembered_tokens)

  const sign = (claims: DeviceClaims | Omit<UserClaims, 'jti' | 'exp'>, exp?: number): Promise<string> => {
    const iat = Math.floor(clock.now() / 1000)
    const signing = keys[0]!
    const token = new SignJWT({ ...claims })
      .setProtectedHeader({ alg: 'RS256', typ: 'JWT', kid: signing.kid })
      .setJti(newUuid())
      .setIssuedAt(iat)
    return (exp === undefined ? token : token.setNotBefore(iat).setExpirationTime(exp)).sign(
      signing.privateKey,
    )
  }

  return {
    forUser: (claims) =>
      sign(
        { ...claims, claims: 'user' },
        Math.min(claims.until ?? Infinity, Math.floor(clock.now() / 1000) + user_token_hours * 3600),
      ),
    forDevice: (claims) => sign({ ...claims, claims: 'device' }),

    async verify(token) {
      const now = clock.now() / 1000
      const key = hashOf(token)
      const known = verified.get(key)
      if (known) return known.exp > now ? known.claims : undefined
      const read = await readToken(token, keyOf, new Date(clock.now()))
      if (!read) return undefined
      if (token.length <= longestRemembered_characters) verified.set(key, read)
      return read.claims
    },
  }
}

async function readToken(
  token: string,
  keyOf: (kid: string) => Promise<KeyObject | undefined>,
  currentDate: Date,
) {
  try {
    const { kid } = decodeProtectedHeader(token)
    const key = await keyOf(kid ?? '')
    if (!key) return undefined
    const { payload } = await jwtVerify(token, key, {
      algorithms: ['RS256'],
      currentDate,
      clockTolerance: skew_s,
    })
    const claims = payload as unknown as Claims
    // The tolerance applies to the start of the token's time only.
    if (payload.exp !== undefined && payload.exp <= currentDate.getTime() / 1000) return undefined
    if (claims.claims !== 'user' && claims.claims !== 'device') return undefined
    return { claims, exp: payload.exp ?? Infinity }
  } catch {
    // Malformed, forged and expired tokens get the same answer.
    return undefined
  }
}

async function loadKeys(stores: Stores, vault: Vault, clock: Clock) {
  let rows = await stores.signingKeys.list()
  if (rows.length === 0) {
    const pair = await promisify(generateKeyPair)('rsa', {
      modulusLength: 2048,
      publicKeyEncoding: { type: 'spki', format: 'pem' },
      privateKeyEncoding: { type: 'pkcs8', format: 'pem' },
    })
    await stores.signingKeys.insert({
      kid: hashOf(pair.publicKey).slice(0, 16),
      private_key: vault.seal('signing key', pair.privateKey),
      public_key: pair.publicKey,
      created_at: iso(clock.now()),
    })
    // Nodes that start together on an empty database must settle on the same newest key.
    rows = await stores.signingKeys.list()
  }
  return rows.map((row) => ({
    kid: row.kid,
    privateKey: createPrivateKey(openSealed(vault, row.private_key)),
    publicKey: createPublicKey(row.public_key),
  }))
}

/** This is the first unsealing at a start, so it is where a wrong master key shows. */
function openSealed(vault: Vault, sealed: string): string {
  try {
    return vault.open('signing key', sealed)
  } catch (cause) {
    const message =
      'The master key is not the one that this database was sealed with. All nodes need the same: copy it, or set HAWSER_SECRET.'
    throw new Failure('invalid', { message, cause })
  }
}
