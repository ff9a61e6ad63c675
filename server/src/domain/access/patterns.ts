// Users' regular expressions in firewall rules and public keys: RE2 syntax, unanchored, on an engine without
// backtracking. A match takes at most one step per instruction of the compiled program and character of the
// text, so the program's size is a pattern's cost. `(x{30}){30}` has 900 copies of x, so the size is computed
// and bounded before compiling. A cache keeps recently used programs.
import { RE2JSException, RE2Set } from 're2js'
import { Failure } from '@hawser/contract/failures'
import { BoundedMap } from '../../kit/bounded-map.ts'

const longestSource = 1024
/** A 1024-character list of names needs about 1300. */
const largestProgram = 2000
/** This many numbers of a character class's table cost as much to compile as one instruction. */
const numbersPerInstruction = 16
/** The charge for a Unicode class, whose table has up to 1400 numbers. */
const unicodeClass = 100
/** Steps to compile an instruction, and to measure a character of the source. Both were measured. */
export const stepsToCompile = 64
const stepsToMeasure = 4
const mostCached = 2000
const mostSizeCached = 100_000

export interface Pattern {
  /** Also the most steps of a match per character of the text. */
  readonly size: number
  isIn(text: string): boolean
}

/** Null: too large to be run. Ordered by last use. */
const cache = new BoundedMap<string, Pattern | null>(mostCached)
let sizeCached = 0

/** `field` is its name in the request. */
export function checkPattern(field: string, source: string): void {
  if (source.length > longestSource) {
    throw new Failure('invalid', {
      message: `${field}: a regular expression may have at most ${longestSource} characters`,
    })
  }
  try {
    if (patternOf(source)) return
  } catch (cause) {
    if (!(cause instanceof RE2JSException)) throw cause
    throw new Failure('invalid', {
      message: `${field}: this is not a regular expression in RE2 syntax`,
      cause,
    })
  }
  throw new Failure('invalid', {
    message: `${field}: the regular expression is too large once its repetitions are written out`,
  })
}

/** Undefined if the pattern is too large to be run. Throws a RE2JSException if it is none. */
function patternOf(source: string, charge?: (steps: number) => void): Pattern | undefined {
  const known = cache.get(source)
  const pattern = known === undefined ? (compile(source) ?? null) : known
  sizeCached -= cache.set(source, pattern)?.size ?? 0
  if (known === undefined) {
    charge?.(source.length * stepsToMeasure + (pattern?.size ?? 0) * stepsToCompile)
    sizeCached += pattern?.size ?? 0
    while (sizeCached > mostSizeCached) sizeCached -= cache.evict()?.size ?? 0
  }
  return pattern ?? undefined
}

/**
 * Undefined if the pattern cannot be run, which no rule may take for "does not match". `charge` gets the cost
 * of compiling, in steps of a match.
 */
export function runnable(source: string, charge: (steps: number) => void): Pattern | undefined {
  try {
    return patternOf(source, charge)
  } catch (error) {
    if (!(error instanceof RE2JSException)) throw error
    charge(source.length * stepsToMeasure)
    return undefined
  }
}

const anything: Pattern = { size: 1, isIn: () => true }

function compile(source: string): Pattern | undefined {
  if (source === '.*') return anything
  if (source.length > longestSource || sizeOf(source) > largestProgram) return undefined
  // A set can be made without a cache of automaton states, of which a new one costs more than many steps.
  const program = new RE2Set(RE2Set.UNANCHORED, 0, 0)
  program.add(source)
  program.compile()
  const instructions = program.prog.inst as readonly { readonly runes: ArrayLike<number> }[]
  const size = instructions.reduce((sum, { runes }) => sum + 1 + runes.length / numbersPerInstruction, 0)
  return size > largestProgram ? undefined : { size, isIn: (text) => program.match(text).length > 0 }
}

/**
 * Roughly the instructions that a pattern compiles to: every atom counts one, a class the size of its table,
 * a group two more, and a repetition multiplies. A text that is not RE2 syntax gets some number and is
 * refused later.
 */
export function sizeOf(source: string): number {
  const outer: number[] = []
  let sum = 0
  let last = 0
  const atom = (size: number): void => {
    last = size
    sum += size
  }
  let rest = source
  while (rest !== '') {
    const token = tokens.exec(rest)![0]
    rest = rest.slice(token.length)
    // Flags alone and empty quotes are no atoms: `x(?i){9}` repeats x.
    if (token.startsWith('(?') || emptyQuote.test(token)) continue
    if (token === '(') {
      outer.push(sum)
      sum = 0
    } else if (token === ')') {
      const inner = sum + 2
      sum = outer.pop() ?? 0
      atom(inner)
    } else if (token.startsWith('\\Q')) {
      atom(token.length)
    } else if (/^\{\d/.test(token)) {
      const times = Math.max(1, ...token.match(/\d+/g)!.map(Number))
      sum += last * (times - 1)
      last *= times
    } else if ('*+?'.includes(token)) {
      sum += 1
      last += 1
    } else {
      atom(1 + token.length / numbersPerInstruction + unicodeClass * (token.match(/\\[pP]/g)?.length ?? 0))
    }
  }
  return outer.reduce((total, size) => total + size, sum)
}

const emptyQuote = /^\\(?:Q|Q\\E|E)$/

/**
 * In this order: flags alone; quoted text; an escape, perhaps with braces; a class, in which a leading `]` is
 * literal; a counted repetition; any one character. On JavaScript's backtracking engine a source of 1024
 * characters costs at most the square of its length.
 */
const tokens =
  /^(?:\(\?[a-zA-Z-]*\)|\\Q[^]*?(?:\\E|$)|\\[pPx]\{[^}]*\}|\\[^]|\[\^?\]?(?:\[:[^\]]*:\]|\\[^]|[^\]\\])*\]|\{\d+(?:,\d*)?\}|[^])/
