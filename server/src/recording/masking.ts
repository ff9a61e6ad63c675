// Masks secrets in a terminal's output before it is recorded: each character of a secret becomes a `*`, so
// that the widths and times of the recording stay. The finder (shape-finder.ts) finds the text before a
// secret; the masker decides which bytes behind it are the secret. It works across calls, however the bytes
// were cut. Memory is bounded, and time grows with the bytes alone.
import type { Follows, SecretShape } from './secret-shapes.ts'
import { probed_bytes, type ShapeFinder } from './shape-finder.ts'

export interface Masker {
  /** Returns the bytes to record instead of these: the same object if there is nothing to mask. */
  mask(bytes: Uint8Array): Uint8Array
  readonly count: number
}

const bell = 0x07
const backspace = 0x08
const lineFeed = 0x0a
const carriageReturn = 0x0d
const cancel = 0x18
const substitute = 0x1a
const escape = 0x1b
const space = 0x20
const dollar = 0x24
const parenthesis = 0x28
const star = 0x2a
const comma = 0x2c
const dash = 0x2d
const slash = 0x2f
const colon = 0x3a
const less = 0x3c
const equals = 0x3d
const greater = 0x3e
const atSign = 0x40
const bracket = 0x5b
const backslash = 0x5c
/** The characters after ESC that begin a string: OSC, DCS, PM and APC. */
const beginsString = new Set([0x5d, 0x50, 0x5e, 0x5f])
/**
 * Control sequences that do not move the cursor: colours, modes, and the deletion that shells do while
 * typing.
 */
const harmless = new Set(Buffer.from('mhlK'))

/** Control sequences that insert and delete characters, which shells do within a line while somebody types. */
const edits = new Set(Buffer.from('@P'))
const stepsRight = 0x43

/** Longer values are not secrets. */
const longest_bytes = 4_096
const longestBlock_bytes = 32 * 1024
const longestSequence_bytes = 4_096
/** Spaces and quotation marks between a field's name and its value. */
const mostBetween = 32
/** The longest name of a user in an address. */
const longestName = 64
export const longestText_bytes = 64

const isWord = (byte: number): boolean =>
  (byte >= 0x30 && byte <= 0x39) || (byte >= 0x41 && byte <= 0x5a) || (byte >= 0x61 && byte <= 0x7a)
const tokenMarks = new Set(Buffer.from('-_.+/='))
/** Characters of tokens: of base64 in both alphabets, of versions and hexadecimal numbers. */
const isToken = (byte: number): boolean => isWord(byte) || tokenMarks.has(byte)
const isDigit = (byte: number): boolean => byte >= 0x30 && byte <= 0x39
/** Parameters of control sequences: digits, and the signs between them. */
const isParameter = (byte: number): boolean => byte >= 0x30 && byte <= 0x3f
const isQuote = (byte: number): boolean => byte === 0x22 || byte === 0x27
const isSpace = (byte: number): boolean => byte === 0x20 || byte === 0x09
const isLineEnd = (byte: number): boolean => byte === 0x0a || byte === 0x0d
const valueEnds = new Set(Buffer.from('"\',;&>'))
/** White space, and characters between fields, commands and arguments, end a value that is not in quotes. */
const endsValue = (byte: number): boolean => byte <= 0x20 || byte === 0x7f || valueEnds.has(byte)

/** Prefixes of quoted texts: `$'a'` in shells, `b'a'` in Python, `@"a"` in C#. */
const stringPrefixes = new Set(Buffer.from('$@bfruBFRU'))
/** Characters behind a backslash, in a private key that is a text of a program. */
const escapedInKeys = new Set(Buffer.from('nrt\\/"\' \r\n'))
/** The lines of tables, next to the lines of a private key. */
const framesKeys = new Set(Buffer.from('|│'))

/** The state of the masker between the text of a shape and the end of the secret. */
interface Masking {
  readonly follows: Follows
  begun: boolean
  /** Whether a `=` or `:` has come after the text, or what else a secret may follow. */
  assigned: boolean
  /** The quotation mark that the value ends with; 0: none. */
  quote: number
  /** Characters since the text, then those of the secret. */
  length: number
  /** Whether the user before a password is more than a number. */
  named: boolean
  /** The byte before, without escape sequences. */
  last: number
  dashes: number
  slashes: number
  /** Backslashes before the opening quotation mark: there are some when the quotes are within others. */
  opening: number
  /** Whether a quoted part of the value has ended: a shell's value may have several. */
  parts: boolean
  /**
   * The byte before may have ended the value: a comma does so before a blank, a quotation mark before all but
   * words and other quotes. Shells end a full line with a space and a carriage return: `return` after both.
   */
  pause: 'no' | 'space' | 'return' | 'comma' | 'quote'
}

