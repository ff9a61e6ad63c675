// A shell in a container that runs our scripts one after the other. Each script is one line; its output and
// status come back. An unguessable mark ends each answer, because the bytes of a file may be anything. Only
// scripts are written to the shell: it could run the bytes of a file as a script.
//   in   <script> LF
//   out  <what it printed> LF <mark> SP <status> SP <what it complained of> LF <mark> LF
import { randomBytes } from 'node:crypto'
import { EngineFailure } from './client.ts'
import { CollectedBytes } from './collected-bytes.ts'
import type { Exec, Output } from './exec.ts'

export interface ScriptResult {
  readonly status: number
  readonly output: Buffer
  readonly complaint: string
}

export interface ContainerShell {
  /** Larger output fails and ends the shell. */
  run(script: string, options?: { readonly most_bytes?: number }): Promise<ScriptResult>
}

/** For one script, so that a file that never answers does not block the shell for ever. */
const limit_ms = 60_000
const default_bytes = 64 * 1024
/** For the report itself, and for error messages of a script. */
const slack_bytes = 64 * 1024

/** `$1`: the mark, `$NL`: the end of a line. Scripts run apart, so that they cannot end the loop. */
export const shellLoop = `exec 3>&1
while IFS= read -r s; do
e=$(eval "$s" 2>&1 >&3); r=$?
printf '\\n%s %s %s\\n%s\\n' "$1" "$r" "$e" "$1" >&3
done`

export const newMark = (): string => randomBytes(16).toString('hex')

export function containerShell(exec: Exec, output: AsyncIterator<Output>, mark: string): ContainerShell {
  const first = Buffer.from(`\n${mark} `)
  const last = Buffer.from(`\n${mark}\n`)

  /** Reads to the end of the script's report, the last output until the next script. */
  async function report(most_bytes: number): Promise<ScriptResult> {
    using collected = new CollectedBytes(most_bytes + slack_bytes, (why) =>
      why === 'too large'
        ? new EngineFailure('The container sent more data than requested.')
        : new EngineFailure('There is no memory for the answer of the container right now.'),
    )
    while (!collected.bytes().subarray(-last.length).equals(last)) {
      const next = await output.next()
      if (next.done) throw new EngineFailure('The shell in the container has ended.')
      const { stream, bytes } = next.value
      // Errors of the shell itself are dropped.
      if (stream !== 0) continue
      collected.add(bytes)
    }
    const whole = collected.bytes()
    const end = whole.length - last.length
    const begin = whole.lastIndexOf(first, end)
    const said = /^(\d+) (.*)$/s.exec(whole.toString('utf8', begin + first.length, end))
    if (begin < 0 || !said) throw new EngineFailure('The shell in the container answers strangely.')
    return { status: Number(said[1]), output: whole.subarray(0, begin), complaint: said[2]!.slice(0, 1_000) }
  }

  return {
    async run(script, { most_bytes = default_bytes } = {}) {
      if (script.includes('\n')) throw new Error('A script is one line.')
      const timer = setTimeout(() => exec.close(), limit_ms)
      try {
        if (!(await exec.write(Buffer.from(`${script}\n`))))
          throw new EngineFailure('The shell in the container has ended.')
        return await report(most_bytes)
      } finally {
        clearTimeout(timer)
      }
    },
  }
}

export function quoted(word: string): string {
  return `'${word.replaceAll("'", `'\\''`).replaceAll('\n', `'"$NL"'`)}'`
}
