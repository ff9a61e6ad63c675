// What the tests about people share: how to catch a refusal, how to seem to come from elsewhere, how to read
// a link or a code out of an e-mail, and how to look for secrets that should stand nowhere.
import { mkdtempSync, readdirSync, readFileSync, rmSync } from 'node:fs'
import os from 'node:os'
import path from 'node:path'
import { Secret, TOTP } from 'otpauth'
import type { Email } from 'postal-mime'
import { ApiError } from '@hawser/contract/client'
import type { Service } from '../harness/service.ts'

/** The refusal that a call ends in; a call that is not refused fails the test. */
export async function refused(call: Promise<unknown>): Promise<ApiError> {
  try {
    await call
  } catch (error) {
    if (error instanceof ApiError) return error
    throw error
  }
  throw new Error('the call was not refused')
}

/** The status that a call ends in, refused or not. */
export async function statusOf(call: Promise<{ status: number }>): Promise<number> {
  try {
    return (await call).status
  } catch (error) {
    if (error instanceof ApiError) return error.status
    throw error
  }
}

/** The statuses that several calls at once end in, the lowest first: which of them comes first is chance. */
export async function statusesOf(calls: readonly Promise<{ status: number }>[]): Promise<number[]> {
  return (await Promise.all(calls.map(statusOf))).toSorted((a, b) => a - b)
}

/** Calls that come from this address: the tests themselves come from loopback, which is a trusted proxy. */
export function from(address: string): { headers: Record<string, string> } {
  return { headers: { 'x-real-ip': address } }
}

/** The end of the lock that an answer tells, in unix seconds; 0: none. Absent is a failure. */
export function lockOf({ headers }: { headers: Headers }): number {
  const value = headers.get('x-account-lockout')
  if (value === null || !/^\d+$/.test(value)) throw new Error(`X-Account-Lockout is ${value}`)
  return Number(value)
}

/**
 * What an answer looks like to a stranger who compares two of them; moments are only told apart from none.
 */
export function appearance(answer: { status: number; body: unknown; headers: Headers }): object {
  const own = new Set(['x-request-id', 'date'])
  const moments = new Set(['x-account-lockout', 'retry-after'])
  const headers = [...answer.headers]
    .filter(([name]) => !own.has(name))
    .map(([name, value]) => (moments.has(name) && value !== '0' ? [name, 'a moment'] : [name, value]))
  return { status: answer.status, body: answer.body, headers: Object.fromEntries(headers) as object }
}

/** The link of an e-mail, from its text part. */
export function linkIn(email: Email): URL {
  const line = email.text?.split(/\r?\n/).find((text) => /^https?:\/\/\S+$/.test(text))
  if (line === undefined) throw new Error('there is no line with a link in the e-mail')
  return new URL(line)
}

/** The code of an e-mail, which stands alone on a line. */
export function codeIn(email: Email): string {
  const line = email.text?.split(/\r?\n/).find((text) => /^[A-Z0-9]{5,16}$/.test(text))
  if (line === undefined) throw new Error('there is no line with a code in the e-mail')
  return line
}

/** The code of a second factor, `steps` of 30 seconds from now. */
export function totpAt(service: Service, secret: string, steps = 0): string {
  return new TOTP({ secret: Secret.fromBase32(secret) }).generate({
    timestamp: service.clock.now() + steps * 30_000,
  })
}

/**
 * Moves the clock into the first second of a step of the second factor, so that no step ends while a test
 * counts them.
 */
export function toStepStart({ clock }: Service): void {
  clock.forward(30_000 - (clock.now() % 30_000))
}

/** A six-digit code that is none of the present ones. */
export function wrongTotp(service: Service, secret: string): string {
  const right = new Set([-2, -1, 0, 1, 2].map((steps) => totpAt(service, secret, steps)))
  for (let code = 0; ; code++) {
    const text = String(code).padStart(6, '0')
    if (!right.has(text)) return text
  }
}

/** A folder that outlives a service and goes with the test. */
export function ownFolder(): { path: string } & Disposable {
  const folder = mkdtempSync(path.join(os.tmpdir(), 'hawser-test-'))
  return { path: folder, [Symbol.dispose]: () => rmSync(folder, { recursive: true, force: true }) }
}

/** Which of these stand in a file of the folder, as they are or in base64; the outbox may hold them. */
export function foundIn(folder: string, secrets: readonly string[]): string[] {
  return readdirSync(folder, { recursive: true, withFileTypes: true })
    .filter(
      (entry) => entry.isFile() && path.relative(folder, entry.parentPath).split(path.sep)[0] !== 'outbox',
    )
    .flatMap((entry) => {
      const bytes = readFileSync(path.join(entry.parentPath, entry.name))
      return secrets.filter((secret) => standsIn(bytes, secret)).map((secret) => `${secret} in ${entry.name}`)
    })
}

function standsIn(bytes: Buffer, secret: string): boolean {
  // The last group of base64 depends on what follows, so it is left out.
  const encoded = Buffer.from(secret).toString('base64')
  return (
    bytes.includes(secret) ||
    bytes.includes(encoded.slice(0, -4)) ||
    bytes.includes(Buffer.from(secret).toString('hex'))
  )
}
