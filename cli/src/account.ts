// Who is signed in where: one file, readable by its owner only, with a token for each server. A token is only
// ever sent to the server that gave it. The file is replaced as a whole, so that an interrupted command
// leaves the old or the new one.
import { chmodSync, mkdirSync, readFileSync, renameSync, rmSync, statSync, writeFileSync } from 'node:fs'
import os from 'node:os'
import path from 'node:path'
import { Complaint, signInCode } from './complaint.ts'

export interface Account {
  readonly token: string
  readonly username: string
  /** The namespace that the token is for; empty: none. */
  readonly tenant: string
}

interface Kept {
  /** The server signed in to last. */
  readonly current: string
  readonly accounts: Readonly<Record<string, Account>>
}

export type Accounts = ReturnType<typeof accounts>

export function accounts(env: NodeJS.ProcessEnv) {
  const home = env['XDG_CONFIG_HOME'] || path.join(env['HOME'] || os.homedir(), '.config')
  const folder = path.join(home, 'hawser')
  const file = path.join(folder, 'account.json')

  function read(): Kept {
    let text: string
    try {
      if ((statSync(file).mode & 0o077) !== 0) {
        throw new Complaint(
          `Others may read ${file}, which holds your tokens. Run \`chmod 600 ${file}\`, or sign in anew.`,
          signInCode,
        )
      }
      text = readFileSync(file, 'utf8')
    } catch (error) {
      if ((error as NodeJS.ErrnoException).code === 'ENOENT') return { current: '', accounts: {} }
      throw error
    }
    try {
      const kept = JSON.parse(text) as Partial<Kept> | null
      if (typeof kept?.current === 'string' && typeof kept.accounts === 'object') return kept as Kept
    } catch {
      // Said below: what cannot be read is not guessed at.
    }
    throw new Complaint(`${file} cannot be read. Remove it and run \`hawser login\`.`, signInCode)
  }

  function write(kept: Kept): void {
    mkdirSync(folder, { recursive: true, mode: 0o700 })
    const fresh = `${file}.${process.pid}`
    try {
      writeFileSync(fresh, `${JSON.stringify(kept, null, 2)}\n`, { mode: 0o600, flag: 'wx' })
      // The mode above is cut by the umask and never widened by it; this is for the reader of this line.
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
    keep(server: string, account: Account): void {
      // Whoever signs in anew is not stopped by an old file that is broken or open to others.
      let old: Kept = { current: '', accounts: {} }
      try {
        old = read()
      } catch (error) {
        if (!(error instanceof Complaint)) throw error
      }
      write({ current: server, accounts: { ...old.accounts, [server]: account } })
    },
    forget(server: string): boolean {
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
