// The real command for tests, bundled as people get it, in a process of its own, with a home of its own so that it
// knows nobody else's account. On the path of a shell it also has the commands of the server, as in a checkout.
import { mkdirSync, mkdtempSync, rmSync, writeFileSync } from 'node:fs'
import os from 'node:os'
import path from 'node:path'
import { bundled } from '../../packages/bundled.ts'
import { run } from '../../ssh/test/programs.ts'
import { openTerminal, type Terminal } from '../../tests/clients/terminal.ts'

const program = await bundled('cli')
const ofCheckout = path.join(import.meta.dirname, '../../hawser.ts')

export interface Said {
  readonly code: number | null
  readonly stdout: string
  readonly stderr: string
}

export interface Desk extends Disposable {
  readonly folder: string
  /** Runs the command to its end. */
  hawser(words: readonly string[], how?: { input?: string; env?: Record<string, string> }): Promise<Said>
  /** Runs the command on a terminal. */
  terminal(words: readonly string[], env?: Record<string, string>): Terminal
  /** A line of bash on a terminal, in which `hawser` is the command. */
  shell(line: string, env?: Record<string, string>): Terminal
  /** A folder with `hawser`, for the path. */
  readonly bin: string
}

/** A home and an environment. */
export function openDesk(env: Record<string, string> = {}): Desk {
  const folder = mkdtempSync(path.join(os.tmpdir(), 'hawser-desk-'))
  const here = {
    HOME: folder,
    XDG_CONFIG_HOME: path.join(folder, 'config'),
    HAWSER_SERVER: '',
    HAWSER_API_KEY: '',
    ...env,
  }
  const bin = path.join(folder, 'bin')
  mkdirSync(bin)
  const script = `#!/bin/sh
case $1 in serve | admin | import | recording) program='${ofCheckout}' ;; *) program='${program}' ;; esac
exec '${process.execPath}' "$program" "$@"
`
  writeFileSync(path.join(bin, 'hawser'), script, { mode: 0o755 })
  return {
    folder,
    bin,
    shell: (line, more = {}) =>
      openTerminal('/bin/bash', ['--norc', '-c', line], {
        columns: 120,
        env: { ...here, ...more, PATH: `${bin}:${process.env['PATH']}` },
      }),
    async hawser(words, how = {}) {
      const { status, stdout, stderr } = await run(process.execPath, [program, ...words], how.input, {
        ...here,
        ...how.env,
      })
      return { code: status, stdout: stdout.toString(), stderr }
    },
    terminal: (words, more = {}) =>
      openTerminal(process.execPath, [program, ...words], { columns: 120, env: { ...here, ...more } }),
    [Symbol.dispose]: () => rmSync(folder, { recursive: true, force: true }),
  }
}
