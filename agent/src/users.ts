// Logins on this device, and their accounts. An agent that runs as root lets in the users of the
// system; another agent lets in its own user alone. Nothing is cached: an account that was locked a moment
// ago is locked. The reason for a refusal goes to the log, never to the client.
import { existsSync } from 'node:fs'
import os from 'node:os'
import path from 'node:path'
import { readShadow, accountState, today_days, type ShadowEntry } from '@hawser/engine/shadow'
import { ConfigError } from './config.ts'
import { nameServices, usualNameFiles, type NameFiles } from './name-services.ts'
import { passwords, type Passwords } from './passwords.ts'
import { isProgram } from './tools.ts'

export interface Account {
  readonly name: string
  readonly uid: number
  readonly gid: number
  /** Including the first. */
  readonly groups: readonly number[]
  readonly home: string
  readonly shell: string
}

export type Admission = { readonly account: Account } | { readonly refused: string }

export interface Users {
  /** For a user whose key was approved. */
  admit(name: string): Promise<Admission>
  /** Refusing a user who does not exist takes as long as refusing a wrong password. */
  admitWithPassword(name: string, password: string): Promise<Admission>
}

/** The users of the system for root, else the one whose password has this hash. */
export function usersOf(
  hash: string,
  log: (event: Record<string, unknown>) => void = () => undefined,
): Users {
  const checks = passwords({ log })
  if (hash === '') return systemUsers({ passwords: checks })
  const problem = checks.unable(hash)
  if (problem !== undefined) throw new ConfigError(`HAWSER_SINGLE_USER_PASSWORD: ${problem}`)
  return singleUser({ passwords: checks, hash })
}

export interface SystemFiles extends NameFiles {
  /** While one of these exists only root may log in. */
  readonly noLogin: readonly string[]
}

const usualFiles: SystemFiles = {
  ...usualNameFiles,
  noLogin: ['/run/nologin', '/var/run/nologin', '/etc/nologin'],
}

const noShells = new Set(['nologin', 'false'])

export interface SystemUsersOptions {
  readonly passwords: Passwords
  readonly files?: Partial<SystemFiles>
  /** Asks the name services of the system (NSS), so that users of a directory count; null: only the files. */
  readonly getent?: string | null
  now_ms?(): number
}

/** For an agent that runs as root. */
export function systemUsers(options: SystemUsersOptions): Users {
  const { passwords, now_ms = Date.now } = options
  const files = { ...usualFiles, ...options.files }
  const names = nameServices(files, options.getent)

  const find = async (
    name: string,
  ): Promise<{ account: Account; shadow: ShadowEntry | undefined } | undefined> => {
    if (!isName(name)) return undefined
    const [line, shadowLine] = await Promise.all([names.line('passwd', name), names.line('shadow', name)])
    const account = line === undefined ? undefined : readAccount(line)
    if (!account) return undefined
    const inPasswd = line!.split(':')[1]!
    const hidden = shadowLine === undefined ? undefined : readShadow(shadowLine)
    // Very small systems store the hash in passwd itself.
    const shadow = hidden ?? (inPasswd === 'x' ? undefined : readShadow(`${name}:${inPasswd}`))
    return { account: { ...account, groups: await names.groups(name, account.gid) }, shadow }
  }

  const judge = ({
    account,
    shadow,
  }: {
    account: Account
    shadow: ShadowEntry | undefined
  }): string | undefined => {
    if (noShells.has(path.basename(account.shell)) || !isProgram(account.shell)) return 'no login shell'
    if (account.uid !== 0 && files.noLogin.some((file) => existsSync(file))) return 'no logins now'
    return shadow && accountState(shadow, today_days(now_ms())).closed
  }

  return {
    async admit(name) {
      const found = await find(name)
      if (!found) return { refused: 'unknown user' }
      const closed = judge(found)
      return closed === undefined ? { account: found.account } : { refused: closed }
    },
    async admitWithPassword(name, password) {
      const found = await find(name)
      const state = found?.shadow && accountState(found.shadow, today_days(now_ms()))
      if (!found?.shadow || state?.noPassword === 'no password') {
        await passwords.pretend(password)
        return { refused: found ? 'no password' : 'unknown user' }
      }
      // The password first: only its owner may learn that the account is closed.
      if (!(await passwords.isOf(name, found.shadow.hash, password))) return { refused: 'wrong password' }
      const closed = judge(found) ?? state?.noPassword
      return closed === undefined ? { account: found.account } : { refused: closed }
    },
  }
}

/**
 * For an agent that is not root: its own user, under that user's name alone. Under any other name the
 * server's rules for users, of keys and of the firewall, would mean nothing here.
 */
export function singleUser(options: { readonly passwords: Passwords; readonly hash: string }): Users {
  const { passwords, hash } = options
  const account = ownAccount()
  return {
    admit: async (name) => (name === account.name ? { account } : { refused: 'unknown user' }),
    async admitWithPassword(name, password) {
      // An unknown name costs as much work as a known one.
      const right = await passwords.matches(password, hash)
      if (name !== account.name) return { refused: 'unknown user' }
      return right ? { account } : { refused: 'wrong password' }
    },
  }
}

export function ownAccount(): Account {
  const { username, uid, gid, homedir, shell } = os.userInfo()
  return {
    name: username,
    uid,
    gid,
    groups: process.getgroups?.() ?? [gid],
    home: homedir,
    shell: shell ?? '/bin/sh',
  }
}

/** Names that are safe in commands and files: no option, field separator, path or invisible character. */
function isName(name: string): boolean {
  return /^[^-:/\p{C}][^:/\p{C}]{0,255}$/u.test(name)
}

/** name : password : uid : gid : comment : home : shell */
function readAccount(line: string): Account | undefined {
  const [name, , uid, gid, , home, shell] = line.split(':')
  if (!name || !/^\d+$/.test(uid ?? '') || !/^\d+$/.test(gid ?? '')) return undefined
  return {
    name,
    uid: Number(uid),
    gid: Number(gid),
    groups: [Number(gid)],
    home: home || '/',
    shell: shell || '/bin/sh',
  }
}
