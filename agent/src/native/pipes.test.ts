import { execFileSync } from 'node:child_process'
import { closeSync, fstatSync, readFileSync } from 'node:fs'
import path from 'node:path'
import { expect, test } from 'vitest'
import { makePipes, type Pipes } from './pipes.ts'

function pipes(): Pipes {
  return makePipes(undefined) ?? expect.fail('this Node makes no pipes')
}
const flagsOf = (fd: number): number =>
  Number.parseInt(/^flags:\s*([0-7]+)/m.exec(readFileSync(`/proc/self/fdinfo/${fd}`, 'utf8'))?.[1] ?? '', 8)
const [nonBlocking, closeOnExec] = [0o4000, 0o2000000]

test('the program’s ends are pipes that wait and that no other child inherits', () => {
  const made = pipes()
  for (const fd of made.program) {
    expect(fstatSync(fd).isFIFO()).toBe(true)
    expect(flagsOf(fd) & (nonBlocking | closeOnExec)).toBe(closeOnExec)
  }
  made.close()
})

test('what is written at one end is read at the other, and the end of it is seen', async () => {
  const made = pipes()
  const { stdin, stdout, stderr } = made.open()
  const [input, output] = made.program
  const script = 'process.stdout.write(require("fs").readFileSync(0))'
  stdin.write('rope')
  stdin.destroy()
  execFileSync(process.execPath, ['-e', script], { stdio: [input, output, 'ignore'] })
  made.close()
  let read = ''
  await new Promise<void>((resolve) =>
    stdout.read((bytes) => {
      read += bytes.toString()
      return true
    }, resolve),
  )
  expect(read).toBe('rope')
  stderr.close()
})

test('closing leaves nothing open', () => {
  const made = pipes()
  made.close()
  for (const fd of made.program) expect(() => closeSync(fd)).toThrow('EBADF')
})

test('a Node without node:ffi makes none', () => {
  const file = path.join(import.meta.dirname, 'pipes.ts')
  const script = `import { makePipes } from ${JSON.stringify(file)}; console.log(makePipes(undefined))`
  const args = ['--no-experimental-ffi', '--no-warnings', '--input-type=module', '-e', script]
  expect(execFileSync(process.execPath, args, { encoding: 'utf8' })).toBe('undefined\n')
})
