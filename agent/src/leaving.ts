// Reports for the timeline of the device: its boot, its clock, how the agent lost its last tunnel, and why it
// leaves.
import { spawnSync } from 'node:child_process'
import { existsSync, readFileSync } from 'node:fs'
import os from 'node:os'
import { defined } from '@hawser/contract/defined'
import type { ConnectionReport, LeavingReason } from '@hawser/contract/reports'

export interface Loss {
  readonly why: string
  /** By performance.now(). */
  readonly at: number
}

export const updateReason = 'update'
/** Stops the agent of a container that is gone for good. */
export const goneReason = 'gone'

const systemctl_ms = 500
const longestWhy = 255

/** `isMachine`: the device is this machine, not a container on it. */
export function connectionReport(loss: Loss | undefined, isMachine: boolean): ConnectionReport {
  return {
    ...(isMachine ? { uptime_s: Math.round(os.uptime()), ...bootId() } : {}),
    clock_ms: Date.now(),
    ...defined({
      lost: loss && {
        why: loss.why.slice(0, longestWhy),
        ago_s: Math.round((performance.now() - loss.at) / 1_000),
      },
    }),
  }
}

function bootId(): { boot_id?: string } {
  try {
    return { boot_id: readFileSync('/proc/sys/kernel/random/boot_id', 'utf8').trim() }
  } catch {
    return {}
  }
}

/** The reason of the signal names an update. */
export function leavingReason(reason: unknown, isMachine: boolean): LeavingReason {
  if (reason === updateReason || reason === goneReason) return reason
  return isMachine && isShuttingDown() ? 'shutdown' : 'stopped'
}

/** Only systemd reports it. */
function isShuttingDown(): boolean {
  if (!existsSync('/run/systemd/system')) return false
  const { stdout } = spawnSync('systemctl', ['is-system-running'], {
    encoding: 'utf8',
    timeout: systemctl_ms,
  })
  return (stdout ?? '').trim() === 'stopping'
}
