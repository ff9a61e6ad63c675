// The one place where an installation brings the device to its server: it enrols with the settings and the
// key that the installed agent will use, before anything is written, so that a wrong address or a wrong
// namespace leaves nothing behind; and it waits afterwards until the agent that was started is connected.
import { chmodSync, copyFileSync, existsSync, mkdirSync, rmSync } from 'node:fs'
import path from 'node:path'
import { setTimeout as sleep } from 'node:timers/promises'
import { ConfigError, readConfig } from '../config.ts'
import { enrolment, Refused, type Enrolled } from '../enrol.ts'
import { loadIdentity } from '../identity.ts'
import { messageOf } from '../message-of.ts'
import { namespaceFile } from '../namespace.ts'
import { readStatus } from '../status.ts'
import { trustAuthorities } from '../trust.ts'

/** The key of ShellHub's agent: a device keeps its identity. */
const originalKey = '/etc/shellhub.key'

/** Copies the key of ShellHub's agent, if the device has none of ours. */
export function takeOverKey(root: string, key: string): void {
  if (existsSync(root + key) || !existsSync(root + originalKey)) return
  mkdirSync(path.dirname(root + key), { recursive: true })
  copyFileSync(root + originalKey, root + key)
  chmodSync(root + key, 0o600)
}

/**
 * Enrols this device with the agent's future settings. Waits when the server asks for it, because many
 * devices come at once. Throws a ConfigError with the reason, and then leaves no new key behind.
 */
export async function enrolDevice(
  settings: ReadonlyMap<string, string>,
  key: string,
  limit_ms: number,
): Promise<Enrolled> {
  const config = readConfig(Object.fromEntries(settings), true)
  const known = existsSync(key)
  const deadline = Date.now() + limit_ms
  try {
    await trustAuthorities(config.caFile)
    takeOverKey('', key)
    // A person who installs with a token means it, also on a device that has joined with it before.
    if (config.enrolmentToken !== '') rmSync(namespaceFile(key), { force: true })
    // The settings keep the namespace of a token.
    const enrol = enrolment(config, loadIdentity(key), undefined, undefined, () => undefined)
    for (;;) {
      try {
        const device = await enrol(AbortSignal.timeout(limit_ms))
        if (device.status === 'rejected')
          throw new ConfigError(
            `${device.namespace} has rejected the device ${device.name}. Accept it there, then run this command again.`,
          )
        return device
      } catch (error) {
        const wait_ms = error instanceof Refused ? (error.retryAfter_s ?? 0) * 1000 : 0
        if (wait_ms <= 0 || Date.now() + wait_ms > deadline) throw error
        await sleep(wait_ms)
      }
    }
  } catch (error) {
    if (!known) rmSync(key, { force: true })
    if (error instanceof ConfigError) throw error
    throw new ConfigError(`${config.server} refused this device: ${messageOf(error)}`)
  }
}

/** Throws a ConfigError when the started agent does not connect in time. */
export async function waitUntilConnected(file: string, log: string, limit_ms: number): Promise<void> {
  const deadline = Date.now() + limit_ms
  for (;;) {
    const status = readStatus(file)
    if (status?.connected) return
    if (Date.now() > deadline)
      throw new ConfigError(
        `The agent is installed and is still trying, but has not connected within ${limit_ms / 1000} s: ` +
          `${status?.why ?? 'no reason is known.'} Its log: ${log}`,
      )
    await sleep(100)
  }
}
