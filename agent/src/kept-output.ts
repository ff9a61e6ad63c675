// The last output of a terminal, so that a server that comes back can show its screen. Bytes lie in a ring
// that grows to its bound. The modes that overwritten output has set are remembered (the alternate screen,
// the mouse, pasting in brackets), because programs switch them on once, at their start.

/** How much output of one terminal is kept. */
export const tail_bytes = 96 * 1024
const first_bytes = 2 * 1024
/** Modes that are remembered; terminals know some dozens. */
const mostModes = 64
/** The longest incomplete sequence that is remembered; a longer one switches no mode. */
const longestSequence = 64
const escape = 0x1b

// eslint-disable-next-line no-control-regex
const switches = /\x1b\[\?([\d;]{1,48})([hl])|\x1bc|\x1b\[!p/g

export class KeptOutput {
  #ring = Buffer.alloc(0)
  /** Where the oldest byte lies, and how many there are. */
  #start = 0
  #size = 0
  #isWhole = true
  /** Modes that the dropped output has switched: on (h) or off (l). */
  readonly #modes = new Map<string, 'h' | 'l'>()
  /** The beginning of a sequence at the end of what was dropped. */
  #cut = ''

  push(bytes: Uint8Array): void {
    const all = Buffer.from(bytes.buffer, bytes.byteOffset, bytes.length)
    // Pieces that are smaller than the ring, so that all that is dropped was in it before.
    for (let at = 0; at < all.length; at += tail_bytes / 2) this.#add(all.subarray(at, at + tail_bytes / 2))
  }

  /** Everything that is kept, behind what brings a terminal to the modes that it had before. */
  read(): Buffer {
    const end = this.#start + this.#size
    const kept = Buffer.concat([
      this.#ring.subarray(this.#start, end),
      this.#ring.subarray(0, Math.max(0, end - this.#ring.length)),
    ])
    if (this.#isWhole) return kept
    const modes = [...this.#modes].map(([mode, how]) => `\u001b[?${mode}${how}`).join('')
    // The first bytes are the rest of a sequence whose beginning was dropped, so the beginning is put back.
    if (this.#cut !== '') return Buffer.concat([Buffer.from(modes + this.#cut), kept])
    // Otherwise the ring may begin in the middle of a character or a sequence: skip to the next whole one.
    const line = kept.indexOf(0x0a)
    const sequence = kept.indexOf(escape)
    const begins = Math.min(line < 0 ? kept.length : line + 1, sequence < 0 ? kept.length : sequence)
    return Buffer.concat([Buffer.from(modes), kept.subarray(begins === kept.length ? 0 : begins)])
  }

  #add(bytes: Buffer): void {
    const wanted = this.#size + bytes.length
    if (wanted > this.#ring.length && this.#ring.length < tail_bytes) this.#grow(wanted)
    const over = wanted - this.#ring.length
    if (over > 0) this.#drop(over)
    const at = (this.#start + this.#size) % this.#ring.length
    const before = bytes.copy(this.#ring, at)
    bytes.copy(this.#ring, 0, before)
    this.#size += bytes.length
  }

  #grow(wanted: number): void {
    const kept = this.read()
    const grown = Buffer.allocUnsafeSlow(
      Math.min(tail_bytes, Math.max(first_bytes, wanted, 2 * this.#ring.length)),
    )
    kept.copy(grown)
    this.#ring = grown
    this.#start = 0
  }

  #drop(count: number): void {
    const end = this.#start + count
    this.#remember(this.#ring.subarray(this.#start, Math.min(end, this.#ring.length)))
    if (end > this.#ring.length) this.#remember(this.#ring.subarray(0, end - this.#ring.length))
    this.#start = end % this.#ring.length
    this.#size -= count
    this.#isWhole = false
  }

  #remember(dropped: Buffer): void {
    if (this.#cut === '' && !dropped.includes(escape)) return
    const text = this.#cut + dropped.toString('latin1')
    for (const [, modes, how] of text.matchAll(switches)) {
      if (modes === undefined) this.#modes.clear()
      for (const mode of modes?.split(';') ?? []) {
        this.#modes.delete(mode)
        if (mode !== '' && this.#modes.size < mostModes) this.#modes.set(mode, how as 'h' | 'l')
      }
    }
    const last = text.lastIndexOf('\u001b')
    const rest = text.slice(last)
    // eslint-disable-next-line no-control-regex
    const isCut = last >= 0 && rest.length < longestSequence && /^\x1b(\[[?!\d;]*)?$/.test(rest)
    this.#cut = isCut ? rest : ''
  }
}
