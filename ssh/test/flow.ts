// A stream of bytes of any length that needs no memory and no disk: the key stream of AES under a known key,
// so that every part differs from every other and whoever reads can tell where the first wrong byte is. Also
// a program:
//   node flow.ts make <bytes>     writes them
//   node flow.ts check            reads to the end and prints how many came, and "right" or "wrong"
import { createCipheriv } from 'node:crypto'
import { finished } from 'node:stream/promises'

const piece_bytes = 256 * 1024
const zeros = Buffer.alloc(piece_bytes)

function keyStream(): (size: number) => Buffer {
  const cipher = createCipheriv('aes-128-ctr', Buffer.alloc(16, 7), Buffer.alloc(16, 9))
  return (size) => cipher.update(zeros.subarray(0, size))
}

export function* flow(bytes: number): Generator<Buffer> {
  const next = keyStream()
  for (let left = bytes; left > 0; left -= piece_bytes) yield next(Math.min(left, piece_bytes))
}

export interface Checked {
  readonly bytes: number
  readonly right: boolean
}

export function checker(): { take(part: Uint8Array): void; readonly result: Checked } {
  const next = keyStream()
  let [bytes, right] = [0, true]
  return {
    take(part) {
      for (let at = 0; at < part.length; at += piece_bytes) {
        const piece = part.subarray(at, at + piece_bytes)
        right = next(piece.length).equals(piece) && right
      }
      bytes += part.length
    },
    get result() {
      return { bytes, right }
    },
  }
}

if (import.meta.main) {
  const [what, amount] = process.argv.slice(2)
  if (what === 'make') {
    for (const piece of flow(Number(amount)))
      if (!process.stdout.write(piece))
        await new Promise((resolve) => void process.stdout.once('drain', resolve))
    process.stdout.end()
    await finished(process.stdout).catch(() => undefined)
  } else {
    const check = checker()
    for await (const part of process.stdin as AsyncIterable<Buffer>) check.take(part)
    const { bytes, right } = check.result
    process.stdout.write(`${bytes} ${right ? 'right' : 'wrong'}\n`)
  }
}
