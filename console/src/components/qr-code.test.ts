// Reads the image of a QR code back, as a phone would: format, mask, codewords, error correction, text. A
// wrong call of the library or a wrong drawing (turned, mirrored, without a row) makes it fail.
import { createElement } from 'react'
import { renderToStaticMarkup } from 'react-dom/server'
import { expect, test } from 'vitest'
import { QrCode } from './qr-code.tsx'

/** The format patterns of level L by mask. */
const formats = [
  '111011111000100',
  '111001011110011',
  '111110110101010',
  '111100010011101',
  '110011000101111',
  '110001100011000',
  '110110001000001',
  '110100101110110',
]
/** By version: error correction codewords of a block, blocks. */
const shapes = [
  [7, 1],
  [10, 1],
  [15, 1],
  [20, 1],
  [26, 1],
  [18, 2],
  [20, 2],
  [24, 2],
  [30, 2],
] as const
const centres = [[], [6, 18], [6, 22], [6, 26], [6, 30], [6, 34], [6, 22, 38], [6, 24, 42], [6, 26, 46]]

const flips: ((x: number, y: number) => number)[] = [
  (x, y) => (x + y) % 2,
  (_, y) => y % 2,
  (x) => x % 3,
  (x, y) => (x + y) % 3,
  (x, y) => (Math.floor(y / 2) + Math.floor(x / 3)) % 2,
  (x, y) => ((x * y) % 2) + ((x * y) % 3),
  (x, y) => (((x * y) % 2) + ((x * y) % 3)) % 2,
  (x, y) => (((x * y) % 3) + ((x + y) % 2)) % 2,
]

function times(a: number, b: number): number {
  let product = 0
  for (let bit = 7; bit >= 0; bit -= 1) {
    product = (product << 1) ^ (product & 0x80 ? 0x11d : 0)
    if ((b >> bit) & 1) product ^= a
  }
  return product
}

function read(rows: boolean[][]): string {
  const size = rows.length
  const version = (size - 17) / 4
  const dark = (x: number, y: number) => (rows[y]![x] ? 1 : 0)
  // Around the upper left corner, from its most significant bit on.
  const corner = [
    ...[0, 1, 2, 3, 4, 5, 7, 8].map((x) => dark(x, 8)),
    ...[7, 5, 4, 3, 2, 1, 0].map((y) => dark(8, y)),
  ].join('')
  // The copy next to the other two.
  const copy = [
    ...[1, 2, 3, 4, 5, 6, 7].map((n) => dark(8, size - n)),
    ...[8, 7, 6, 5, 4, 3, 2, 1].map((n) => dark(size - n, 8)),
  ].join('')
  expect(copy).toBe(corner)
  const mask = formats.indexOf(corner)
  expect(mask).toBeGreaterThanOrEqual(0)
  if (version === 7) {
    const bits = Array.from({ length: 18 }, (_, n) => dark(size - 11 + (n % 3), Math.floor(n / 3)))
    expect(bits.toReversed().join('')).toBe('000111110010010100')
  }
  const lines = centres[version - 1]!
  const last = lines.at(-1)
  const isPattern = (x: number, y: number): boolean =>
    (x < 9 && y < 9) ||
    (x >= size - 8 && y < 9) ||
    (x < 9 && y >= size - 8) ||
    x === 6 ||
    y === 6 ||
    (version >= 7 && ((x >= size - 11 && y < 6) || (y >= size - 11 && x < 6))) ||
    lines.some((cx) =>
      lines.some(
        (cy) =>
          !((cx === 6 && (cy === 6 || cy === last)) || (cy === 6 && cx === last)) &&
          Math.abs(cx - x) <= 2 &&
          Math.abs(cy - y) <= 2,
      ),
    )
  const columns = Array.from({ length: (size - 1) / 2 }, (_, n) => size - 1 - 2 * n).map((x) =>
    x <= 6 ? x - 1 : x,
  )
  const bits = columns.flatMap((right, n) =>
    Array.from({ length: size }, (_, step) => (n % 2 === 0 ? size - 1 - step : step)).flatMap((y) =>
      [right, right - 1]
        .filter((x) => !isPattern(x, y))
        .map((x) => dark(x, y) ^ (flips[mask]!(x, y) === 0 ? 1 : 0)),
    ),
  )
  const words = Array.from({ length: Math.floor(bits.length / 8) }, (_, n) =>
    Number.parseInt(bits.slice(n * 8, n * 8 + 8).join(''), 2),
  )
  const [degree, count] = shapes[version - 1]!
  const blocks = Array.from({ length: count }, (_, block) => words.filter((_, at) => at % count === block))
  for (const block of blocks)
    for (let power = 0, root = 1; power < degree; power += 1, root = times(root, 2))
      expect(
        block.reduce((sum, word) => times(sum, root) ^ word, 0),
        'a codeword of the error correction',
      ).toBe(0)
  const data = blocks
    .flatMap((block) => block.slice(0, block.length - degree))
    .map((word) => word.toString(2).padStart(8, '0'))
    .join('')
  expect(data.slice(0, 4), 'bytes').toBe('0100')
  const length = Number.parseInt(data.slice(4, 12), 2)
  const bytes = Array.from({ length }, (_, n) => Number.parseInt(data.slice(12 + n * 8, 20 + n * 8), 2))
  return new TextDecoder().decode(Uint8Array.from(bytes))
}

/** The modules that the image draws, found by its path. */
function drawn(text: string): boolean[][] {
  const image = renderToStaticMarkup(createElement(QrCode, { text, label: 'a code' }))
  const size = Number(/viewBox="-4 -4 (\d+) /.exec(image)?.[1]) - 8
  const dark = new Set(Array.from(image.matchAll(/M(\d+) (\d+)h1v1h-1z/g), ([, x, y]) => `${x} ${y}`))
  return Array.from({ length: size }, (_, y) =>
    Array.from({ length: size }, (__, x) => dark.has(`${x} ${y}`)),
  )
}

test('the image of an otpauth address is read back, whatever alphabet its letters are of', () => {
  const text =
    'otpauth://totp/Hawser:jörg@example.com?secret=JBSWY3DPEHPK3PXPJBSWY3DPEHPK3PXP&issuer=Hawser&period=30'
  expect(read(drawn(text))).toBe(text)
})

test('a short and a long text are read back', () => {
  for (const text of ['x', 'y'.repeat(150)]) expect(read(drawn(text))).toBe(text)
})
