// `npm run check`: everything that can be said about the code without running it, in seconds, side by side.
// Each part is reported with its time; what a part has printed is shown only when it fails. It changes
// nothing: `npm run format` is what repairs the format.
import { spawn } from 'node:child_process'
import path from 'node:path'

const root = path.join(import.meta.dirname, '..')

// The programs of packages, started with our own Node: the links in .bin would start the system's, which may
// be old.
const parts: Readonly<Record<string, readonly string[]>> = {
  types: ['node_modules/typescript/bin/tsc', '-p', '.'],
  'console types': ['node_modules/typescript/bin/tsc', '-p', 'console'],
  lint: ['node_modules/oxlint/bin/oxlint'],
  format: ['node_modules/oxfmt/bin/oxfmt', '--check', '.'],
  architecture: ['node_modules/vitest/vitest.mjs', 'run', 'tests/architecture.test.ts'],
}

interface Outcome {
  readonly name: string
  readonly ok: boolean
  readonly output: string
}

async function check(name: string, command: readonly string[]): Promise<Outcome> {
  const started = performance.now()
  // Both streams into one pipe would need a shell; in the order in which they arrive is good enough to read.
  let output = ''
  const child = spawn(process.execPath, command, { cwd: root, stdio: ['ignore', 'pipe', 'pipe'] })
  for (const stream of [child.stdout, child.stderr])
    stream.setEncoding('utf8').on('data', (chunk: string) => (output += chunk))
  const code = await new Promise<number | null>((resolve, reject) =>
    child.on('error', reject).on('close', resolve),
  )
  const seconds = ((performance.now() - started) / 1000).toFixed(1)
  console.log(`${name.padEnd(14)}${(code === 0 ? 'ok' : 'FAILED').padEnd(8)}${seconds.padStart(5)} s`)
  return { name, ok: code === 0, output }
}

const outcomes = await Promise.all(Object.entries(parts).map(([name, command]) => check(name, command)))
const failed = outcomes.filter((outcome) => !outcome.ok)
for (const { name, output } of failed) console.log(`\n---- ${name} ----\n${output.trim()}`)
if (failed.length > 0) {
  console.log(`\ncheck: ${failed.map((outcome) => outcome.name).join(', ')} failed`)
  process.exitCode = 1
}
