// Masks secrets in what a terminal shows, before it is recorded: each character of a secret becomes a `*`, so
// that the widths and times of the recording stay. An automaton (Aho and Corasick's) looks for all shapes of
// secret-shapes.ts at once and goes on where the last bytes ended, however they were cut. Most output has
// none of them: a table of pairs of bytes says how far one can skip (as in Wu and Manber's search), and the
// automaton only looks where the first four bytes of a shape may be. Memory is bounded, and time grows with
// the bytes alone, whatever the shapes are.
import { BoundedMap } from '../kit/bounded-map.ts'
import { usualShapes, type Follows, type SecretShape } from './secret-shapes.ts'

export interface Masker {
  /** Returns the bytes to record instead of these: the same object if there is nothing to mask. */
  mask(bytes: Uint8Array): Uint8Array
  /** How many secrets were masked. */
  readonly count: number
}

/** An automaton that finds the texts of shapes. Maskers of many sessions share one. */
export interface ShapeFinder {
  /** The class of each byte; bytes that are in no text have class 0. */
  readonly classes: Uint8Array
  /** The next state, by state and class. */
  readonly next: Uint16Array
  /** For each state the shape whose text has just ended, plus one; 0: none. */
  readonly found: Uint8Array
  /** For each shape, by its number in `found`, the one whose text is the end of its text; 0: none. */
  readonly shorter: Uint8Array
  /** For each state, whether enough of a text has come that a colour within it is stepped over. */
  readonly colourable: Uint8Array
  readonly width: number
  /** How many bytes can be skipped, by the last two of four bytes; 0: the four may begin a shape. */
  readonly skips: Uint8Array
  readonly shapes: readonly SecretShape[]
}

const lower = /[a-z]/
const mostStates = 4_096

/** Throws RangeError for more shapes than it can tell apart; memory is twice the states times the classes. */
export function shapeFinder(shapes: readonly SecretShape[]): ShapeFinder {
  const classes = new Uint8Array(256)
  let width = 1
  for (const byte of Buffer.from(shapes.map(({ after }) => after).join('')))
    if (classes[byte] === 0) classes[byte] = width++
  for (let byte = 0; byte < 256; byte++) {
    const char = String.fromCharCode(byte)
    if (lower.test(char)) classes[char.toUpperCase().charCodeAt(0)] = classes[byte] ?? 0
  }
  // A trie of the texts, then the way back from each state to the longest text that could still fit.
  const trie: Map<number, number>[] = [new Map<number, number>()]
  const ends: number[] = [0]
  const endOf: number[] = [0]
  const colourable: number[] = [0]
  for (const [index, { after }] of shapes.entries()) {
    let state = 0
    for (const [place, byte] of Buffer.from(after).entries()) {
      const kind = classes[byte] ?? 0
      let to = trie[state]?.get(kind)
      if (to === undefined) {
        to = trie.length
        trie.push(new Map<number, number>())
        ends.push(0)
        colourable.push(place + 1 >= leastColoured ? 1 : 0)
        trie[state]?.set(kind, to)
      }
      state = to
    }
    ends[state] = index + 1
    endOf.push(state)
  }
  if (trie.length > mostStates || shapes.length > 255)
    throw new RangeError('The texts before secrets are too many.')
  const next = new Uint16Array(trie.length * width)
  const back = new Uint16Array(trie.length)
  const queue = [0]
  for (let at = 0; at < queue.length; at++) {
    const state = queue[at] ?? 0
    const behind = (back[state] ?? 0) * width
    for (let kind = 0; kind < width; kind++) {
      const to = trie[state]?.get(kind)
      const otherwise = state === 0 ? 0 : (next[behind + kind] ?? 0)
      next[state * width + kind] = to ?? otherwise
      if (to === undefined) continue
      back[to] = otherwise
      ends[to] ||= ends[otherwise] ?? 0
      queue.push(to)
    }
  }
  const found = Uint8Array.from(ends)
  const shorter = Uint8Array.from(endOf, (state) => found[back[state] ?? 0] ?? 0)
  return {
    classes,
    next,
    found,
    shorter,
    colourable: Uint8Array.from(colourable),
    width,
    skips: skipsOf(shapes),
    shapes,
  }
}

/** The bytes of a shape that are looked for first. */
const probed_bytes = 4
/** So many characters of a text, one less than are probed, are still known behind a colour. */
const leastColoured = probed_bytes - 1

function skipsOf(shapes: readonly SecretShape[]): Uint8Array {
  const skips = new Uint8Array(0x1_00_00).fill(probed_bytes - 1)
  for (const { after } of shapes)
    for (let end = 1; end < probed_bytes; end++)
      for (const first of bothCases(after[end - 1] ?? ''))
        // A colour may come before the last of the probed bytes.
        for (const second of [...bothCases(after[end] ?? ''), ...(end === leastColoured ? [escape] : [])]) {
          const pair = (first << 8) | second
          skips[pair] = Math.min(skips[pair] ?? 0, probed_bytes - 1 - end)
        }
  return skips
}

