// The input of a real program on pipes: what the pipe takes at once is not waited for, the rest is.
import { createHash, randomBytes } from 'node:crypto'
import { expect, test } from 'vitest'
import { passOutput } from './outputs.ts'
import { startOnPipes } from './piped.ts'
import type { RunningProgram } from './program.ts'
import { ownAccount } from './users.ts'

const piece_bytes = 32 * 1024

async function started(command: string): Promise<RunningProgram> {
  const env = { PATH: process.env.PATH ?? '' }
  return startOnPipes({ file: '/bin/sh', args: ['-c', command] }, env, ownAccount())
}

/** Writes until a piece has to wait. */
function fill(program: RunningProgram, bytes: Buffer): { atOnce: number; waiting: Promise<boolean> } {
  for (let at = 0; at < bytes.length; at += piece_bytes) {
    const taken = program.write(bytes.subarray(at, at + piece_bytes))
    if (typeof taken !== 'boolean') return { atOnce: at / piece_bytes, waiting: taken }
    expect(taken).toBe(true)
  }
  return expect.fail('the program has taken everything')
}

test('input waits for a program that does not read, and comes whole', async () => {
  const program = await started('exec sha256sum')
  process.kill(program.pid, 'SIGSTOP')
  const bytes = randomBytes(4 * 1024 * 1024)
  const { atOnce, waiting } = fill(program, bytes)
  expect(atOnce).toBeGreaterThan(0)
  process.kill(program.pid, 'SIGCONT')
  expect(await waiting).toBe(true)
  for (let at = (atOnce + 1) * piece_bytes; at < bytes.length; at += piece_bytes)
    expect(await program.write(bytes.subarray(at, at + piece_bytes))).toBe(true)
  program.endInput()
  let printed = ''
  await passOutput(program.stdout, program.ended, {
    takeNow: () => 0,
    take: async (piece) => void (printed += piece.toString()),
  })
  expect(printed).toContain(createHash('sha256').update(bytes).digest('hex'))
})

test('input that waits for a program that dies is given up, and so is all after it', async () => {
  const program = await started('exec sleep 60')
  const { waiting } = fill(program, Buffer.alloc(1024 * 1024))
  program.signal('KILL')
  expect(await waiting).toBe(false)
  expect(await program.write(Buffer.from('more'))).toBe(false)
})
