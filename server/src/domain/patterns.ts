// Regular expressions that users wrote: host names, login names and addresses in firewall rules and public keys. They
// are in RE2 syntax, unanchored, and run by an engine without backtracking, so the time a match takes grows with the
// text and never explodes with the pattern. What such an engine still spends on is the size of the compiled program,
// because `(x{30}){30}` is 900 copies of x: so the size is bounded too, before and after compiling. Memory is bounded
// per pattern and over all of them.
import { RE2JSException, RE2Set } from 're2js'
import { Failure, invariant } from '@hawser/contract/failures'

const longestSource = 1024
/** Instructions of a compiled pattern. A 1024-character list of names needs about 1300; nobody needs many more. */
const largestProgram = 2000
/** For the states that a pattern's automaton remembers; when they are used up the engine starts anew or goes without. */
const stateBytes = 128 * 1024
const mostKept = 1000
const mostInstructionsKept = 100_000

/** Oldest first, as a Map keeps its keys. */
const kept = new Map<string, RE2Set>()
let instructionsKept = 0

/** Refuses a pattern that we could not run; `field` is the name that the caller knows it by. */
export function checkPattern(field: string, source: string): void {
  if (source.length > longestSource) {
    throw new Failure('invalid', { message: `${field}: a regular expression may have at most ${longestSource} characters` })
  }
  const tooLarge = `${field}: the regular expression is too large once its repetitions are written out`
  if (estimate(source) > largestProgram) throw new Failure('invalid', { message: tooLarge })
  let program: RE2Set
  try {
    program = compile(source)
  } catch (cause) {
    if (!(cause instanceof RE2JSException)) throw cause
    throw new Failure('invalid', { message: `${field}: this is not a regular expression in RE2 syntax`, cause })
  }
  if (program.prog.numInst() > largestProgram) throw new Failure('invalid', { message: tooLarge })
}

/**
 * Is `source` found anywhere in `text`? The pattern must have passed `checkPattern`. One that does not compile throws
 * rather than counting as no match, because a rule that denies would then let everyone in.
 */
export function matches(source: string, text: string): boolean {
  let program = kept.get(source)
  if (!program) {
    invariant(source.length <= longestSource && estimate(source) <= largestProgram, 'a stored pattern is within its limits')
    program = compile(source)
    keep(source, program)
  }
  return program.match(text).length > 0
}

/** A set of one: unlike a lone pattern, a set lets us say how much memory its automaton may take. */
function compile(source: string): RE2Set {
  const program = new RE2Set(RE2Set.UNANCHORED, 0, stateBytes)
  program.add(source)
  program.compile()
  return program
}

function keep(source: string, program: RE2Set): void {
  kept.set(source, program)
  instructionsKept += program.prog.numInst()
  for (const [oldest, its] of kept) {
    if (kept.size <= mostKept && instructionsKept <= mostInstructionsKept) break
    kept.delete(oldest)
    instructionsKept -= its.prog.numInst()
  }
}

/**
 * About how many instructions a pattern compiles to, found without compiling it: every atom counts one, a group two
 * more, and a repetition multiplies what it repeats. It need only be right in scale; what is not RE2 syntax gets some
 * number and is refused later.
 */
function estimate(source: string): number {
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
    // Flags alone and empty quotes are no atoms: in `x(?i){9}` it is x that is repeated.
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
      atom(1)
    }
  }
  // Groups that are still open count as closed here.
  return outer.reduce((total, size) => total + size, sum)
}

const emptyQuote = /^\\(?:Q|Q\\E|E)$/

/**
 * Flags alone; quoted text; an escape, perhaps with braces; a class, in which a leading `]` is literal; a counted repetition; any one
 * character. This one does run on a backtracking engine: a source of 1024 characters costs it at most their square.
 */
const tokens =
  /^(?:\(\?[a-zA-Z-]*\)|\\Q[^]*?(?:\\E|$)|\\[pPx]\{[^}]*\}|\\[^]|\[\^?\]?(?:\[:[^\]]*:\]|\\[^]|[^\]\\])*\]|\{\d+(?:,\d*)?\}|[^])/
