// Runs the OpenSSH programs of this machine so that they reach a device: with the SSH address that the server
// reports, and the SSHID of the device as the user. Keys, agents, known hosts and ~/.ssh/config stay theirs.
// Values from the server are checked before they become arguments: a host that starts with a dash would be an
// option.
import { spawn, type SpawnOptions } from 'node:child_process'
import os from 'node:os'
import { client } from '@hawser/contract/client'
import type { Device } from '@hawser/contract/devices'
import { CliError, notFoundCode, unreachableCode } from './errors.ts'
import type { Context } from './context.ts'
import { findDevice } from './resolve.ts'
import { safeText } from './safe-text.ts'

export interface Gateway {
  readonly host: string
  readonly port: string
}

export async function findGateway(context: Context): Promise<Gateway> {
  const { body } = await client(context.anonymous()).system.info()
  const [, host, port] =
    /^(\[[0-9a-fA-F:.]+\]|[A-Za-z0-9][A-Za-z0-9.-]*):(\d{1,5})$/.exec(body.endpoints.ssh) ?? []
  if (!host || !port)
    throw new CliError(
      `The server names no usable SSH address: ${safeText(body.endpoints.ssh)}.`,
      unreachableCode,
    )
  return { host, port }
}

/** Splits `[user@]device`. As with ssh, the user defaults to the person's own name. */
export function splitTarget(text: string): { user: string; device: string } {
  const at = text.lastIndexOf('@')
  return { user: at < 0 ? os.userInfo().username : text.slice(0, at), device: text.slice(at + 1) }
}

/** The user name for the gateway: `user@namespace.device`. */
export function sshidOf(user: string, { namespace, name }: Pick<Device, 'namespace' | 'name'>): string {
  // The name becomes an argument and a line of ssh_config, and a server could name its devices anything.
  if (![namespace, name].every((part) => /^[A-Za-z0-9_.-]+$/.test(part))) {
    throw new CliError(
      `${safeText(`${namespace}.${name}`)} is not a valid name for ssh. Rename the device: \`hawser devices rename\`.`,
    )
  }
  return `${user}@${namespace}.${name}`
}

/**
 * The SSHID for `[user@]device`. Looking the device up reports a wrong name before ssh starts; without a
 * sign-in, `namespace.device` is used as it is.
 */
export async function targetOf(context: Context, text: string): Promise<string> {
  const { user, device } = splitTarget(text)
  context.options(true)
  if (device.includes('.') && context.credential() === 'none') return `${user}@${device}`
  try {
    return sshidOf(user, reachable(await findDevice(context.api(), device)))
  } catch (error) {
    if (error instanceof CliError && error.code === notFoundCode && /^[^.]+\../.test(device))
      return `${user}@${device}`
    throw error
  }
}

export function reachable(device: Device): Device {
  if (device.status === 'accepted') return device
  const name = safeText(device.name)
  throw new CliError(
    `${name} is ${device.status}, so nobody can reach it. Run \`hawser devices accept ${name}\`.`,
  )
}

/** Without the brackets of an IPv6 address, which scp wants and ssh does not. */
export const bare = (host: string): string => host.replace(/^\[(.*)\]$/, '$1')

/** Runs a program on this process's input and output. */
export async function launch(
  program: string,
  args: readonly string[],
  options: SpawnOptions = {},
): Promise<number> {
  const child = spawn(program, args, { stdio: 'inherit', ...options })
  // The terminal sends Ctrl-C to the child as well. Other signals reach only this process, so pass them on.
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

export function missing(program: string): CliError {
  return new CliError(
    `${program} is not installed here. It comes with OpenSSH: on Debian, \`apt install openssh-client\`.`,
  )
}
