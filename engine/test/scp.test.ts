// scp's old protocol with a client that lies: names that would lead elsewhere are refused before anything is
// written, and what is no command of scp's is not taken for one. Real clients are in the tests with an
// engine.
import { mkdirSync, mkdtempSync, readdirSync, readFileSync, rmSync } from 'node:fs'
import os from 'node:os'
import path from 'node:path'
import { afterEach, beforeEach, describe, expect, test } from 'vitest'
import { localFiles, type FileSystem } from '@hawser/ssh'
import { readScp, serveScp } from '../src/scp.ts'

let home: string
/** How many files are open. */
let open = 0

/** The files of a folder, which count how many of them are open. */
function countedFiles(folder: string): FileSystem {
  const files = localFiles(folder)
  return {
    ...files,
    async open(...args) {
      const file = await files.open(...args)
      open += 1
      const close = async (): Promise<void> => {
        open -= 1
        await file.close()
      }
      return { ...file, close }
    },
  }
}

beforeEach(() => {
  open = 0
  home = mkdtempSync(path.join(os.tmpdir(), 'hawser-scp-'))
  mkdirSync(path.join(home, 'in'))
})
afterEach(() => rmSync(home, { recursive: true, force: true }))

/** Says all of it at once, in pieces of this size, and gives what came back. */
async function talk(command: string, said: string, piece = 7): Promise<{ status: number; heard: string }> {
  const bytes = Buffer.from(said)
  let at = 0
  let heard = ''
  const status = await serveScp(
    {
      async read() {
        const part = bytes.subarray(at, (at += piece))
        return part.length === 0 ? undefined : { bytes: part, stream: 0 }
      },
      async write(answer) {
        heard += Buffer.from(answer).toString()
      },
    },
    countedFiles(home),
    readScp(command)!,
    ['in'],
  )
  return { status, heard }
}

describe('somebody who sends', () => {
  test.each([1, 7, 1_000])(
    'has files written where they were meant to be, in pieces of %i bytes',
    async (piece) => {
      const said = 'T1600000000 0 1600000000 0\nC0644 5 note\nhello\0D0755 0 deep\nC0600 0 empty\n\0E\n'
      expect(await talk('scp -r -p -t in', said, piece)).toEqual({ status: 0, heard: '\0'.repeat(8) })
      expect(readFileSync(path.join(home, 'in/note'), 'utf8')).toBe('hello')
      expect(readdirSync(path.join(home, 'in/deep'))).toEqual(['empty'])
    },
  )

  test.each(['../evil', '/tmp/evil', '..', '.', 'a/b'])('cannot call a file %j', async (name) => {
    for (const line of [`C0644 1 ${name}\nx\0`, `D0755 0 ${name}\nE\n`]) {
      const { status, heard } = await talk('scp -r -t in', line)
      expect([status, heard]).toEqual([1, '\0\x02scp: protocol error\n'])
    }
    expect(readdirSync(home)).toEqual(['in'])
    expect(readdirSync(path.join(home, 'in'))).toEqual([])
  })

  test.each([
    'nonsense\n',
    'C9999 1 x\n',
    'C0644 -1 x\n',
    'E\n',
    'D0755 0 x\n',
    `C0644 1 ${'x'.repeat(20_000)}`,
  ])('and says %j is let go', async (said) => {
    expect((await talk('scp -t in', said, 10_000)).status).toBe(1)
    expect(readdirSync(path.join(home, 'in'))).toEqual([])
  })

  test('and stops in the middle has failed', async () => {
    expect((await talk('scp -t in', 'C0644 100 half\nonly this')).status).toBe(1)
    expect(open).toBe(0)
  })
})

test.each([
  ['scp -t x', { receives: true, recursive: false, times: false, folder: false, words: 'x' }],
  ['scp -r -p -d -t -- -x', { receives: true, recursive: true, times: true, folder: true, words: '-x' }],
  ["scp -v -rf 'a b' c", { receives: false, recursive: true, times: false, folder: false, words: "'a b' c" }],
])('%s is a command of scp’s', (command, wish) => expect(readScp(command)).toEqual(wish))

test.each(['scp', 'scp a b', 'scp -r a', 'scp -t', 'scp -t -f x', 'xscp -t x', 'echo scp -t x', 'scp; id'])(
  '%s is not',
  (command) => expect(readScp(command)).toBeUndefined(),
)