type Sequence = 'none' | 'begun' | 'control' | 'string' | 'charset'

class StreamMasker implements Masker {
  readonly #finder: ShapeFinder
  #state = 0
  #masking: Masking | undefined
  #hidden = false
  #sequence: Sequence = 'none'
  #sequence_bytes = 0
  /** The last bytes of what came before, for `#startsWord`. */
  readonly #before = new Uint8Array(longestText_bytes)
  count = 0

  constructor(finder: ShapeFinder) {
    this.#finder = finder
  }

  mask(bytes: Uint8Array): Uint8Array {
    let out: Buffer | undefined
    let written = 0
    for (let at = 0; at < bytes.length; at++) {
      if (!this.#masking && this.#sequence === 'none') {
        // Up to the byte behind the text of a shape, or to a colour within one.
        const from = at
        at = this.#search(bytes, at)
        if (out) {
          out.set(bytes.subarray(from, at), written)
          written += at - from
        }
        if (at >= bytes.length) break
      }
      const byte = bytes[at] ?? 0
      // Continuation bytes of a hidden character have no width of their own.
      const isRest = this.#hidden && byte >= 0x80 && byte < 0xc0
      const hidden = isRest || this.#takes(bytes, at)
      this.#hidden = hidden
      if (hidden && !out) {
        out = Buffer.allocUnsafe(bytes.length)
        out.set(bytes.subarray(0, at))
        written = at
      }
      if (out && !isRest) out[written++] = hidden ? star : byte
    }
    this.#remember(bytes)
    return out?.subarray(0, written) ?? bytes
  }