const bothCases = (char: string): Buffer => Buffer.from(char + char.toUpperCase(), 'latin1')

const finders = new BoundedMap<string, ShapeFinder>(32)

/** Finds the usual shapes and words behind these texts. Undefined: nothing is masked. */
export function finderOf(after: readonly string[] | false = []): ShapeFinder | undefined {
  if (after === false) return undefined
  const key = JSON.stringify(after)
  let finder = finders.get(key)
  if (!finder) {
    const own = after.map(
      (text) => ({ after: text.toLowerCase(), follows: 'token', startsWord: false }) as const,
    )
    finder = shapeFinder([...usualShapes, ...own])
    finders.set(key, finder)
  }
  return finder
}

const bell = 0x07
const lineFeed = 0x0a
const carriageReturn = 0x0d
const cancel = 0x18
const substitute = 0x1a
const escape = 0x1b
const space = 0x20
const parenthesis = 0x28
const star = 0x2a
const comma = 0x2c
const dash = 0x2d
const slash = 0x2f
const colon = 0x3a
const equals = 0x3d
const atSign = 0x40
const bracket = 0x5b
const backslash = 0x5c
/** The characters after ESC that begin a string: OSC, DCS, PM and APC. */
const beginsString = new Set([0x5d, 0x50, 0x5e, 0x5f])
/**
 * Control sequences that do not move the cursor: colours, modes, and the deletion that
 * shells do while typing.
 */
const harmless = new Set(Buffer.from('mhlK'))

/** A value that is longer is none. */
const longest_bytes = 4_096
const longestBlock_bytes = 32 * 1024
const longestSequence_bytes = 4_096
/** Spaces and quotation marks between a field's name and its value. */
const mostBetween = 8
/** The longest name of a user in an address. */
const longestName = 64
/** The longest text before a secret. */
export const longestText_bytes = 64

const isWord = (byte: number): boolean =>
  (byte >= 0x30 && byte <= 0x39) || (byte >= 0x41 && byte <= 0x5a) || (byte >= 0x61 && byte <= 0x7a)
const tokenMarks = new Set(Buffer.from('-_.+/='))
/** Characters of tokens: of base64 in both alphabets, of versions and hexadecimal numbers. */
const isToken = (byte: number): boolean => isWord(byte) || tokenMarks.has(byte)
const isDigit = (byte: number): boolean => byte >= 0x30 && byte <= 0x39
/** Of control sequences: digits, and what is between them. */
const isParameter = (byte: number): boolean => byte >= 0x30 && byte <= 0x3f
const isQuote = (byte: number): boolean => byte === 0x22 || byte === 0x27
const isSpace = (byte: number): boolean => byte === 0x20 || byte === 0x09
const isLineEnd = (byte: number): boolean => byte === 0x0a || byte === 0x0d
const valueEnds = new Set(Buffer.from('"\',;&>'))
/** White space, and characters between fields, commands and arguments, end a value that is not in quotes. */
const endsValue = (byte: number): boolean => byte <= 0x20 || byte === 0x7f || valueEnds.has(byte)

/** The state of the masker between the text of a shape and the end of the secret. */
interface Masking {
  readonly follows: Follows
  /** Whether the secret itself has begun. */
  begun: boolean
  /** Whether a `=` or `:` has come after the text, or what else a secret may follow. */
  assigned: boolean
  /** The quotation mark that the value ends with; 0: none. */
  quote: number
  /** Characters since the text, then those of the secret. */
  length: number
  /** Dashes one after the other; five end a private key. */
  dashes: number
  /**
   * Shells end a full line with a space and a carriage return: `space` after the first, `return` after both.
   */
  wrapping: 'no' | 'space' | 'return'
}

/** Where in an escape sequence the output is. A string is a title or the like. */
type Sequence = 'none' | 'begun' | 'control' | 'string' | 'charset'

