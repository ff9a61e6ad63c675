// A session writes `CSI 2147483647 S` to its terminal. The terminal that draws recordings carried that out
// line by line, on the server's only thread: whoever opened the recording stopped everybody for hours. Counts
// that are larger than the screen are ignored. The test ends at all; it measures no time.
import { expect, test } from 'vitest'
import { screen } from '../../server/src/recording/screen.ts'

const counted = [
  'S',
  'T',
  'L',
  'M',
  'b',
  'I',
  'Z',
  '@',
  'P',
  'X',
  'A',
  'B',
  'C',
  'D',
  'E',
  'F',
  'G',
  'd',
  'e',
]

test.each(counted)('CSI 2147483647 %s is drawn at once', async (final) => {
  using terminal = screen({ width: 80, height: 24 })
  await terminal.show(Buffer.from(`word\u001b[2147483647${final}`))
  expect(terminal.snapshot().length).toBeLessThan(1_000)
})

test('counts within the screen are carried out', async () => {
  using terminal = screen({ width: 80, height: 24 })
  await terminal.show(Buffer.from('one\r\ntwo\r\nthree\u001b[2S'))
  expect(terminal.snapshot().toString()).toContain('\u001b[1;1Hthree')
})