  /**
   * Returns the place behind the text of a shape, or behind an escape sequence when a text has begun, or the
   * end. */
  #search(bytes: Uint8Array, at: number): number {
    const { classes, next, found, colourable, width, skips, firsts } = this.#finder
    let state = this.#state
    for (;;) {
      if (state === 0) {
        // Nothing has begun: skip to where four bytes may be the first of a shape.
        let end = at + probed_bytes - 1
        while (end < bytes.length) {
          const skip = skips[((bytes[end - 1] ?? 0) << 8) | (bytes[end] ?? 0)] ?? 0
          if (skip !== 0) end += skip
          else if (firsts[((bytes[end - 3] ?? 0) << 8) | (bytes[end - 2] ?? 0)] === 1) break
          else end++
        }
        at = Math.max(at, end - probed_bytes + 1)
      }
      if (at >= bytes.length) break
      // At least one byte, then for as long as something has begun.
      do {
        const byte = bytes[at] ?? 0
        if (byte === escape && colourable[state] === 1) {
          this.#state = state
          return at
        }
        at++
        state = next[state * width + (classes[byte] ?? 0)] ?? 0
        if (found[state] !== 0 && this.#opens(bytes, at, found[state] ?? 0)) {
          this.#state = state
          return at
        }
      } while (state !== 0 && at < bytes.length)
    }
    this.#state = state
    return bytes.length
  }

  /** Unless the text is a part of another word. */
  #opens(bytes: Uint8Array, behind: number, found: number): boolean {
    for (let index = found; index !== 0; index = this.#finder.shorter[index] ?? 0) {
      const shape = this.#finder.shapes[index - 1]
      if (!shape || (shape.startsWord && !this.#startsWord(bytes, behind, shape.after.length))) continue
      // The text after a sign is a value already, up to more than the end of a word.
      if (shape.follows === 'token' && this.#masking?.assigned) return true
      this.#masking = newMasking(shape)
      return true
    }
    return false
  }

  /** Whether to hide a byte behind the text of a shape, or of a part of one. */
  #takes(bytes: Uint8Array, at: number): boolean {
    const byte = bytes[at] ?? 0
    if (this.#sequence === 'begun' && !this.#masking && byte !== bracket) {
      // Neither a colour nor a movement: it ends the text.
      this.#sequence = 'none'
      this.#state = 0
    }
    if (this.#sequence !== 'none') return (this.#skip(byte), false)
    if (byte === escape && (this.#masking || this.#finder.colourable[this.#state] === 1))
      return (this.#enter(), false)
    const hidden = this.#masking !== undefined && this.#hides(this.#masking, byte)
    // The byte may begin another text, or go on with a longer one, such as `secret_key` after `secret`.
    const { classes, next, found, width, shapes } = this.#finder
    this.#state = next[this.#state * width + (classes[byte] ?? 0)] ?? 0
    const index = found[this.#state] ?? 0
    // Within a secret only a private key counts, which continues behind the line.
    const counts = index !== 0 && (!this.#masking?.begun || shapes[index - 1]?.follows === 'block')
    if (counts) this.#opens(bytes, at + 1, index)
    return hidden
  }

  /** Whether the byte is a part of the secret; ends the masking when the byte is behind it. */
  #hides(at: Masking, byte: number): boolean {
    const { last } = at
    at.last = byte
    at.length++
    if (at.follows === 'block') return this.#hidesLine(at, byte, last)
    return at.begun ? this.#goesOn(at, byte, last) : this.#begins(at, byte, last)
  }

  #goesOn(at: Masking, byte: number, last: number): boolean {
    const { pause, slashes } = at
    at.pause = 'no'
    at.slashes = byte === backslash ? slashes + 1 : 0
    // Somebody corrects what they type; some terminals write a space over a character.
    if (byte === backspace) return false
    if (pause === 'space' && byte === carriageReturn) return ((at.pause = 'return'), false)
    if (pause === 'space' && at.quote === 0) return this.#end()
    if (pause === 'return' && byte === lineFeed) return this.#end()
    if (pause === 'comma' && byte !== comma && endsValue(byte)) return this.#end()
    if (pause === 'quote' && !isQuote(byte) && byte !== backslash && !isWord(byte)) return this.#end()
    if (at.length > longest_bytes) return this.#end()
    if (byte === space) {
      if (at.quote === 0 && slashes % 2 === 1) return true
      at.pause = 'space'
      return at.quote !== 0
    }
    if (at.quote !== 0) return this.#hidesQuoted(at, byte, slashes)
    if (at.follows === 'token' || at.follows === 'address') return continues(at.follows, byte) || this.#end()
    if (byte === comma) return ((at.pause = 'comma'), false)
    if (!isQuote(byte)) return !endsValue(byte) || this.#end()
    if (at.parts && slashes % 2 === 1) return true
    const isPrefixed = at.length === 2 && stringPrefixes.has(last)
    if (!at.parts && !isPrefixed && slashes !== at.length - 1) return this.#end()
    at.quote = byte
    at.opening = at.parts ? 0 : slashes
    return false
  }

  #hidesQuoted(at: Masking, byte: number, slashes: number): boolean {
    if (isLineEnd(byte)) return this.#end()
    const isWithin = at.opening === 0 ? slashes % 2 === 1 : slashes > at.opening
    if (byte !== at.quote || isWithin) return true
    at.quote = 0
    at.parts = true
    at.pause = 'quote'
    return false
  }

  #begins(at: Masking, byte: number, last: number): boolean {
    if (at.follows === 'token') return isToken(byte) ? this.#begin(at) : this.#end()
    if (at.follows === 'address') return this.#beginsPassword(at, byte)
    if (at.follows === 'login' && !at.assigned) return this.#takesUser(at, byte)
    if (byte === at.quote) return this.#end()
    if (isSpace(byte)) {
      if (at.quote !== 0) return this.#begin(at)
      if (at.follows === 'argument') at.assigned = true
      return at.length > mostBetween ? this.#end() : false
    }
    if (isQuote(byte)) {
      if (at.quote !== 0) return this.#begin(at)
      // Before the `:` a quotation mark ends the name of a field.
      if (at.assigned) at.quote = byte
      return false
    }
    if (!at.assigned) {
      // Within other quotes the name of a field ends with a backslash and a quotation mark.
      if (byte === backslash && at.length <= mostBetween) return false
      if (last === backslash || (byte !== equals && byte !== colon)) return this.#end()
      at.assigned = true
      return false
    }
    // `:=`, `=>` and the like.
    const isOperator = byte === equals || byte === colon || byte === greater
    if (isOperator && (last === equals || last === colon)) return false
    return endsValue(byte) ? this.#end() : this.#begin(at)
  }

  #takesUser(at: Masking, byte: number): false {
    at.assigned = byte === colon
    if (at.assigned) return at.named ? false : this.#end()
    if (isQuote(byte) && at.length === 1) at.quote = byte
    else if (endsValue(byte) || at.length > longestName) return this.#end()
    at.named ||= !isDigit(byte) && !isQuote(byte)
    return false
  }

  /** Finds the password in `//user:password@host`. A number after the colon may be a port, and is shown. */
  #beginsPassword(at: Masking, byte: number): boolean {
    const isBehind = byte === atSign || byte === slash || byte === bracket || endsValue(byte)
    if (isBehind || at.length > longestName) return this.#end()
    if (at.assigned) return isDigit(byte) ? false : this.#begin(at)
    if (byte === colon) at.assigned = true
    return false
  }

  /**
   * Hides a private key: all but dashes, white space and frames, until something is no part of one. Its line
   * ends may be `\n`.
   */
  #hidesLine(at: Masking, byte: number, last: number): boolean {
    at.dashes = byte === dash ? at.dashes + 1 : 0
    if (at.dashes === 5 || at.length > longestBlock_bytes) return this.#end()
    if (last === backslash && !escapedInKeys.has(byte)) return this.#end()
    if (byte === dash || byte <= space || framesKeys.has(byte)) return false
    // A quotation mark right behind the first line ends a text that is no key.
    if (isQuote(byte) && at.begun) return false
    if (!isToken(byte) && byte !== colon && byte !== comma && byte !== backslash) return this.#end()
    return at.begun || this.#begin(at)
  }

  #begin(at: Masking): true {
    at.begun = true
    if (at.follows !== 'block') at.length = 1
    at.slashes = at.last === backslash ? 1 : 0
    this.count++
    return true
  }

  #end(): false {
    this.#masking = undefined
    return false
  }

  #enter(): void {
    this.#sequence = 'begun'
    this.#sequence_bytes = 0
  }

  #skip(byte: number): void {
    this.#sequence_bytes++
    if (byte === cancel || byte === substitute || this.#sequence_bytes > longestSequence_bytes) {
      this.#sequence = 'none'
    } else if (this.#sequence === 'begun') {
      const intermediate = byte >= 0x20 && byte <= 0x2f
      this.#sequence =
        byte === bracket ? 'control' : beginsString.has(byte) ? 'string' : intermediate ? 'charset' : 'none'
      // The end of a title.
      if (byte === backslash) this.#leave()
    } else if (this.#sequence === 'charset') {
      if (byte >= 0x30) this.#sequence = 'none'
    } else if (this.#sequence === 'string') {
      if (byte === escape) this.#enter()
      else if (byte === bell) this.#sequence = 'none'
    } else if (byte >= 0x40 && byte <= 0x7e) {
      this.#sequence = 'none'
      // The cursor goes one to the right.
      const isStep = byte === stepsRight && this.#sequence_bytes === 2
      if (!harmless.has(byte) && !(this.#masking?.begun && (isStep || edits.has(byte)))) this.#leave()
    }
  }

  /** The cursor has gone elsewhere: the secret is over, except a private key, which may be in an editor. */
  #leave(): void {
    this.#state = 0
    if (this.#masking?.follows !== 'block') this.#masking = undefined
  }

  /** Whether the text of a shape, which ended before `behind`, begins a word. Colours are no part of words. */
  #startsWord(bytes: Uint8Array, behind: number, length: number): boolean {
    const least = behind - this.#before.length
    const byteAt = (place: number): number =>
      place < least ? 0 : ((place >= 0 ? bytes[place] : this.#before[this.#before.length + place]) ?? 0)
    let left = length
    for (let place = behind - 1; place >= least; place--) {
      const byte = byteAt(place)
      let begin = place - 1
      if (byte >= 0x40) while (isParameter(byteAt(begin))) begin--
      const [first, second] = [byteAt(begin - 1), byteAt(begin)]
      if (first === escape && (second === bracket || second === parenthesis)) {
        if (second === bracket && !harmless.has(byte)) return left === 0
        place = begin - 1
      } else if (left-- === 0) return !isWord(byte)
    }
    return true
  }

  #remember(bytes: Uint8Array): void {
    const before = this.#before
    if (bytes.length >= before.length) return before.set(bytes.subarray(bytes.length - before.length))
    before.copyWithin(0, bytes.length)
    before.set(bytes, before.length - bytes.length)
  }
}

function newMasking({ follows, after }: SecretShape): Masking {
  const end = after.charCodeAt(after.length - 1)
  return {
    follows,
    begun: false,
    assigned: follows === 'direct',
    quote: follows !== 'direct' ? 0 : end === greater ? less : isQuote(end) ? end : 0,
    length: 0,
    named: false,
    last: 0,
    dashes: 0,
    slashes: 0,
    opening: 0,
    parts: false,
    pause: 'no',
  }
}

function continues(follows: 'token' | 'address', byte: number): boolean {
  // Hashes of passwords have dollars between their parts.
  if (follows === 'token') return isToken(byte) || byte === dollar
  return byte !== atSign && byte !== slash && !endsValue(byte)
}

export function masker(finder: ShapeFinder): Masker {
  return new StreamMasker(finder)
}
