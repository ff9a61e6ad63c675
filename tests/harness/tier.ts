// The two tiers of the tests. `npm test` runs the daily one, which guards what people work on. `npm run
// test:long` runs the files named *.long.test.ts and, with larger numbers, every file that imports this one.
import { readFileSync } from 'node:fs'
import path from 'node:path'
import type { ServiceOptions } from './service.ts'

export const isLong = process.env['LONG_TESTS'] === '1'

/** A few times a day, and many times in the long tier. */
export const times = (daily: number, long: number): number => (isLong ? long : daily)

/**
 * For `describe.each`, where both databases get the same SQL: SQLite in the daily tier, PostgreSQL in the
 * long one. Where the SQL differs (lists, filters, counters, locks) a test takes `bothDatabases` of place.ts.
 */
export const oneDatabase: readonly (readonly [name: string, options: () => Promise<ServiceOptions>])[] = [
  isLong ? ['PostgreSQL', postgres] : ['SQLite', async () => ({})],
]

// Not at the top: most tests that import this file want no database.
async function postgres(): Promise<ServiceOptions> {
  const { begunDatabase } = await import('./service.ts')
  return { database: await begunDatabase() }
}

export const isLongTest = (file: string): boolean => file.endsWith('.long.test.ts')

/** With larger numbers in `npm run test:long`: the fuzzers, and importers of this file. */
export function isOfBothTiers(root: string, file: string): boolean {
  if (file.startsWith('tests/fuzz/')) return true
  return readFileSync(path.join(root, file), 'utf8').includes('/tier.ts')
}
