// `npm test`: makes sure that the programs which the tests use are there, then hands everything to vitest,
// arguments and exit code untouched (`npm test -- tests/storage` runs a part). `npm run test:long` (`--long`)
// runs the long tier; harness/tier.ts says which tests are in it. What the tests of this run need and the
// machine lacks is installed or named, once and before anything runs; a test that cannot run is never
// skipped in silence.
import { spawn, spawnSync } from 'node:child_process'
import { globSync } from 'node:fs'
import path from 'node:path'
import { isThere, missing, needs, remedy, toBeRun, wordsOf } from './harness/needs.ts'
import { isLongTest, isOfBothTiers } from './harness/tier.ts'

const root = path.join(import.meta.dirname, '..')
const isLong = process.argv[2] === '--long'
const args = process.argv.slice(isLong ? 3 : 2)

const all = globSync('**/*.test.ts', {
  cwd: root,
  exclude: (name) => name === 'node_modules' || name.endsWith('/node_modules'),
})
const testFiles = all.filter((file) => isLongTest(file) === isLong || (isLong && isOfBothTiers(root, file)))
const words = wordsOf(args)
if (toBeRun(testFiles, words).length === 0 && toBeRun(all, words).length > 0) {
  const other = isLong ? 'npm test' : 'npm run test:long'
  fail(`tests: that is of the other tier: ${other} -- ${args.join(' ')}`)
}
const lacking = () => missing(needs, toBeRun(testFiles, words), isThere)
const apt = isThere({ command: 'apt-get' })

let todo = remedy(lacking(), { root: process.getuid?.() === 0, apt })
if (todo.kind === 'install') {
  console.error(todo.lines)
  aptGet(['update'])
  aptGet(['install', '-y', '--no-install-recommends', ...todo.packages])
  // A package may be installed and yet not bring what we look for; that must not pass for success.
  todo = remedy(lacking(), { root: false, apt })
}
if (todo.kind === 'refuse') fail(todo.message)

// Every test file is a process, and most start others: compiled code is kept for all of them.
const env = {
  LONG_TESTS: isLong ? '1' : '',
  NODE_COMPILE_CACHE: path.join(root, 'node_modules/.hawser-compiled'),
  ...process.env,
}
const vitest = path.join(root, 'node_modules/vitest/vitest.mjs')
const child = spawn(process.execPath, [vitest, 'run', '--configLoader=native', ...args], {
  cwd: root,
  stdio: 'inherit',
  env,
})
// The terminal sends Ctrl-C to the whole group, others signal only us. Either way vitest decides when it is
// done.
const signals = ['SIGINT', 'SIGTERM', 'SIGHUP'] as const
for (const signal of signals) process.on(signal, () => child.kill(signal))
child.on('exit', (code, signal) => {
  for (const name of signals) process.removeAllListeners(name)
  if (signal) process.kill(process.pid, signal)
  else process.exit(code ?? 1)
})

/** What apt-get prints is of interest only when it fails. */
function aptGet(words: string[]): void {
  const env = { ...process.env, DEBIAN_FRONTEND: 'noninteractive' }
  // Twenty times what the largest installation prints; at the limit Node would kill apt-get half-way.
  const done = spawnSync('apt-get', words, { env, encoding: 'utf8', maxBuffer: 64 * 1024 * 1024 })
  if (done.status !== 0) {
    fail(
      `${done.stdout}${done.stderr}\ntests: \`apt-get ${words.join(' ')}\` failed; the lines above say why.`,
    )
  }
}

function fail(message: string): never {
  console.error(message)
  process.exit(1)
}
