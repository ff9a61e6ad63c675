// A QR code, made here so that the secret in it goes through nobody else's code: bytes, error correction
// level L, versions 1 to 9 (230 bytes at most), which is more than an otpauth address needs. Names and
// numbers are those of ISO/IEC 18004.

/** By version: error correction codewords of a block, blocks, data codewords of a block. */
const shapes = [
  [7, 1, 19],
  [10, 1, 34],
  [15, 1, 55],
  [20, 1, 80],
  [26, 1, 108],
  [18, 2, 68],
  [20, 2, 78],
  [24, 2, 97],
  [30, 2, 116],
] as const
const alignments = [
  [],
  [6, 18],
  [6, 22],
  [6, 26],
  [6, 30],
  [6, 34],
  [6, 22, 38],
  [6, 24, 42],
  [6, 26, 46],
] as const

const exp = new Uint8Array(512)
const log = new Uint8Array(256)
for (let i = 0, x = 1; i < 255; i += 1) {
  exp[i] = exp[i + 255] = x
  log[x] = i
  x = (x << 1) ^ (x & 0x80 ? 0x11d : 0)
}
const times = (a: number, b: number): number => (a && b ? exp[log[a]! + log[b]!]! : 0)

function errorCorrection(data: Uint8Array, degree: number): Uint8Array {
  let generator = [1]
  for (let i = 0; i < degree; i += 1) {
    const next = [...generator, 0]
    generator.forEach((value, at) => (next[at + 1]! ^= times(value, exp[i]!)))
    generator = next
  }
  const rest = new Uint8Array(data.length + degree)
  rest.set(data)
  for (let i = 0; i < data.length; i += 1) {
    const factor = rest[i]!
    generator.forEach((value, at) => (rest[i + at]! ^= times(value, factor)))
  }
  return rest.slice(data.length)
}

/** Data and error correction codewords, in the order in which they are drawn. */
function codewords(bytes: Uint8Array, [degree, blocks, size]: readonly [number, number, number]): number[] {
  const room = blocks * size
  const bits = [
    ...`0100${bytes.length.toString(2).padStart(8, '0')}`,
    ...[...bytes].flatMap((byte) => [...byte.toString(2).padStart(8, '0')]),
  ].join('')
  const full = bits + '0'.repeat(Math.min(4, room * 8 - bits.length))
  const padded = full.padEnd(Math.ceil(full.length / 8) * 8, '0')
  const data = Uint8Array.from({ length: room }, (_, at) => {
    const part = padded.slice(at * 8, at * 8 + 8)
    return part ? Number.parseInt(part, 2) : (at - padded.length / 8) % 2 === 0 ? 0xec : 0x11
  })
  const parts = Array.from({ length: blocks }, (_, at) => data.slice(at * size, (at + 1) * size))
  const corrections = parts.map((part) => errorCorrection(part, degree))
  const interleaved = (rows: Uint8Array[], length: number) =>
    Array.from({ length }, (_, at) => rows.map((row) => row[at]!)).flat()
  return [...interleaved(parts, size), ...interleaved(corrections, degree)]
}

const masks: readonly ((x: number, y: number) => boolean)[] = [
  (x, y) => (x + y) % 2 === 0,
  (_, y) => y % 2 === 0,
  (x) => x % 3 === 0,
  (x, y) => (x + y) % 3 === 0,
  (x, y) => (Math.floor(x / 3) + Math.floor(y / 2)) % 2 === 0,
  (x, y) => ((x * y) % 2) + ((x * y) % 3) === 0,
  (x, y) => (((x * y) % 2) + ((x * y) % 3)) % 2 === 0,
  (x, y) => (((x + y) % 2) + ((x * y) % 3)) % 2 === 0,
]

/** The remainder of a BCH code appended to its data. */
function withRemainder(data: number, generator: number, bits: number): number {
  let rest = data << bits
  const top = 31 - Math.clz32(generator)
  for (let bit = 31 - Math.clz32(rest); bit >= top; bit = 31 - Math.clz32(rest))
    rest ^= generator << (bit - top)
  return (data << bits) | rest
}

