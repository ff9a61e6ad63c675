// Passwords: Argon2id as PHC text, `$argon2id$v=19$m=…,t=…,p=…$salt$hash`. At most two are hashed at a time
// (19 MiB and a core each). Others queue by network (an address, or the /48 of one customer), and networks
// take turns, so that strangers delay others by one hash per network; every second turn is for networks of
// earlier sign-ins. An unknown user's password costs the same as a known one's, so that time does not reveal
// who exists.
// Imported hashes of other kinds (decision 25) are accepted until the first sign-in and replaced then. Bcrypt
// is stored as it is; SHA-256 is wrapped as `$sha256$argon2id$…`, because by itself it protects nothing.
import { argon2, createHash, randomBytes, timingSafeEqual } from 'node:crypto'
import { once } from 'node:events'
import { promisify } from 'node:util'
import { Worker } from 'node:worker_threads'
import { beyond, peopleLimits } from '@hawser/contract/limits'
import { neighbourhood } from '../../kit/address.ts'
import { BoundedMap } from '../../kit/bounded-map.ts'
import { concurrencyByKey } from '../../kit/concurrency.ts'
import type { CallEnd } from '../callers/rules.ts'

const cost = { memory: 19_456, passes: 2, parallelism: 1 }
const tag_bytes = 32
const derive = promisify(argon2)
const mostNetworks = 1000
const hashing = concurrencyByKey(peopleLimits.passwords.max, { each: 2, atOnce: 2, keys: mostNetworks })
/** Where a password was right since the start. */
const known = new BoundedMap<string, true>(10_000)

export interface WaitingCaller {
  /** Empty: the server itself. */
  readonly source: string
  /** Aborted when the caller has left. */
  readonly signal?: AbortSignal | undefined
}
const theServer: WaitingCaller = { source: '' }

export const waiterOf = (
  { source }: { readonly source: string },
  end: CallEnd | undefined,
): WaitingCaller => ({ source, signal: end?.signal })

/** Hangs while all threads that hash passwords are blocked. */
export async function probeThreads(): Promise<void> {
  await promisify(randomBytes)(1)
}

export const waitingPasswords = (): number => hashing.waiting

async function inTurn<T>({ source, signal }: WaitingCaller, work: () => Promise<T>): Promise<T> {
  const first = known.has(neighbourhood(source))
  const turn = hashing.run(neighbourhood(source, 48), work, { signal, first })
  if (!turn) throw beyond(peopleLimits.passwords, 5)
  return turn
}

const base64 = (bytes: Buffer): string => bytes.toString('base64').replace(/=+$/, '')

export async function hashPassword(password: string, caller = theServer): Promise<string> {
  const nonce = randomBytes(16)
  const hash = await inTurn(caller, () =>
    derive('argon2id', { message: password, nonce, tagLength: tag_bytes, ...cost }),
  )
  return `$argon2id$v=19$m=${cost.memory},t=${cost.passes},p=${cost.parallelism}$${base64(nonce)}$${base64(hash)}`
}

/** For the hash that is computed when there is no such user. */
const decoy = {
  memory: cost.memory,
  passes: cost.passes,
  parallelism: cost.parallelism,
  nonce: Buffer.alloc(16),
  tagLength: tag_bytes,
}

/** Costs from 4, the lowest that bcrypt has, to 14, the highest that a person would wait for. */
const bcrypt = /^\$2[aby]\$(?:0[4-9]|1[0-4])\$[./A-Za-z0-9]{53}$/
const sha256 = /^[0-9a-f]{64}$/
const wrapped = '$sha256'
const sha256Of = (password: string): string => createHash('sha256').update(password).digest('hex')

/** Matches no password and costs as much as imported hashes do: 2^10 rounds. */
const decoyBcrypt = `$2a$10$${'.'.repeat(53)}`

function bcryptMatches(password: string, hash: string, caller: WaitingCaller): Promise<boolean> {
  return inTurn(caller, async () => {
    const worker = new Worker(new URL('./bcrypt-worker.ts', import.meta.url), {
      workerData: { password, hash },
    })
    // A worker that ends without an answer would otherwise hold its place for ever.
    const ended = once(worker, 'exit').then((): never => {
      throw new Error('the worker that checks bcrypt hashes ended')
    })
    const [answer] = (await Promise.race([once(worker, 'message'), ended])) as [boolean]
    return answer
  })
}

/** Undefined for a hash that could never be checked. */
export async function adoptHash(hash: string): Promise<string | undefined> {
  if (bcrypt.test(hash)) return hash
  return sha256.test(hash) ? wrapped + (await hashPassword(hash)) : undefined
}

/** Imported, and to be replaced as soon as the password is known. */
export function isForeign(stored: string): boolean {
  return bcrypt.test(stored) || stored.startsWith(wrapped)
}

/**
 * Without a hash it does the same work and returns false. While any user has a bcrypt hash (`bcryptInUse`),
 * every check does the work of both kinds: otherwise time would reveal who has one, and so who exists.
 */
export async function passwordMatches(
  password: string,
  stored = '',
  caller = theServer,
  bcryptInUse = false,
): Promise<boolean> {
  const isRight = await isMatch(password, stored, caller, bcryptInUse)
  if (isRight) known.set(neighbourhood(caller.source), true)
  return isRight
}

async function isMatch(
  password: string,
  stored: string,
  caller: WaitingCaller,
  bcryptInUse: boolean,
): Promise<boolean> {
  if (bcrypt.test(stored)) {
    const [right] = await Promise.all([
      bcryptMatches(password, stored, caller),
      argon2Matches(password, '', caller),
    ])
    return right
  }
  const right = stored.startsWith(wrapped)
    ? argon2Matches(sha256Of(password), stored.slice(wrapped.length), caller)
    : argon2Matches(password, stored, caller)
  const [found] = await Promise.all([right, bcryptInUse && bcryptMatches(password, decoyBcrypt, caller)])
  return found
}

async function argon2Matches(password: string, stored: string, caller: WaitingCaller): Promise<boolean> {
  const parts = /^\$argon2id\$v=19\$m=(\d+),t=(\d+),p=(\d+)\$([A-Za-z0-9+/]+)\$([A-Za-z0-9+/]+)$/.exec(stored)
  if (!parts) {
    await inTurn(caller, () => derive('argon2id', { message: password, ...decoy }))
    return false
  }
  const [, memory, passes, parallelism, nonce, hash] = parts
  const expected = Buffer.from(hash!, 'base64')
  const found = await inTurn(caller, () =>
    derive('argon2id', {
      message: password,
      nonce: Buffer.from(nonce!, 'base64'),
      tagLength: expected.length,
      memory: Number(memory),
      passes: Number(passes),
      parallelism: Number(parallelism),
    }),
  )
  return timingSafeEqual(found, expected)
}
