// How the tests run: every `*.test.ts` of the project, each file in a process of its own, two at a time, because the
// tests start real programs and the machine they must pass on has two cores. Run them with `npm test`.
import { defineConfig } from 'vitest/config'

export default defineConfig({
  test: {
    include: ['**/*.test.ts'],
    exclude: ['**/node_modules/**'],
    environment: 'node',
    // Processes, not threads: a test may end its children, change its folder or crash without taking others along.
    pool: 'forks',
    isolate: true,
    maxWorkers: 2,
    globals: false,
    globalSetup: ['tests/harness/global-setup.ts'],
    testTimeout: 90_000,
    hookTimeout: 120_000,
    // Said explicitly, so that its closing summary is there whoever or whatever runs the tests.
    reporters: ['default'],
    // Advice on speed would come after that summary, which is to be the end.
    experimental: { diagnostics: false },
  },
})