/** Rows of dark (true) and light modules, or nothing when the text is too long. */
export function qrCode(text: string): boolean[][] | undefined {
  const bytes = new TextEncoder().encode(text)
  const index = shapes.findIndex(([, blocks, size]) => bytes.length + 2 <= blocks * size)
  const shape = shapes[index]
  if (!shape) return undefined
  const version = index + 1
  const size = 17 + 4 * version
  const dark: boolean[][] = Array.from({ length: size }, () => Array<boolean>(size).fill(false))
  const fixed: boolean[][] = Array.from({ length: size }, () => Array<boolean>(size).fill(false))
  const set = (x: number, y: number, on: boolean): void => {
    if (x < 0 || y < 0 || x >= size || y >= size) return
    dark[y]![x] = on
    fixed[y]![x] = true
  }

  for (let i = 0; i < size; i += 1) {
    set(6, i, i % 2 === 0)
    set(i, 6, i % 2 === 0)
  }
  for (const [cx, cy] of [
    [3, 3],
    [size - 4, 3],
    [3, size - 4],
  ] as const)
    for (let dy = -4; dy <= 4; dy += 1)
      for (let dx = -4; dx <= 4; dx += 1) {
        const ring = Math.max(Math.abs(dx), Math.abs(dy))
        set(cx + dx, cy + dy, ring !== 2 && ring !== 4)
      }
  const lines = alignments[index]!
  for (const cx of lines)
    for (const cy of lines) {
      const corner =
        (cx === 6 && cy === 6) || (cx === 6 && cy === lines.at(-1)) || (cy === 6 && cx === lines.at(-1))
      if (corner) continue
      for (let dy = -2; dy <= 2; dy += 1)
        for (let dx = -2; dx <= 2; dx += 1) set(cx + dx, cy + dy, Math.max(Math.abs(dx), Math.abs(dy)) !== 1)
    }
  if (version >= 7) {
    const bits = withRemainder(version, 0x1f25, 12)
    for (let i = 0; i < 18; i += 1) {
      const on = ((bits >> i) & 1) === 1
      set(size - 11 + (i % 3), Math.floor(i / 3), on)
      set(Math.floor(i / 3), size - 11 + (i % 3), on)
    }
  }
  const drawFormat = (mask: number): void => {
    const bits = withRemainder((1 << 3) | mask, 0x537, 10) ^ 0x5412
    const on = (i: number) => ((bits >> i) & 1) === 1
    for (let i = 0; i < 6; i += 1) set(8, i, on(i))
    set(8, 7, on(6))
    set(8, 8, on(7))
    set(7, 8, on(8))
    for (let i = 9; i < 15; i += 1) set(14 - i, 8, on(i))
    for (let i = 0; i < 8; i += 1) set(size - 1 - i, 8, on(i))
    for (let i = 8; i < 15; i += 1) set(8, size - 15 + i, on(i))
    set(8, size - 8, true)
  }
  drawFormat(0)

  const stream = codewords(bytes, shape)
  let bit = 0
  for (let right = size - 1; right >= 1; right -= 2) {
    // The column of the timing pattern is skipped.
    if (right === 6) right = 5
    for (let step = 0; step < size; step += 1)
      for (const x of [right, right - 1]) {
        const upwards = ((right + 1) & 2) === 0
        const y = upwards ? size - 1 - step : step
        if (fixed[y]![x] || bit >= stream.length * 8) continue
        dark[y]![x] = ((stream[bit >> 3]! >> (7 - (bit & 7))) & 1) === 1
        bit += 1
      }
  }

  const masked = (mask: number) =>
    dark.map((row, y) => row.map((on, x) => (fixed[y]![x] ? on : on !== masks[mask]!(x, y))))
  const best = masks
    .map((_, mask) => ({ mask, cost: cost(masked(mask)) }))
    .reduce((one, other) => (other.cost < one.cost ? other : one)).mask
  drawFormat(best)
  return masked(best)
}

/** How hard it is to read: long runs, blocks, and an uneven share of dark. */
function cost(rows: boolean[][]): number {
  const size = rows.length
  let total = 0
  for (const lines of [rows, rows.map((_, x) => rows.map((row) => row[x]!))])
    for (const line of lines) {
      let run = 1
      for (let i = 1; i < size; i += 1) {
        run = line[i] === line[i - 1] ? run + 1 : 1
        if (run === 5) total += 3
        else if (run > 5) total += 1
      }
    }
  for (let y = 1; y < size; y += 1)
    for (let x = 1; x < size; x += 1) {
      const one = rows[y]![x]
      if (one === rows[y - 1]![x] && one === rows[y]![x - 1] && one === rows[y - 1]![x - 1]) total += 3
    }
  const share = rows.flat().filter(Boolean).length / (size * size)
  return total + Math.floor(Math.abs(share - 0.5) * 20) * 10
}
