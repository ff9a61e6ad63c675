// What the tests need from outside npm, and what to do when it is missing. A need counts only while tests that use it
// are among those to be run; one that counts and is missing is installed or stops the run with one message that names
// everything. No test is ever skipped for it. Deciding is here and pure; asking the machine and acting is in tests/run.ts.
import { accessSync, constants } from 'node:fs'
import path from 'node:path'

export interface Need {
  readonly name: string
  /** A command on the path, or a file. */
  readonly found: { readonly command: string } | { readonly file: string }
  readonly debianPackage: string
  readonly why: string
  /** Globs of test files. The name of a test file tells which program it needs, so that a pure test beside it needs none. */
  readonly usedBy: readonly string[]
}

// PostgreSQL is not among them: npm brings it, see postgres.ts.
export const needs: readonly Need[] = [
  {
    name: 'OpenSSH client',
    found: { command: 'ssh' },
    debianPackage: 'openssh-client',
    why: 'real clients (ssh, scp, sftp) connect through the gateway',
    usedBy: ['**/*openssh*'],
  },
  {
    name: 'OpenSSH server',
    found: { command: 'sshd' },
    debianPackage: 'openssh-server',
    why: 'our SSH client role is tested against the server most people run',
    usedBy: ['**/*openssh*'],
  },
  {
    name: 'Chromium',
    found: { command: 'chromium' },
    debianPackage: 'chromium',
    why: 'the console is tested in a real browser',
    usedBy: ['**/*browser*'],
  },
  {
    name: 'NATS server',
    found: { command: 'nats-server' },
    debianPackage: 'nats-server',
    why: 'the bus between several servers is tested against a real one',
    usedBy: ['**/*nats*'],
  },
]

/** Asks the machine. The folders of administration count too: sshd is there, and an ordinary user's path leaves them out. */
export function isThere(found: Need['found']): boolean {
  const folders = [...(process.env.PATH ?? '').split(path.delimiter), '/usr/local/sbin', '/usr/sbin', '/sbin'].filter(Boolean)
  const files = 'file' in found ? [found.file] : folders.map((folder) => path.join(folder, found.command))
  return files.some((file) => {
    try {
      accessSync(file, 'file' in found ? constants.R_OK : constants.X_OK)
      return true
    } catch {
      return false
    }
  })
}

/**
 * The test files that `npm test -- <args>` will run: vitest takes every bare word as a part of a path. Beside an
 * option a bare word may be that option's value, so then all tests count.
 */
export function toBeRun(testFiles: readonly string[], args: readonly string[]): string[] {
  if (args.length === 0 || args.some((arg) => arg.startsWith('-'))) return [...testFiles]
  return testFiles.filter((file) => args.some((arg) => file.includes(arg.replace(/^\.\//, ''))))
}

export function missing(needs: readonly Need[], testFiles: readonly string[], there: (found: Need['found']) => boolean): Need[] {
  const used = needs.filter((need) => testFiles.some((file) => need.usedBy.some((glob) => path.matchesGlob(file, glob))))
  return used.filter((need) => !there(need.found))
}

export type Remedy =
  | { readonly kind: 'nothing' }
  | { readonly kind: 'install'; readonly packages: readonly string[]; readonly line: string }
  | { readonly kind: 'refuse'; readonly message: string }

export function remedy(missing: readonly Need[], machine: { readonly root: boolean; readonly apt: boolean }): Remedy {
  if (missing.length === 0) return { kind: 'nothing' }
  const packages = [...new Set(missing.map((need) => need.debianPackage))]
  if (machine.root && machine.apt) {
    return { kind: 'install', packages, line: `tests: installing ${packages.join(', ')} with apt-get …` }
  }
  const rows = missing.map((need) => `  ${need.name} (Debian package ${need.debianPackage}): ${need.why}`)
  const advice = machine.apt ? `As root: apt-get install ${packages.join(' ')}` : 'Install them in the way of your system.'
  return { kind: 'refuse', message: ['tests: these programs are missing, and nothing was run:', ...rows, advice].join('\n') }
}
