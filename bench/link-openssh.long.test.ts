// The bench about bad links runs: each part gives a figure for every way, and a link that
// adds a delay is seen.
import { expect, test } from 'vitest'
import { folder } from '../ssh/test/programs.ts'
import { largeFiles, logins, prepare, smallFiles } from './link.ts'

test('logins, small files and large ones are measured on all three ways', { timeout: 300_000 }, async () => {
  using where = folder()
  await using open = new AsyncDisposableStack()
  const setting = await prepare(where, open)
  const rows = [
    ...(await logins(setting, [0, 60], 1)),
    ...(await smallFiles(setting, [0, 60], 1)),
    ...(await largeFiles(setting, 0.2, 8)),
  ]
  for (const { ours, reference, what } of rows)
    for (const figure of [ours, reference]) expect(figure, String(what)).toSatisfy((one) => Number(one) >= 0)
  // By key and password, cold and warm, and sftp; against sshd and the old ways.
  expect(rows.filter(({ unit }) => unit === 'trips')).toHaveLength(10)
  // A login at sshd takes more than five round trips, however quick the machine is.
  const direct = rows.filter(({ what }) => String(what).endsWith('at 60 ms : sshd directly'))
  expect(direct).toHaveLength(5)
  for (const { what, reference } of direct) expect(Number(reference), String(what)).toBeGreaterThan(0.3)
  expect(rows.filter(({ unit }) => unit === 'MB on the link')).toHaveLength(12)
})
