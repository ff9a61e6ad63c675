// The last output of a detached terminal, from which the next server draws its screen. The bytes are in a ring
// that grows to its bound. The modes that overwritten output has set (the alternate screen, the mouse, bracketed
// paste) are remembered, because programs set them once, at their start.

export const tail_bytes = 96 * 1024
const first_bytes = 2 * 1024
/** Terminals have some dozens of modes. */
const mostModes = 64
/** A longer incomplete sequence switches no mode. */
const longestSequence = 64
const escape = 0x1b

// eslint-disable-next-line no-control-regex
const switches = /\x1b\[\?([\d;]{1,48})([hl])|\x1bc|\x1b\[!p/g

export class DetachedOutput {
  #ring = Buffer.alloc(0)
  /** The place of the oldest byte, and the number of bytes. */
  #start = 0
  #size = 0
  #isWhole = true
  /** Modes that the dropped output has switched on (h) or off (l). */
  readonly #modes = new Map<string, 'h' | 'l'>()
  /** The incomplete sequence at the end of the dropped output. */
  #cut = ''

  /** Whether nothing was dropped. */
  get isWhole(): boolean {
    return this.#isWhole
  }

  push(bytes: Uint8Array): void {
    const all = Buffer.from(bytes.buffer, bytes.byteOffset, bytes.length)
    // Pieces that are smaller than the ring, so that all that is dropped was in it before.
    for (let at = 0; at < all.length; at += tail_bytes / 2) this.#add(all.subarray(at, at + tail_bytes / 2))
  }

  /** The stored output, after the sequences that restore the modes from before it. */
  read(): Buffer {
    const end = this.#start + this.#size
    const stored = Buffer.concat([
      this.#ring.subarray(this.#start, end),
      this.#ring.subarray(0, Math.max(0, end - this.#ring.length)),
    ])
    if (this.#isWhole) return stored
    const modes = [...this.#modes].map(([mode, how]) => `\u001b[?${mode}${how}`).join('')
    // The first bytes are the rest of a sequence whose beginning was dropped, so the beginning is put back.
    if (this.#cut !== '') return Buffer.concat([Buffer.from(modes + this.#cut), stored])
    // Otherwise the ring may begin in the middle of a character or a sequence: skip to the next whole one.
    const line = stored.indexOf(0x0a)
    const sequence = stored.indexOf(escape)
    const begins = Math.min(line < 0 ? stored.length : line + 1, sequence < 0 ? stored.length : sequence)
    return Buffer.concat([Buffer.from(modes), stored.subarray(begins === stored.length ? 0 : begins)])
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
    const stored = this.read()
    const grown = Buffer.allocUnsafeSlow(
      Math.min(tail_bytes, Math.max(first_bytes, wanted, 2 * this.#ring.length)),
    )
    stored.copy(grown)
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
