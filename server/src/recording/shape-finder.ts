// Finds the texts that come before secrets. An automaton (Aho and Corasick's) looks for all shapes of secret-shapes.ts
// at once. Most output has none of them: a table of pairs of bytes says how far one can skip (as in Wu and
// Manber's search), and the automaton only looks where the first four bytes of a shape may be.
import { BoundedMap } from '../kit/bounded-map.ts'
import { usualShapes, type SecretShape } from './secret-shapes.ts'

const escape = 0x1b

/** An automaton for the texts of shapes. Maskers of many sessions share one. */
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
  /** Whether a shape begins with the two bytes. */
  readonly firsts: Uint8Array
  readonly shapes: readonly SecretShape[]
}

const lower = /[a-z]/
const mostStates = 4_096

/** Throws RangeError for too many shapes; memory is twice the states times the classes. */
export function shapeFinder(shapes: readonly SecretShape[]): ShapeFinder {
  const classes = new Uint8Array(256)
  let width = 1
  for (const byte of Buffer.from(shapes.map(({ after }) => after).join('')))
    if (classes[byte] === 0) classes[byte] = width++
  for (let byte = 0; byte < 256; byte++) {
    const char = String.fromCharCode(byte)
    if (lower.test(char)) classes[char.toUpperCase().charCodeAt(0)] = classes[byte] ?? 0
  }
  // A trie of the texts, with the way back from each state to the longest text that could still fit.
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
    ends[state] ||= index + 1
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
    firsts: firstsOf(shapes),
    shapes,
  }
}

export const probed_bytes = 4
/** This many characters of a text, one less than are probed, are still known behind a colour. */
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

function firstsOf(shapes: readonly SecretShape[]): Uint8Array {
  const firsts = new Uint8Array(0x1_00_00)
  for (const { after } of shapes)
    for (const first of bothCases(after[0] ?? ''))
      for (const second of bothCases(after[1] ?? '')) firsts[(first << 8) | second] = 1
  return firsts
}

const bothCases = (char: string): Buffer => Buffer.from(char + char.toUpperCase(), 'latin1')

const finders = new BoundedMap<string, ShapeFinder>(32)

/** Undefined: nothing is masked. */
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
