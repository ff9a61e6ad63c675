// How the tests run: every `*.test.ts` of a tier (tests/harness/tier.ts), on the two cores that they must
// pass on. Run them with `npm test`, the long ones with `npm run test:long`.
import { globSync } from 'node:fs'
import path from 'node:path'
import { defineConfig } from 'vitest/config'
import { longestWait_ms } from './tests/harness/eventually.ts'
import { isLong, isLongTest, isOfBothTiers } from './tests/harness/tier.ts'

const root = import.meta.dirname
const outside = ['**/node_modules/**']
const files = globSync('**/*.test.ts', { cwd: root, exclude: outside }).filter(
  (file) => isLongTest(file) === isLong || (isLong && isOfBothTiers(root, file)),
)

const common = {
  environment: 'node',
  // Processes, not threads: a test may end its children or crash without taking others along.
  pool: 'forks',
  globals: false,
  // Where it decides about a change, a test with real programs gets a second try on a machine that does
  // other things too; the report names those that needed it, and they want mending. On a developer's
  // machine there is none.
  retry: process.env['CI'] ? 1 : 0,
  testTimeout: 90_000,
  expect: { poll: { timeout: longestWait_ms } },
  hookTimeout: 120_000,
} as const

// Test files share a process, and with it all that it has loaded: those of single modules one, all others another,
// because what servers leave to the collector would slow the modules down.
const ofModules = ['{contract,console,engine,mux}/**', 'ssh/src/**']
/** Tests that weigh their process, or that need one of their own for another reason. */
const apart = [
  // The long tests of programs move gigabytes, which would weigh on those that follow.
  ...(isLong
    ? [
        '{agent,cli}/**',
        'ssh/test/**',
        'tests/{clients,cluster,failures,fuzz,import}/**',
        '**/*{openssh,nats,dropbear}*',
      ]
    : []),
  'tests/{packages,guides}/**',
  'tests/*.test.ts',
  '**/*{browser,docker,systemd}*',
  '**/*{memory,storm,disk,unread,large-reads,on-the-loop,tunnel-lines}*',
]
const isOneOf = (globs: readonly string[], file: string): boolean =>
  globs.some((glob) => path.matchesGlob(file, glob))
const kindOf = (file: string): 'modules' | 'servers' | 'apart' => {
  if (isOneOf(apart, file)) return 'apart'
  return isOneOf(ofModules, file) ? 'modules' : 'servers'
}
const project = (name: ReturnType<typeof kindOf>) => ({
  test: {
    ...common,
    execArgv: ['--disable-warning=ExperimentalWarning'],
    name,
    include: files.filter((file) => kindOf(file) === name),
    isolate: name === 'apart',
  },
})

export default defineConfig({
  test: {
    // More than there are cores: what most tests do most of the time is wait for a real program.
    maxWorkers: isLong ? 3 : 4,
    globalSetup: ['tests/harness/global-setup.ts'],
    // Said explicitly, so that its closing summary is there no matter what runs the tests.
    reporters: ['default', './tests/harness/second-tries.ts'],
    // Advice on speed would come after that summary, which is to be the end.
    experimental: { diagnostics: false },
    projects: [project('modules'), project('servers'), project('apart')],
  },
})
