// The words of a line, for the index and for queries: runs of letters, digits and underscores, in lower case.
// Chinese, Japanese and Korean are written without spaces, so each of their characters is a word.

/** Characters that are words by themselves. */
const single = '[\\p{Script_Extensions=Han}\\p{Script=Hiragana}\\p{Script=Katakana}\\p{Script=Hangul}]'
const part = '[\\p{L}\\p{N}\\p{M}_]'
/** Characters of words that need a separator on both sides. */
const joined = `[${part}--${single}]`

const words = new RegExp(`[${part}&&${single}]|${joined}+`, 'gv')
/** The same for most lines, in a fraction of the time. */
const asciiWords = /[a-z0-9_]+/g
const isAscii = /^\p{ASCII}*$/v
const startsSingle = new RegExp(`^[${part}&&${single}]`, 'v')

/** The rest of a longer word is seldom looked for, and would fill the index. */
export const longest_word = 48

/** The words of a text in order, with repetitions. */
export function wordsOf(text: string): string[] {
  return text.toLowerCase().match(isAscii.test(text) ? asciiWords : words) ?? []
}

export const indexed = (word: string): string => {
  if (word.length <= longest_word) return word
  // A character of two units is not cut in the middle.
  const cut = word.slice(0, longest_word)
  return cut.isWellFormed() ? cut : cut.slice(0, -1)
}

/** Finds these words one after the other, whatever separates them; `prefix`: of the last. */
export function phrasePattern(phrase: readonly string[], prefix: boolean): RegExp {
  const between = (left: string, right: string): string =>
    startsSingle.test(left) || startsSingle.test(right) ? `[^${part}]*` : `[^${part}]+`
  const [first = '', ...rest] = phrase
  let pattern = startsSingle.test(first) ? '' : `(?<!${joined})`
  pattern += RegExp.escape(first)
  let last = first
  for (const word of rest) {
    pattern += between(last, word) + RegExp.escape(word)
    last = word
  }
  if (!prefix && !startsSingle.test(last)) pattern += `(?!${joined})`
  return new RegExp(pattern, 'giv')
}
