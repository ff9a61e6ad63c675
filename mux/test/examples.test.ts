// The examples run, each export stands in one of them, and each has a sentence of documentation.
import { globSync, readFileSync } from 'node:fs'
import path from 'node:path'
import { expect, test } from 'vitest'
import { codeOf, exportsOf } from '../../tests/harness/exports.ts'
import * as mux from '../src/index.ts'

const root = path.join(import.meta.dirname, '..')
const examples = globSync('*.ts', { cwd: path.join(root, 'examples') })
const text = examples.map((file) => readFileSync(path.join(root, 'examples', file), 'utf8')).join('\n')
const names = [...Object.keys(mux), ...Object.keys(mux.multistream)]

test.each(examples)('%s runs', async (file) => {
  await import(path.join(root, 'examples', file))
})

test('every value that the package exports stands in an example', () => {
  expect(names.filter((name) => !new RegExp(`\\b${name}\\b`).test(text))).toEqual([])
})

test('every export has its sentence', () => {
  expect(exportsOf(root).filter(({ isDocumented }) => !isDocumented)).toEqual([])
})

test('the README names every value that the package exports, and its code is that of the examples', () => {
  const readme = readFileSync(path.join(root, 'README.md'), 'utf8')
  expect(names.filter((name) => !new RegExp(`\`(?:multistream\\.)?${name}\``).test(readme))).toEqual([])
  expect(codeOf(readme).filter((code) => !text.includes(code))).toEqual([])
})
