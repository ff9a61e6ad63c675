// Device tokens that a ShellHub signed, for devices that have moved from there. A running agent without a
// tunnel never asks for a new token, so without this a moved device would stay offline until its agent
// restarts. Such a token counts only in namespaces with ShellHub's public key, for a device of that
// namespace, for opening a tunnel and asking for signatures (see callers.ts). It is never a user's token.
import { createPublicKey, type KeyObject } from 'node:crypto'
import { decodeProtectedHeader, jwtVerify } from 'jose'
import { Failure } from '@hawser/contract/failures'
import { patterns } from '@hawser/contract/fields'
import { day_ms, type Clock } from '../../kit/clock.ts'
import { hashOf } from '../../kit/secrets.ts'
import type { DeviceRow } from '../../storage/devices.ts'
import type { Stores } from '../../storage/stores.ts'

export interface SignedFor {
  readonly uid: string
  readonly tenant_id: string
}

export interface ShellHubTokens {
  verify(token: string): Promise<SignedFor | undefined>
  countIn(tenant_id: string): Promise<boolean>
  /** Whether the device has connected with a token of ours before, and must do so from then on. */
  replaced(device: Pick<DeviceRow, 'token_at' | 'connector' | 'enrolment_key'>): boolean
}

export interface ShellHubTokensParts {
  stores: Pick<Stores, 'shellHubKeys' | 'callers'>
  clock: Clock
  /**
   * How many days after a key was added its tokens count; undefined: for each device until it has connected
   * with a token of ours.
   */
  days: number | undefined
}

interface TrustedKey {
  readonly key: KeyObject
  /** Namespaces in which the key counts, and since when. */
  readonly namespaces: ReadonlyMap<string, number>
}

const reload_ms = 1000
/** Clocks of machines differ: a new token of ShellHub's may seem to come from the future. */
const skew_s = 600
const least_bits = 2048

const fits = (pattern: string, text: unknown): text is string =>
  typeof text === 'string' && new RegExp(pattern, 'u').test(text)

export function shellHubTokens({ stores, clock, days }: ShellHubTokensParts): ShellHubTokens {
  let loaded: { readonly at: number; readonly keys: Promise<readonly TrustedKey[]> } | undefined

  async function load(): Promise<readonly TrustedKey[]> {
    const found = new Map<string, { key: KeyObject; namespaces: Map<string, number> }>()
    for (const { fingerprint, public_key, tenant_id, added_at } of await stores.shellHubKeys.list()) {
      const trusted = found.get(fingerprint) ?? {
        key: createPublicKey(public_key),
        namespaces: new Map<string, number>(),
      }
      trusted.namespaces.set(tenant_id, Date.parse(added_at))
      found.set(fingerprint, trusted)
    }
    return [...found.values()]
  }

  /** Reads the keys at most once a second, which bounds how long a key removed on another node still counts. */
  function trusted(): Promise<readonly TrustedKey[]> {
    const now = clock.now()
    if (!loaded || now - loaded.at >= reload_ms) {
      const fresh = { at: now, keys: load() }
      fresh.keys.catch(() => {
        if (loaded === fresh) loaded = undefined
      })
      loaded = fresh
    }
    return loaded.keys
  }

  const counts = (since: number | undefined): boolean =>
    since !== undefined && (days === undefined || clock.now() < since + days * day_ms)

  return {
    async verify(token) {
      for (const { key, namespaces } of await trusted()) {
        const claims = await deviceClaims(token, key, new Date(clock.now()))
        if (!claims) continue
        // Early tokens do not name the namespace, but the uid belongs to exactly one.
        const tenant_id = claims.tenant ?? (await stores.callers.namespaceOfDevice(claims.uid))
        return tenant_id !== undefined && counts(namespaces.get(tenant_id))
          ? { uid: claims.uid, tenant_id }
          : undefined
      }
      return undefined
    },
    async countIn(tenant_id) {
      return (await trusted()).some(({ namespaces }) => counts(namespaces.get(tenant_id)))
    },
    replaced({ token_at, connector, enrolment_key }) {
      // Containers and devices without an agent have never had a token, neither ours nor ShellHub's.
      return connector !== null || enrolment_key !== null || (days === undefined && token_at !== null)
    },
  }
}

async function deviceClaims(
  token: string,
  key: KeyObject,
  currentDate: Date,
): Promise<{ uid: string; tenant?: string } | undefined> {
  try {
    // ShellHub's tokens name no key; a token that names one claims to be ours.
    if (decodeProtectedHeader(token).kid !== undefined) return undefined
    const { payload } = await jwtVerify(token, key, {
      algorithms: ['RS256'],
      currentDate,
      clockTolerance: skew_s,
    })
    const { claims, uid, tenant } = payload
    if (claims !== 'device' || !fits(patterns.hex64, uid)) return undefined
    if (tenant === undefined) return { uid }
    return fits(patterns.uuid, tenant) ? { uid, tenant } : undefined
  } catch {
    // Malformed, forged and expired tokens get the same answer.
    return undefined
  }
}

/** Throws a Failure when the text is no key. */
export function readShellHubKey(text: string): { readonly fingerprint: string; readonly public_key: string } {
  const refuse = (message: string, cause?: unknown): never => {
    throw new Failure('invalid', { message, cause })
  }
  if (text.includes('PRIVATE KEY'))
    refuse('This is a private key: give ShellHub’s public one, the file api_public_key.')
  let key: KeyObject
  try {
    key = createPublicKey(text)
  } catch (cause) {
    return refuse('This is no public key in PEM form: give ShellHub’s file api_public_key.', cause)
  }
  if (key.asymmetricKeyType !== 'rsa' || (key.asymmetricKeyDetails?.modulusLength ?? 0) < least_bits)
    refuse(`ShellHub signs with an RSA key of ${least_bits} bits or more, and this is another one.`)
  const public_key = key.export({ type: 'spki', format: 'pem' })
  return { fingerprint: hashOf(public_key), public_key }
}
