// The OpenSSH programs on this machine, run with what they need to reach a device: the server's SSH address,
// which the server tells, and the SSHID of the device as the user. Keys, agents, known hosts and everything
// in ~/.ssh/config stay theirs. What comes from a server is checked before it is an argument: a host that
// begins with a dash would be an option.
import { spawn, type SpawnOptions } from 'node:child_process'
import os from 'node:os'
import { client } from '@hawser/contract/client'
import type { Device } from '@hawser/contract/devices'
import { Complaint, notFoundCode, unreachableCode } from './complaint.ts'
import type { Context } from './context.ts'
import { findDevice } from './resolve.ts'
import { safeText } from './safe-text.ts'

export interface Gateway {
  readonly host: string
  readonly port: string
}

export async function findGateway(context: Context): Promise<Gateway> {
  const { body } = await client(context.nobody()).system.info()
  const [, host, port] =
    /^(\[[0-9a-fA-F:.]+\]|[A-Za-z0-9][A-Za-z0-9.-]*):(\d{1,5})$/.exec(body.endpoints.ssh) ?? []
  if (!host || !port)
    throw new Complaint(
      `The server names no usable SSH address: ${safeText(body.endpoints.ssh)}.`,
      unreachableCode,
    )
  return { host, port }
}

/** `[user@]device`, where the user is the person's own name unless it is said, as with ssh. */
export function splitTarget(text: string): { user: string; device: string } {
  const at = text.lastIndexOf('@')
  return { user: at < 0 ? os.userInfo().username : text.slice(0, at), device: text.slice(at + 1) }
}

/** The user that the gateway is told: who, on which device of which namespace. */
export function sshidOf(user: string, { namespace, name }: Pick<Device, 'namespace' | 'name'>): string {
  // It is an argument and a line of ssh_config; a server could name its devices anything.
  if (![namespace, name].every((part) => /^[A-Za-z0-9_.-]+$/.test(part))) {
    throw new Complaint(
      `${safeText(`${namespace}.${name}`)} is no name that ssh can be told. Rename the device: \`hawser devices rename\`.`,
    )
  }
  return `${user}@${namespace}.${name}`
}

/**
 * Looks the device up, so that a wrong name is told before anything is dialled. `namespace.device` is taken
 * as it is by those who are not signed in.
 */
export async function targetOf(context: Context, text: string): Promise<string> {
  const { user, device } = splitTarget(text)
  context.options(true)
  if (device.includes('.') && context.credential() === 'none') return `${user}@${device}`
  try {
    return sshidOf(user, reachable(await findDevice(context.api(), device)))
  } catch (error) {
    if (error instanceof Complaint && error.code === notFoundCode && /^[^.]+\../.test(device))
      return `${user}@${device}`
    throw error
  }
}

export function reachable(device: Device): Device {
  if (device.status === 'accepted') return device
  const name = safeText(device.name)
  throw new Complaint(
    `${name} is ${device.status}, so nobody can reach it. Run \`hawser devices accept ${name}\`.`,
  )
}

/** A host as an argument of its own; scp wants the brackets of an IPv6 address, ssh does not. */
export const bare = (host: string): string => host.replace(/^\[(.*)\]$/, '$1')

/** Runs it in our place: its input, output and exit code are ours. */
export async function launch(
  program: string,
  args: readonly string[],
  options: SpawnOptions = {},
): Promise<number> {
  const child = spawn(program, args, { stdio: 'inherit', ...options })
  // Ctrl-C reaches the child from the terminal; what it then does is its business. Others signal only us.
  const pass = (signal: NodeJS.Signals): void => void child.kill(signal)
  const ignore = (): void => undefined
  process.on('SIGINT', ignore).on('SIGTERM', pass).on('SIGHUP', pass)
  try {
    return await new Promise<number>((resolve, reject) => {
      child.on('error', (error: NodeJS.ErrnoException) =>
        reject(error.code === 'ENOENT' ? missing(program) : error),
      )
      child.on('close', (code, signal) => resolve(code ?? 128 + (signal ? os.constants.signals[signal] : 0)))
    })
  } finally {
    process.off('SIGINT', ignore).off('SIGTERM', pass).off('SIGHUP', pass)
  }
}

export function missing(program: string): Complaint {
  return new Complaint(
    `${program} is not installed here. It comes with OpenSSH: on Debian, \`apt install openssh-client\`.`,
  )
}
