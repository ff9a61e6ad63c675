// The server's answers about this device: its name, its token, and the server's key for approvals, which
// is pinned. Without an answer, or when the token is no longer valid, the device enrols.
import type { DeviceNews } from '@hawser/contract/reports'
import type { AgentConfig } from './config.ts'
import type { Enrolled } from './enrol.ts'
import { messageOf } from './message-of.ts'
import { pinServerKey } from './server-key.ts'

export interface EnrolledDevice {
  /** Only for callers that run after `enrolled`. */
  now(): Enrolled
  names(): { readonly uid: string; readonly device: string }
  serverKey(): Buffer | undefined
  enrolled(): Promise<Enrolled>
  /** Enrols again to report. Failures are only logged. */
  renew(): Promise<void>
  told(news: DeviceNews): void
  forget(): void
}

export function enrolledDevice(
  config: Pick<AgentConfig, 'server' | 'keyFile'>,
  enrol: () => Promise<Enrolled>,
  log: (event: Record<string, unknown>) => void,
): EnrolledDevice {
  let device: Enrolled | undefined
  let last: Enrolled
  let serverKey: Buffer | undefined
  const names = (): { uid: string; device: string } => ({
    uid: last.uid,
    device: `${last.namespace}.${last.name}`,
  })
  return {
    now: () => last,
    names,
    serverKey: () => serverKey,
    async enrolled() {
      if (device) return device
      device = last = await enrol()
      serverKey = pinServerKey(config.keyFile, config.server, device.approval_key)
      if (!serverKey && device.approval_key !== undefined)
        log({
          level: 'warn',
          event: 'server-key.changed',
          message:
            'The server has a new key for approvals, so the agent asks the server about every login by key. If the change is expected, remove the file that ends in .server next to the key.',
        })
      log({ event: 'device.enrolled', ...names() })
      return device
    },
    async renew() {
      try {
        device = last = await enrol()
      } catch (error) {
        // The tunnel notices it too; the next attempt follows.
        log({ level: 'debug', event: 'beat.failed', why: messageOf(error) })
      }
    },
    told({ name, status }) {
      if (device) device = last = { ...device, name: name ?? device.name, status: status ?? device.status }
    },
    forget: () => void (device = undefined),
  }
}
