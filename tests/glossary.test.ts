// The glossary explains words of the code: one that no name uses any more has to go, or the code has lost its word.
import { globSync, readFileSync } from 'node:fs'
import path from 'node:path'
import { expect, test } from 'vitest'

const root = path.join(import.meta.dirname, '..')
const folders = ['server/src', 'agent/src', 'contract/src', 'ssh/src', 'mux/src']

const explained = readFileSync(path.join(root, 'docs/glossary.md'), 'utf8')
  .split('\n')
  .slice(6)
  .flatMap((line) => /^\| ([^|]+) \|/.exec(line)?.[1]?.split(', ') ?? [])

/** The words of all code without its comments, in lower case. */
const used = new Set(
  folders.flatMap((folder) =>
    globSync('**/*.ts', { cwd: path.join(root, folder) }).flatMap((file) =>
      readFileSync(path.join(root, folder, file), 'utf8')
        .replaceAll(/^\s*(\/\/|\/?\*).*$/gm, '')
        .match(/[A-Z]?[a-z]+|[A-Z]+(?![a-z])/g)!
        .map((word) => word.toLowerCase()),
    ),
  ),
)

const isUsed = (word: string): boolean =>
  [word, `${word}s`, word.replace(/e?s$/, '')].some((form) => used.has(form))

test.each(explained)('%s is a word of the code', (term) => {
  const words = term.toLowerCase().match(/[a-z]+/g)!
  expect(words.filter((word) => !isUsed(word))).toEqual([])
})

test('a word that the code does not use is found', () => {
  expect(explained.length).toBeGreaterThan(50)
  expect(isUsed('sieve')).toBe(false)
})
