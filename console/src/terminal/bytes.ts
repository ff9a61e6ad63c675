// Binary encodings of SSH and its keys: numbers and length-prefixed strings (RFC 4251 section 5), base64, and
// the little of DER that private keys need.

export class Reader {
  readonly #bytes: Uint8Array
  #at = 0
  constructor(bytes: Uint8Array) {
    this.#bytes = bytes
  }
  take(length: number): Uint8Array {
    if (length > this.#bytes.length - this.#at) throw new RangeError('cut short')
    this.#at += length
    return this.#bytes.subarray(this.#at - length, this.#at)
  }
  uint32(): number {
    return this.take(4).reduce((number, byte) => number * 256 + byte, 0)
  }
  string(): Uint8Array {
    return this.take(this.uint32())
  }
  text(): string {
    return new TextDecoder().decode(this.string())
  }
}

export function joined(...parts: readonly Uint8Array[]): Uint8Array<ArrayBuffer> {
  const whole = new Uint8Array(parts.reduce((sum, { length }) => sum + length, 0))
  let at = 0
  for (const part of parts) {
    whole.set(part, at)
    at += part.length
  }
  return whole
}

export function lengthed(bytes: Uint8Array | string): Uint8Array {
  const content = typeof bytes === 'string' ? new TextEncoder().encode(bytes) : bytes
  const head = new Uint8Array(4)
  new DataView(head.buffer).setUint32(0, content.length)
  return joined(head, content)
}

/** A positive number: no leading zeros, except one where it would otherwise read as negative. */
export function mpint(bytes: Uint8Array): Uint8Array {
  const plain = withoutZeros(bytes)
  return lengthed((plain[0] ?? 0) >= 0x80 ? joined(new Uint8Array(1), plain) : plain)
}

export function withoutZeros(bytes: Uint8Array): Uint8Array {
  const first = bytes.findIndex((byte) => byte !== 0)
  return first === -1 ? new Uint8Array() : bytes.subarray(first)
}

export function padded(bytes: Uint8Array, length: number): Uint8Array {
  const plain = withoutZeros(bytes)
  if (plain.length > length) throw new RangeError('a number is too large')
  return joined(new Uint8Array(length - plain.length), plain)
}

export const same = (a: Uint8Array, b: Uint8Array): boolean =>
  a.length === b.length && a.every((byte, index) => byte === b[index])

export function fromBase64(text: string): Uint8Array<ArrayBuffer> {
  return Uint8Array.from(
    atob(text.replaceAll(/\s/g, '').replaceAll('-', '+').replaceAll('_', '/')),
    (letter) => letter.charCodeAt(0),
  )
}

export function toBase64(bytes: Uint8Array): string {
  return btoa(Array.from(bytes, (byte) => String.fromCharCode(byte)).join(''))
}

export const toBase64Url = (bytes: Uint8Array): string =>
  toBase64(bytes).replaceAll('+', '-').replaceAll('/', '_').replaceAll('=', '')

/** One element of DER: its tag, its length, its content. */
export function der(tag: number, ...content: readonly Uint8Array[]): Uint8Array<ArrayBuffer> {
  const inside = joined(...content)
  const { length } = inside
  const size = length < 128 ? [length] : length < 256 ? [0x81, length] : [0x82, length >> 8, length & 255]
  return joined(Uint8Array.of(tag, ...size), inside)
}

export function indexOf(bytes: Uint8Array, part: Uint8Array): number {
  for (let at = 0; at + part.length <= bytes.length; at += 1)
    if (same(bytes.subarray(at, at + part.length), part)) return at
  return -1
}
