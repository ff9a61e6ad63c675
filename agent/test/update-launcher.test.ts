// The launcher that starts an update or puts the former agent back, as it is in every tarball, with agents
// that are small scripts: what is started after each step of an update, and after a power cut in the middle
// of one. A device always starts an agent that is whole.
import { spawnSync } from 'node:child_process'
import {
  chmodSync,
  existsSync,
  mkdirSync,
  mkdtempSync,
  readdirSync,
  readFileSync,
  rmSync,
  writeFileSync,
} from 'node:fs'
import os from 'node:os'
import path from 'node:path'
import { afterEach, beforeEach, describe, expect, test } from 'vitest'
import { buildText, launcher } from '../../packages/tarball.ts'
import { placeOf, shareFile } from '../src/update/place.ts'

let base = ''
beforeEach(() => {
  base = path.join(mkdtempSync(path.join(os.tmpdir(), 'hawser-launcher-')), 'agent')
  agentIn(base, 'base')
  mkdirSync(path.join(base, 'updates'))
})
afterEach(() => rmSync(path.dirname(base), { recursive: true, force: true }))

const [a, b] = ['a'.repeat(16), 'b'.repeat(16)]
const updates = (...names: string[]): string => path.join(base, 'updates', ...names)

/** An agent whose Node prints its name and arguments. */
function agentIn(folder: string, name: string, build = '0'.repeat(16)): void {
  mkdirSync(path.join(folder, 'bin'), { recursive: true })
  mkdirSync(path.join(folder, 'app'), { recursive: true })
  writeFileSync(path.join(folder, 'BUILD'), buildText('0.1.0', build))
  writeFileSync(path.join(folder, 'app/main.mjs'), '')
  // The launcher asks its Node for missing libraries first.
  const node = `#!/bin/sh\n[ -n "$LD_TRACE_LOADED_OBJECTS" ] && exit\nshift 2\necho "${name}" "$@"\n`
  for (const [file, text] of [
    ['bin/node', node],
    ['bin/hawser-agent', launcher('hawser-agent')],
  ] as const) {
    writeFileSync(path.join(folder, file), text)
    chmodSync(path.join(folder, file), 0o755)
  }
}
const start = (...args: string[]): string =>
  spawnSync(path.join(base, 'bin/hawser-agent'), args, {
    encoding: 'utf8',
    env: { PATH: process.env['PATH'], HAWSER_UPDATE_WAIT: '1' },
  }).stdout.trim()
const place = (folder = base) => placeOf(path.join(folder, 'app/main.mjs'))
const unpacked = (build: string): void => {
  agentIn(place().draft(), build, build)
  place().keep(build)
}

test('without updates the agent beside the launcher starts, with what it is told', () => {
  expect(start()).toBe('base')
  expect(start('info', 'now')).toBe('base info now')
})

test('an update is tried by the service alone, counts when it has connected, and replaces the former', () => {
  unpacked(a)
  expect(start()).toBe('base')
  place().stage(a)
  expect(start('--version')).toBe('base --version')
  expect(start()).toBe(a)
  expect(place(updates(a)).trying()).toBe(a)
  expect(place().trying()).toBeUndefined()
  place(updates(a)).confirm()
  for (const word of [[], ['--version']]) expect(start(...word)).toBe([a, ...word].join(' '))
  unpacked(b)
  place(updates(a)).stage(b)
  expect(start()).toBe(b)
  place(updates(b)).confirm()
  expect(start()).toBe(b)
  expect(readdirSync(updates()).toSorted()).toEqual([b, 'current'])
})

test('three starts without a connection put the former agent back, and say so', () => {
  unpacked(a)
  place().stage(a)
  place(updates(a)).confirm()
  unpacked(b)
  place(updates(a)).stage(b)
  expect([start(), start(), start(), start(), start()]).toEqual([b, b, b, a, a])
  expect(place(updates(a)).failed()).toEqual({
    build: b,
    reason: 'it ended 3 times before it had connected',
  })
  place(updates(a)).forgetFailed()
  expect(place(updates(a)).failed()).toBeUndefined()
  expect(readdirSync(updates()).toSorted()).toEqual([a, 'current'])
  expect(start()).toBe(a)
})

describe('a power cut', () => {
  /** States of the disk after a power cut, and what starts then. */
  const moments: readonly [string, () => void, string][] = [
    ['while it is fetched', () => writeFileSync(updates(`${'0'.repeat(64)}.part`), 'half'), 'base'],
    [
      'while it is unpacked',
      () => {
        place().draft()
        writeFileSync(updates('unpacking', 'BUILD'), buildText('0.1.0', a))
      },
      'base',
    ],
    ['when it has its name', () => unpacked(a), 'base'],
    ['while `next` is written', () => (unpacked(a), writeFileSync(updates('next.77'), a)), 'base'],
    ['when `next` is there', () => (unpacked(a), place().stage(a)), a],
    ['when `next` is there but empty', () => (unpacked(a), writeFileSync(updates('next'), '')), 'base'],
    [
      'when `next` leads to half an agent',
      () => {
        mkdirSync(updates(a))
        writeFileSync(updates('next'), a)
      },
      'base',
    ],
    [
      'when the tries are unreadable',
      () => {
        unpacked(a)
        place().stage(a)
        writeFileSync(updates('tries'), 'x\0y')
      },
      a,
    ],
    [
      'when it is confirmed and the former was not removed',
      () => {
        unpacked(a)
        unpacked(b)
        writeFileSync(updates('current'), b)
        writeFileSync(updates('tries'), '2')
      },
      b,
    ],
    ['when `current` was lost with its folder', () => writeFileSync(updates('current'), b), 'base'],
    ['when a path was put into `current`', () => writeFileSync(updates('current'), '../../../bin'), 'base'],
  ]
  test.each(moments)('%s leaves an agent that starts', (_, leave, starts) => {
    leave()
    expect(start()).toBe(starts)
    expect(start('--version')).not.toBe('')
    // The next update finds its way from there.
    unpacked(b)
    place().stage(b)
    expect(start()).toBe(b)
    place(updates(b)).confirm()
    expect(start()).toBe(b)
    expect(readdirSync(updates()).filter((name) => /^[ab]+$/.test(name))).toEqual([b])
  })
})

test('a folder that cannot be written keeps the former agent', () => {
  unpacked(a)
  place().stage(a)
  // As on a full disk: the count cannot be kept.
  mkdirSync(updates('tries.new'))
  expect(start()).toBe('base')
  expect(existsSync(updates('failed'))).toBe(true)
})

test('a Node that is the same is kept once, another one is not touched', async () => {
  unpacked(a)
  writeFileSync(updates(a, 'bin/node'), readFileSync(path.join(base, 'bin/node')))
  expect(await shareFile(path.join(base, 'bin/node'), updates(a, 'bin/node'))).toBe(true)
  expect(await shareFile(path.join(base, 'bin/hawser-agent'), updates(a, 'bin/node'))).toBe(false)
  writeFileSync(updates('other'), readFileSync(path.join(base, 'bin/node'), 'utf8').replace('base', 'bass'))
  expect(await shareFile(path.join(base, 'bin/node'), updates('other'))).toBe(false)
  expect(await shareFile(path.join(base, 'bin/none'), updates('other'))).toBe(false)
})
