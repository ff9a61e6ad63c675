// The programs of the device that we ask for help (getent, id, unix_chkpwd, stty …): found once in the
// usual folders, run without a shell, with an environment of their own, a time limit and a limit on what they
// may print.
import { execFile } from 'node:child_process'
import { accessSync, constants } from 'node:fs'
import path from 'node:path'

export const systemPath = '/usr/local/sbin:/usr/local/bin:/usr/sbin:/usr/bin:/sbin:/bin'

const limit_ms = 10_000
const most_bytes = 256 * 1024
const found = new Map<string, string | undefined>()

/** Undefined: the device does not have the program. */
export function tool(name: string): string | undefined {
  if (!found.has(name))
    found.set(
      name,
      systemPath
        .split(':')
        .map((folder) => path.join(folder, name))
        .find(isProgram),
    )
  return found.get(name)
}

export function isProgram(file: string): boolean {
  try {
    accessSync(file, constants.X_OK)
    return true
  } catch {
    return false
  }
}

export interface Outcome {
  /** Null: the program was killed or could not be started. */
  readonly status: number | null
  readonly output: string
}

/** Never throws: a program that cannot run has no status. */
export async function runTool(
  file: string,
  args: readonly string[],
  input: string | Buffer = '',
): Promise<Outcome> {
  return new Promise((resolve) => {
    const child = execFile(
      file,
      args,
      {
        env: { PATH: systemPath, LC_ALL: 'C' },
        cwd: '/',
        timeout: limit_ms,
        killSignal: 'SIGKILL',
        maxBuffer: most_bytes,
      },
      (error, output) =>
        resolve({ status: error ? (typeof error.code === 'number' ? error.code : null) : 0, output }),
    )
    // The program may end before it has read everything.
    child.stdin?.on('error', () => undefined)
    child.stdin?.end(input)
  })
}
