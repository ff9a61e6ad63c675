// Pairing: a device without a namespace and a token requests a code from the server, shows it, and waits for
// a person who confirms it and chooses the namespace.
import { existsSync, rmSync } from 'node:fs'
import { setTimeout as sleep } from 'node:timers/promises'
import { call } from '../call.ts'
import { ConfigError } from '../config.ts'
import { aboutDevice, reasonOf } from '../enrol.ts'
import { loadIdentity } from '../identity.ts'
import { trustAuthorities } from '../trust.ts'
import { takeOverKey } from './enrol-device.ts'

/** For one call. */
const limit_ms = 30_000
const usualInterval_s = 3

interface Asked {
  readonly code: string
  readonly url: string
  readonly secret: string
  readonly interval_s: unknown
  readonly expires_at: string
}

interface Outcome {
  readonly status: 'waiting' | 'confirmed' | 'refused'
  readonly tenant_id?: string
  readonly namespace?: string
  readonly confirmed_by?: string
}

/**
 * The id of the namespace that accepted this device. Throws a ConfigError with the reason if none did, and
 * then leaves no new key behind.
 */
export async function pairDevice(
  settings: ReadonlyMap<string, string>,
  key: string,
  say: (line: string) => void,
): Promise<string> {
  const known = existsSync(key)
  try {
    await trustAuthorities(settings.get('HAWSER_CA_FILE') ?? '')
    takeOverKey('', key)
    return await pair(settings, key, say)
  } catch (error) {
    if (!known) rmSync(key, { force: true })
    throw error instanceof ConfigError
      ? error
      : new ConfigError(`This device could not be paired: ${(error as Error).message}`)
  }
}

async function pair(
  settings: ReadonlyMap<string, string>,
  key: string,
  say: (line: string) => void,
): Promise<string> {
  const server = settings.get('HAWSER_SERVER_ADDRESS') ?? ''
  const identity = loadIdentity(key)
  const asked = (await post(`${server}/api/pairings`, {
    ...aboutDevice(
      {
        preferredHostname: settings.get('HAWSER_PREFERRED_HOSTNAME') ?? '',
        preferredIdentity: settings.get('HAWSER_PREFERRED_IDENTITY') ?? '',
      },
      identity,
    ),
  })) as Asked
  const { blobOf, fingerprintSha256 } = await import('@hawser/ssh')
  say(`to add this device, open ${asked.url}`)
  say(`and confirm the code ${asked.code}, or run \`hawser devices pair ${asked.code}\``)
  say(`its key is ${fingerprintSha256(blobOf(identity.key))}; waiting for 15 minutes …`)
  // A server without an interval is not asked without a pause.
  const interval_ms = Math.min(Math.max(Number(asked.interval_s) || usualInterval_s, 1), 60) * 1000
  // By a duration, not by the server's moment: the clock of a new device is often wrong.
  const deadline = performance.now() + 16 * 60_000
  while (performance.now() < deadline) {
    await sleep(interval_ms)
    const outcome = await outcomeOf(server, asked.secret)
    if (outcome.status === 'refused') throw new ConfigError('The request to add this device was refused.')
    if (outcome.status !== 'confirmed' || outcome.tenant_id === undefined) continue
    say(
      `${outcome.confirmed_by ?? 'somebody'} has added this device to ${outcome.namespace ?? 'a namespace'}`,
    )
    return outcome.tenant_id
  }
  throw new ConfigError('The code expired before anyone confirmed it. Run this command again for a new one.')
}

/** A call without an answer is repeated; a refusal is final, unless it says to wait. */
async function outcomeOf(server: string, secret: string): Promise<Outcome> {
  const url = `${server}/api/pairings/outcome`
  const waiting = { status: 'waiting' } as const
  const answer = await call({
    method: 'POST',
    url,
    body: { secret },
    signal: AbortSignal.timeout(limit_ms),
  }).catch(() => undefined)
  if (!answer || answer.status >= 500) return waiting
  if (answer.status === 429) {
    await sleep(Math.min(answer.retryAfter_s ?? 1, 60) * 1000)
    return waiting
  }
  if (answer.status !== 200) throw new ConfigError(await reasonOf(answer, url))
  return answer.body as Outcome
}

async function post(url: string, body: object): Promise<unknown> {
  const answer = await call({ method: 'POST', url, body, signal: AbortSignal.timeout(limit_ms) })
  if (answer.status === 200) return answer.body
  if (answer.status === 404)
    throw new ConfigError('This server does not support pairing: use --tenant with the id of the namespace.')
  throw new ConfigError(`This device could not be paired: ${await reasonOf(answer, url)}`)
}
