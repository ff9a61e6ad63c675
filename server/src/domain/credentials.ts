// Passwords: Argon2id, kept in the PHC format `$argon2id$v=19$m=…,t=…,p=…$salt$hash`. At most two are hashed at a time
// (each takes 19 MiB and a core), the others wait in a bounded line. Checking a password of nobody costs the same as
// checking somebody's, so that time does not tell who exists.
import { argon2, randomBytes, timingSafeEqual } from 'node:crypto'
import { promisify } from 'node:util'
import { Failure } from '@hawser/contract/failures'
import { turns } from '../kit/turns.ts'

const cost = { memory: 19_456, passes: 2, parallelism: 1 }
const tag_bytes = 32
const derive = promisify(argon2)
const line = turns({ atOnce: 2, waiting: 200 })

async function inTurn(work: () => Promise<Buffer>): Promise<Buffer> {
  const turn = line.take(work)
  if (!turn) throw new Failure('tooMany', { message: 'Too many sign-ins at this moment; try again.', retryAfter: 5 })
  return turn
}

const base64 = (bytes: Buffer): string => bytes.toString('base64').replace(/=+$/, '')

export async function hashPassword(password: string): Promise<string> {
  const nonce = randomBytes(16)
  const hash = await inTurn(() => derive('argon2id', { message: password, nonce, tagLength: tag_bytes, ...cost }))
  return `$argon2id$v=19$m=${cost.memory},t=${cost.passes},p=${cost.parallelism}$${base64(nonce)}$${base64(hash)}`
}

const nobody = { memory: cost.memory, passes: cost.passes, parallelism: cost.parallelism, nonce: Buffer.alloc(16), tagLength: tag_bytes }

/** Whether the password is the one that was hashed; without a hash, the same work and always false. */
export async function passwordMatches(password: string, stored: string | undefined): Promise<boolean> {
  const parts = /^\$argon2id\$v=19\$m=(\d+),t=(\d+),p=(\d+)\$([A-Za-z0-9+/]+)\$([A-Za-z0-9+/]+)$/.exec(stored ?? '')
  if (!parts) {
    await inTurn(() => derive('argon2id', { message: password, ...nobody }))
    return false
  }
  const [, memory, passes, parallelism, nonce, hash] = parts
  const expected = Buffer.from(hash!, 'base64')
  const found = await inTurn(() =>
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
