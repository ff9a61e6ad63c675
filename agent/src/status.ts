// The agent's state in a small file, for `hawser-agent status`, and for `hawser-agent install`, which waits
// until the started agent is connected.
import { readFileSync, renameSync, rmSync, writeFileSync } from 'node:fs'
import { defined } from '@hawser/contract/defined'

export const defaultStatusFile = '/run/hawser-agent.status'

export interface Status {
  readonly pid: number
  readonly connected: boolean
  /** When the present state began, as an ISO date. */
  readonly since: string
  /** `namespace.device`, once it has enrolled. */
  readonly device?: string
  /** Why the agent is not connected. */
  readonly why?: string
}

/** Takes the agent's log events and writes the file when an event changes the status. */
export function statusWriter(file: string): (event: Readonly<Record<string, unknown>>) => void {
  let device: string | undefined
  let last: Status | undefined
  return (event) => {
    if (typeof event['device'] === 'string') device = event['device']
    const connected = event['event'] === 'tunnel.up'
    if (!connected && event['event'] !== 'tunnel.lost' && event['event'] !== 'connection.failed') return
    const status: Status = {
      pid: process.pid,
      connected,
      // The next failure is the same state, maybe for another reason.
      since: last?.connected === connected ? last.since : new Date().toISOString(),
      ...defined({ device, why: connected ? undefined : String(event['why']) }),
    }
    last = status
    try {
      writeFileSync(`${file}.new`, `${JSON.stringify(status)}\n`, { mode: 0o644 })
      renameSync(`${file}.new`, file)
    } catch {
      // The agent works without it.
    }
  }
}

/** Undefined: no agent with this file runs. */
export function readStatus(file: string): Status | undefined {
  let status: Status
  try {
    status = JSON.parse(readFileSync(file, 'utf8')) as Status
  } catch {
    return undefined
  }
  return isRunning(status.pid) ? status : undefined
}

function isRunning(pid: number): boolean {
  try {
    return process.kill(pid, 0)
  } catch (error) {
    // The agent runs as root, and others may not signal it.
    return (error as NodeJS.ErrnoException).code === 'EPERM'
  }
}

export const removeStatus = (file: string): void => rmSync(file, { force: true })

/** The exit code is that of init scripts: 0 connected, 1 not, 3 not running. */
export function tellStatus(file: string): { readonly sentence: string; readonly code: number } {
  const status = readStatus(file)
  if (!status) return { sentence: 'the agent is not running as a service on this device', code: 3 }
  if (status.connected)
    return { sentence: `connected as ${status.device ?? 'a device'} since ${status.since}`, code: 0 }
  return { sentence: `not connected since ${status.since}: ${status.why ?? ''}`, code: 1 }
}
