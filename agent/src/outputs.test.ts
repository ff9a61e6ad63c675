// Outputs of real programs on pipes and terminals, which are all read into the same memory.
import { spawn } from 'node:child_process'
import { createHash, randomBytes, randomUUID } from 'node:crypto'
import { once } from 'node:events'
import { mkdtempSync, readFileSync, rmSync, writeFileSync } from 'node:fs'
import os from 'node:os'
import path from 'node:path'
import { setTimeout as sleep } from 'node:timers/promises'
import { afterAll, expect, test } from 'vitest'
import { atRest } from '../../tests/harness/eventually.ts'
import { Output, passOutput, type OutputReader } from './outputs.ts'
import { startOnPipes } from './piped.ts'
import type { RunningProgram } from './program.ts'
import { startOnPty } from './pty.ts'
import { ownAccount } from './users.ts'

const env = { PATH: process.env.PATH ?? '', HOME: '/nonexistent' }
const mib = 1024 * 1024

async function onPipes(command: string): Promise<RunningProgram> {
  const program = await startOnPipes({ file: '/bin/sh', args: ['-c', command] }, env, ownAccount())
  program.endInput()
  return program
}

async function onTerminal(command: string): Promise<RunningProgram> {
  const opening = 'exec 0<>"$SSH_TTY" 1>&0 2>&0; stty raw;'
  return startOnPty({ file: '/bin/sh', args: ['-c', `${opening} ${command}`] }, env, ownAccount(), {
    terminal: 'xterm',
    modes: new Map(),
    columns: 80,
    rows: 24,
    width: 0,
    height: 0,
  })
}

/** As `startOnPipes` without node:ffi: Node's own sockets, which read into memory of their own. */
async function onSockets(command: string): Promise<Outputs> {
  const child = spawn('/bin/sh', ['-c', command], { env, stdio: ['ignore', 'pipe', 'ignore'] })
  return { stdout: new Output(() => child.stdout), ended: once(child, 'exit') }
}

const folder = mkdtempSync(path.join(os.tmpdir(), 'hawser-outputs-'))
afterAll(() => rmSync(folder, { recursive: true, force: true }))

/** A command that prints random bytes, and their number. */
function random(bytes: number): { readonly command: string; readonly all: Passed } {
  const file = path.join(folder, randomUUID())
  const content = randomBytes(bytes)
  writeFileSync(file, content)
  return { command: `cat ${file}`, all: { bytes, hash: createHash('sha256').update(content).digest('hex') } }
}

interface Outputs {
  readonly stdout: Output
  readonly ended: Promise<unknown>
}

interface Passed {
  readonly bytes: number
  readonly hash: string
}

/**
 * The reader takes a part of each piece at once, none unless stated, and calls `read` before it looks at the
 * rest.
 */
async function passed(
  program: Outputs,
  read: () => Promise<unknown> = () => Promise.resolve(),
  now = 0,
): Promise<Passed> {
  const hash = createHash('sha256')
  let bytes = 0
  const look = (piece: Buffer): void => {
    hash.update(piece)
    bytes += piece.length
  }
  await passOutput(program.stdout, program.ended, {
    takeNow(piece) {
      const taken = Math.floor(piece.length * now)
      look(piece.subarray(0, taken))
      return taken
    },
    async take(piece) {
      await read()
      look(piece)
    },
  })
  return { bytes, hash: hash.digest('hex') }
}

test.each([
  ['pipes', onPipes, 8 * mib],
  ['a terminal', onTerminal, mib],
  ['sockets', onSockets, 8 * mib],
])('programs at once on %s: no byte of one comes to another', async (_, start, size) => {
  const [one, other, third, last] = [random(size), random(size), random(size), random(size)]
  // Readers are not equally slow, and take different parts at once: pieces of one wait while others are read.
  const turn = (): Promise<void> => new Promise((resolve) => void setImmediate(resolve))
  const all = await Promise.all([
    start(one.command).then((program) => passed(program)),
    start(other.command).then((program) => passed(program, turn)),
    start(third.command).then((program) => passed(program, turn, 0.6)),
    start(last.command).then((program) => passed(program, turn, 1)),
  ])
  expect(all).toEqual([one.all, other.all, third.all, last.all])
})

test('a program waits for a reader that does not read, and the reader gets everything then', async () => {
  const { command, all } = random(4 * mib)
  const program = await onPipes(`exec ${command}`)
  const reading = Promise.withResolvers<void>()
  let asked = 0
  const passing = passed(program, () => {
    asked += 1
    return reading.promise
  })
  await atRest(() => asked, 200, 1)
  // Two reads wait for the reader, and the pipe holds a third.
  expect(asked).toBe(2)
  expect(Number(/^wchar: (\d+)$/m.exec(readFileSync(`/proc/${program.pid}/io`, 'latin1'))?.[1])).toBeLessThan(
    mib,
  )
  reading.resolve()
  expect(await passing).toEqual(all)
})

test.each([
  ['pipes', onPipes],
  ['a terminal', onTerminal],
])('a program on %s that ended before anybody read loses nothing', async (_, start) => {
  const program = await start('head -c 3000 /dev/zero; exit 3')
  await program.ended
  await sleep(10)
  expect((await passed(program)).bytes).toBe(3000)
})

test('what lies in the pipe at the end of the program reaches a reader that takes its time', async () => {
  const program = await onPipes('head -c 60000 /dev/zero')
  const late = passed(program, () => program.ended.then(() => sleep(50)))
  expect((await late).bytes).toBe(60_000)
})

test('a process that is left behind and writes on is read for as much as a pipe can hold', async () => {
  const program = await onPipes('yes & exit 0')
  const { bytes } = await passed(program, () => program.ended)
  expect(bytes).toBeGreaterThanOrEqual(mib)
  expect(bytes).toBeLessThan(2 * mib)
})

const gone = new Error('gone')

test.each<[string, OutputReader]>([
  [
    'at once',
    {
      takeNow() {
        throw gone
      },
      take: () => Promise.resolve(),
    },
  ],
  ['later', { takeNow: () => 0, take: () => Promise.reject(gone) }],
])(
  'a reader that is gone, which is known %s, closes the output, and the program learns it',
  async (_, reader) => {
    const program = await onPipes('exec yes')
    const passing = passOutput(program.stdout, program.ended, reader)
    await expect(passing).rejects.toThrow('gone')
    expect(await program.ended).toMatchObject({ type: 'exit-signal', signal: 'PIPE' })
  },
)
