// What the agent says of its machine and of its own end, for the timeline of the device: which boot this is,
// what time it has, how it lost its last tunnel, and why it leaves.
import { spawnSync } from 'node:child_process'
import { existsSync, readFileSync } from 'node:fs'
import os from 'node:os'
import type { ConnectionReport, LeavingReason } from '@hawser/contract/reports'

/** How a tunnel was lost. */
export interface Loss {
  readonly why: string
  /** By performance.now(). */
  readonly at: number
}

/** The reason with which an update stops the agent. */
export const updateReason = 'update'
/** The reason with which the agent of a container stops that is gone for good. */
export const goneReason = 'gone'

const systemctl_ms = 500
const longestWhy = 255

/** `isMachine`: the device is this machine, and not a container on it. */
export function connectionReport(loss: Loss | undefined, isMachine: boolean): ConnectionReport {
  return {
    ...(isMachine ? { uptime_s: Math.round(os.uptime()), ...bootId() } : {}),
    clock_ms: Date.now(),
    ...(loss
      ? {
          lost: {
            why: loss.why.slice(0, longestWhy),
            ago_s: Math.round((performance.now() - loss.at) / 1_000),
          },
        }
      : {}),
  }
}

function bootId(): { boot_id?: string } {
  try {
    return { boot_id: readFileSync('/proc/sys/kernel/random/boot_id', 'utf8').trim() }
  } catch {
    return {}
  }
}

/** Why the agent was told to stop; the reason of its signal names an update. */
export function leavingReason(reason: unknown, isMachine: boolean): LeavingReason {
  if (reason === updateReason || reason === goneReason) return reason
  return isMachine && isShuttingDown() ? 'shutdown' : 'stopped'
}

/** Only systemd says so. */
function isShuttingDown(): boolean {
  if (!existsSync('/run/systemd/system')) return false
  const { stdout } = spawnSync('systemctl', ['is-system-running'], {
    encoding: 'utf8',
    timeout: systemctl_ms,
  })
  return (stdout ?? '').trim() === 'stopping'
}
