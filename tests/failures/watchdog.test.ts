// The watchdog of a node, in a process of its own whose main thread hangs: it ends the process, and says so in the
// log if somebody reads it.
import { spawn } from 'node:child_process'
import { once } from 'node:events'
import path from 'node:path'
import { text } from 'node:stream/consumers'
import { expect, onTestFinished, test } from 'vitest'

function hanging(by: 'loop' | 'log') {
  const child = spawn(process.execPath, [path.join(import.meta.dirname, 'hanging.ts'), by], {
    stdio: ['ignore', 'pipe', 'inherit'],
  })
  onTestFinished(() => void child.kill('SIGKILL'))
  return { child, ended: once(child, 'exit') }
}

test('a main thread that does not answer ends the process, with a line in the log', async () => {
  const { child, ended } = hanging('loop')
  const line: unknown = JSON.parse(await text(child.stdout))
  expect(line).toMatchObject({ level: 'fatal', event: 'node.hung' })
  expect(await ended).toEqual([null, 'SIGKILL'])
})

test('a main thread that hangs because nobody reads the log ends the process all the same', async () => {
  expect(await hanging('log').ended).toEqual([null, 'SIGKILL'])
})
