// The Node for devices: smaller, in no need of libatomic, and a Node like the one it was made of, under many
// threads, too. What is not known is refused rather than changed.
import { execFileSync } from 'node:child_process'
import { mkdtempSync, readFileSync, rmSync, statSync, writeFileSync } from 'node:fs'
import os from 'node:os'
import path from 'node:path'
import { afterAll, beforeAll, expect, test } from 'vitest'
import { leanNode } from '../lean-node.ts'

const folder = mkdtempSync(path.join(os.tmpdir(), 'hawser-lean-'))
const lean = path.join(folder, 'node')
let whole: Buffer
beforeAll(() => {
  whole = readFileSync(process.execPath)
  writeFileSync(lean, leanNode(whole), { mode: 0o755 })
})
afterAll(() => rmSync(folder, { recursive: true, force: true }))

const run = (...words: string[]): string => execFileSync(lean, words, { encoding: 'utf8' })
const libraries = (program: string): string[] =>
  execFileSync(program, { encoding: 'utf8', env: { LD_TRACE_LOADED_OBJECTS: '1' } })
    .split('\n')
    .map((line) => line.trim().split(' ')[0]!)

test('it is smaller and stands on what every system has', () => {
  expect(statSync(lean).size).toBeLessThan(whole.length * 0.8)
  expect(run('--version')).toBe(`${process.version}\n`)
  expect(libraries(process.execPath)).toContain('libatomic.so.1')
  expect(
    libraries(lean)
      .filter((name) => /^lib(atomic|stdc\+\+|c)\.so/.test(name))
      .toSorted(),
  ).toEqual(['libc.so.6', 'libstdc++.so.6'])
})

test('threads that make functions at once do not get in each other’s way', () => {
  // Each function takes a place in a table of V8 that all threads share; that is what the function of
  // libatomic is for.
  const work = `for (let n = 0; n < 20_000; n += 1) if (new Function('return ' + n)() !== n) throw new Error('another function')`
  const main = `const { Worker } = require('node:worker_threads')
    let left = 4
    for (let n = 0; n < 4; n += 1) new Worker(${JSON.stringify(work)}, { eval: true }).on('exit', (code) => {
      if (code !== 0) process.exit(code)
      if ((left -= 1) === 0) console.log('done')
    })`
  expect(run('-e', main)).toBe('done\n')
})

test('made lean once more it is the same', () => {
  const once = readFileSync(lean)
  expect(leanNode(once).equals(once)).toBe(true)
})

test('what is not known is refused', () => {
  expect(() => leanNode(Buffer.from('#!/bin/sh\n'))).toThrow('no program for a Linux of 64 bits')
  const other = Buffer.from(whole)
  const name = other.indexOf('__atomic_compare_exchange\0')
  other.write('__atomic_something_other_\0', name)
  expect(() => leanNode(other)).toThrow(
    '__atomic_something_other_ is wanted of libatomic.so.1, which is not known here',
  )
  const foreign = Buffer.from(whole)
  foreign.writeUInt16LE(243, 18)
  expect(() => leanNode(foreign)).toThrow('This processor is not known here: 243')
})
