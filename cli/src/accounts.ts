// The accounts file: a token for each server, readable by its owner only. A token is sent only to the server
// that issued it. The file is replaced atomically, so that an interrupted command leaves the old or the new
// one.
import { chmodSync, mkdirSync, readFileSync, renameSync, rmSync, statSync, writeFileSync } from 'node:fs'
import os from 'node:os'
import path from 'node:path'
import { CliError, signInCode } from './errors.ts'

export interface Account {
  readonly token: string
  readonly username: string
  /** The namespace of the token; empty: none. */
  readonly tenant: string
}

interface AccountsFile {
  /** The server of the latest sign-in. */
  readonly current: string
  readonly accounts: Readonly<Record<string, Account>>
}

export type Accounts = ReturnType<typeof accounts>

export function accounts(env: NodeJS.ProcessEnv) {
  const home = env['XDG_CONFIG_HOME'] || path.join(env['HOME'] || os.homedir(), '.config')
  const folder = path.join(home, 'hawser')
  const file = path.join(folder, 'account.json')

  function read(): AccountsFile {
    let text: string
    try {
      if ((statSync(file).mode & 0o077) !== 0) {
        throw new CliError(
          `Others may read ${file}, which holds your tokens. Run \`chmod 600 ${file}\`, or sign in again.`,
          signInCode,
        )
      }
      text = readFileSync(file, 'utf8')
    } catch (error) {
      if ((error as NodeJS.ErrnoException).code === 'ENOENT') return { current: '', accounts: {} }
      throw error
    }
    try {
      const parsed = JSON.parse(text) as Partial<AccountsFile> | null
      if (typeof parsed?.current === 'string' && typeof parsed.accounts === 'object')
        return parsed as AccountsFile
    } catch {
      // Reported below.
    }
    throw new CliError(`${file} cannot be read. Remove it and run \`hawser login\`.`, signInCode)
  }

  function write(content: AccountsFile): void {
    mkdirSync(folder, { recursive: true, mode: 0o700 })
    const fresh = `${file}.${process.pid}`
    try {
      writeFileSync(fresh, `${JSON.stringify(content, null, 2)}\n`, { mode: 0o600, flag: 'wx' })
      // The umask can only narrow the mode above; this sets it exactly.
      chmodSync(fresh, 0o600)
      renameSync(fresh, file)
    } finally {
      rmSync(fresh, { force: true })
    }
  }

  return {
    file,
    current: (): string => read().current,
    find: (server: string): Account | undefined => read().accounts[server],
    save(server: string, account: Account): void {
      // A broken file, or one that others can read, must not stop a new sign-in.
      let old: AccountsFile = { current: '', accounts: {} }
      try {
        old = read()
      } catch (error) {
        if (!(error instanceof CliError)) throw error
      }
      write({ current: server, accounts: { ...old.accounts, [server]: account } })
    },
    /** Returns whether there was an account. */
    remove(server: string): boolean {
      const kept = read()
      if (!(server in kept.accounts)) return false
      const left = Object.fromEntries(Object.entries(kept.accounts).filter(([name]) => name !== server))
      write({
        current: kept.current === server ? (Object.keys(left)[0] ?? '') : kept.current,
        accounts: left,
      })
      return true
    },
  }
}
