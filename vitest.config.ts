// How the tests run: every `*.test.ts` of the project, each file in a process of its own, two at a time,
// because the tests start real programs and the machine they must pass on has two cores. Run them with `npm
// test`, the long ones with `npm run test:long`.
import { defineConfig } from 'vitest/config'

const isLong = process.env['LONG_TESTS'] === '1'

export default defineConfig({
  test: {
    include: isLong ? ['**/*.long.test.ts', 'tests/fuzz/*.test.ts'] : ['**/*.test.ts'],
    exclude: isLong ? ['**/node_modules/**'] : ['**/node_modules/**', '**/*.long.test.ts'],
    environment: 'node',
    // Processes, not threads: a test may end its children, change its folder or crash without taking others
    // along.
    pool: 'forks',
    execArgv: ['--disable-warning=ExperimentalWarning'],
    isolate: true,
    maxWorkers: 2,
    globals: false,
    // Where it decides about a change, a test with real programs gets a second try on a machine that does
    // other things too; the report names those that needed it, and they want mending. On a developer's
    // machine there is none.
    retry: process.env['CI'] ? 1 : 0,
    globalSetup: ['tests/harness/global-setup.ts'],
    testTimeout: 90_000,
    hookTimeout: 120_000,
    // Said explicitly, so that its closing summary is there whoever or whatever runs the tests.
    reporters: ['default', './tests/harness/second-tries.ts'],
    // Advice on speed would come after that summary, which is to be the end.
    experimental: { diagnostics: false },
  },
})
