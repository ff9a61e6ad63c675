// A query as people type it: words, "phrases" and prefixes*. A line matches when it has all of them. The
// index finds passages that have all words somewhere; this finds the lines among theirs.
import { Failure } from '@hawser/contract/failures'
import { indexed, phrasePattern, wordsOf } from './words.ts'

/** One word, or words that stand one after the other. */
export interface Term {
  readonly words: readonly string[]
  /** The last word may be longer. */
  readonly prefix: boolean
}

export interface Query {
  readonly terms: readonly Term[]
}

/** A range of a line's characters. */
export type Range = readonly [from: number, to: number]

const mostTerms = 10
const mostWords = 32
/** Shorter prefixes match too many words. */
const shortestPrefix = 2
const mostRanges = 20

/** Throws a Failure that says what is wrong with it. */
export function parseQuery(text: string): Query {
  const terms: Term[] = []
  for (const [, quoted, star, bare = ''] of text.matchAll(/"([^"]*)("?\*?)|([^\s"]+)/g)) {
    if (quoted !== undefined && !star?.startsWith('"'))
      throw invalid('The phrase has no closing quotation mark.')
    const prefix = (quoted === undefined ? bare : (star ?? '')).endsWith('*')
    const words = wordsOf(quoted ?? bare)
    const last = words.at(-1)
    if (last === undefined) continue
    if (prefix && words.length === 1 && isShort(last))
      throw invalid(`A prefix needs at least ${shortestPrefix} characters before the star.`)
    terms.push({ words, prefix })
  }
  if (terms.length === 0) throw invalid('The query has no word that can be searched for.')
  const count = terms.reduce((sum, { words }) => sum + words.length, 0)
  if (terms.length > mostTerms || count > mostWords)
    throw invalid(`A query has at most ${mostTerms} terms and ${mostWords} words.`)
  return { terms }
}

const isShort = (prefix: string): boolean => prefix.length < shortestPrefix && /^[\p{ASCII}]/v.test(prefix)

const invalid = (message: string): Failure => new Failure('invalid', { message: `query: ${message}` })

/** The whole words and the beginnings of words that a passage must have. */
export function requiredWords({ terms }: Query): { words: string[]; prefixes: string[] } {
  const words = new Set<string>()
  const prefixes = new Set<string>()
  for (const { words: phrase, prefix } of terms)
    for (const [index, word] of phrase.entries()) {
      const isPrefix = prefix && index === phrase.length - 1
      if (!isPrefix) words.add(indexed(word))
      // The words before a short one, as in 10.0.1*, say enough.
      else if (!isShort(word)) prefixes.add(indexed(word))
    }
  return { words: [...words], prefixes: [...prefixes] }
}

/** Whether a text has every term somewhere, which rules out most passages. */
export function filterOf({ terms }: Query): (text: string) => boolean {
  const patterns = patternsOf(terms)
  return (text) =>
    patterns.every((pattern) => {
      pattern.lastIndex = 0
      return pattern.test(text)
    })
}

const patternsOf = (terms: readonly Term[]): RegExp[] =>
  terms.map(({ words, prefix }) => phrasePattern(words, prefix))

/** Returns the matching places of a line; undefined: no match. */
export function matcher({ terms }: Query): (line: string) => Range[] | undefined {
  const patterns = patternsOf(terms)
  return (line) => {
    const ranges: Range[] = []
    for (const pattern of patterns) {
      pattern.lastIndex = 0
      let found = pattern.exec(line)
      if (!found) return undefined
      for (; found && ranges.length < mostRanges; found = pattern.exec(line))
        ranges.push([found.index, found.index + found[0].length])
    }
    return ranges.toSorted(([a], [b]) => a - b)
  }
}