class StreamMasker implements Masker {
  readonly #finder: ShapeFinder
  /** The finder's state. */
  #state = 0
  #masking: Masking | undefined
  #sequence: Sequence = 'none'
  /** Bytes of the escape sequence so far. */
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
      // The rest of a character of several bytes has no width of its own.
      const isRest = this.#masking?.begun === true && byte >= 0x80 && byte < 0xc0
      const hidden = isRest || this.#takes(bytes, at)
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
   * Looks for the text of a shape from `at` on. Gives the place behind it, or of an escape sequence when a text
   * has begun, or the length of the bytes.
   */
  #search(bytes: Uint8Array, at: number): number {
    const { classes, next, found, colourable, width, skips } = this.#finder
    let state = this.#state
    for (;;) {
      if (state === 0) {
        // Nothing has begun: skip to where four bytes may be the first of a shape.
        let end = at + probed_bytes - 1
        while (end < bytes.length) {
          const skip = skips[((bytes[end - 1] ?? 0) << 8) | (bytes[end] ?? 0)] ?? 0
          if (skip === 0) break
          end += skip
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

  /** Begins to mask behind the text of a shape, unless that is a part of another word. */
  #opens(bytes: Uint8Array, behind: number, found: number): boolean {
    for (let index = found; index !== 0; index = this.#finder.shorter[index] ?? 0) {
      const shape = this.#finder.shapes[index - 1]
      if (!shape || (shape.startsWord && !this.#startsWord(bytes, behind, shape.after.length))) continue
      this.#masking = newMasking(shape.follows)
      return true
    }
    return false
  }

  /** Takes a byte behind the text of a shape or of a part of one, and says whether it is to be hidden. */
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
    if (hidden || this.#masking?.begun) return hidden
    // The byte may begin another text, or go on with a longer one, such as `secret_key` after `secret`.
    const { classes, next, found, width } = this.#finder
    this.#state = next[this.#state * width + (classes[byte] ?? 0)] ?? 0
    if (found[this.#state] !== 0) this.#opens(bytes, at + 1, found[this.#state] ?? 0)
    return false
  }

  /** Whether the byte is a part of the secret; ends the masking when the byte is behind it. */
  #hides(at: Masking, byte: number): boolean {
    at.length++
    if (at.follows === 'block') return this.#hidesLine(at, byte)
    if (!at.begun) return this.#begins(at, byte)
    const { wrapping } = at
    at.wrapping = 'no'
    if (wrapping === 'space' && byte === carriageReturn) return ((at.wrapping = 'return'), false)
    if (wrapping === 'space' && at.quote === 0) return this.#end()
    if (wrapping === 'return' && byte === lineFeed) return this.#end()
    if (at.length > longest_bytes) return this.#end()
    if (byte === space) {
      at.wrapping = 'space'
      return at.quote !== 0
    }
    if (at.quote === 0 ? !continues(at.follows, byte) : byte === at.quote || isLineEnd(byte))
      return this.#end()
    return true
  }

  #begins(at: Masking, byte: number): boolean {
    if (at.follows === 'token') return isToken(byte) ? this.#begin(at) : this.#end()
    if (at.follows === 'address') return this.#beginsPassword(at, byte)
    if (isSpace(byte)) {
      if (at.quote !== 0) return this.#begin(at)
      if (at.follows === 'argument') at.assigned = true
      return at.length > mostBetween ? this.#end() : false
    }
    if (isQuote(byte)) {
      // Before the `:` a quotation mark ends the name of a field.
      if (at.quote !== 0) return this.#end()
      if (at.assigned) at.quote = byte
      return false
    }
    if (!at.assigned && (byte === equals || byte === colon)) {
      at.assigned = true
      return false
    }
    return at.assigned && !endsValue(byte) ? this.#begin(at) : this.#end()
  }

  /**
   * Looks for the password in `//user:password@host`. A number after the colon may be a port, and is shown.
   */
  #beginsPassword(at: Masking, byte: number): boolean {
    const isBehind = byte === atSign || byte === slash || byte === bracket || endsValue(byte)
    if (isBehind || at.length > longestName) return this.#end()
    if (at.assigned) return isDigit(byte) ? false : this.#begin(at)
    if (byte === colon) at.assigned = true
    return false
  }

  /** The lines of a private key: everything but dashes and white space, until something is no part of one. */
  #hidesLine(at: Masking, byte: number): boolean {
    at.dashes = byte === dash ? at.dashes + 1 : 0
    if (at.dashes === 5 || at.length > longestBlock_bytes) return this.#end()
    if (byte === dash || byte <= space) return false
    if (!isToken(byte) && byte !== colon && byte !== comma) return this.#end()
    return at.begun || this.#begin(at)
  }

  #begin(at: Masking): true {
    at.begun = true
    if (at.follows !== 'block') at.length = 1
    this.#state = 0
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

  /** Takes one byte of an escape sequence. */
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
      if (!harmless.has(byte)) this.#leave()
    }
  }

  /**
   * The cursor has gone elsewhere: what follows is no part of a secret. A private key may be in an editor.
   */
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

const newMasking = (follows: Follows): Masking => ({
  follows,
  begun: false,
  assigned: false,
  quote: 0,
  length: 0,
  dashes: 0,
  wrapping: 'no',
})

function continues(follows: Follows, byte: number): boolean {
  if (follows === 'token') return isToken(byte)
  if (follows === 'address') return byte !== atSign && byte !== slash && !endsValue(byte)
  return !endsValue(byte)
}

export function masker(finder: ShapeFinder): Masker {
  return new StreamMasker(finder)
}
