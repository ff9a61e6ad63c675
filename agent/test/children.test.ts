// Programs and what they get from the agent that starts them: the user's credentials, by setpriv and by Node alike,
// and no descriptor of ours.
import { openSync, closeSync, readdirSync } from 'node:fs'
import { describe, expect, test } from 'vitest'
import { hideFromChildren, start } from '../src/children.ts'
import type { Output } from '../src/outputs.ts'
import { startOnPipes } from '../src/piped.ts'
import { commandAs, parseCredentials, formatCredentials } from '../src/privileges.ts'
import { ownAccount } from '../src/users.ts'
import { isRoot } from './device.ts'
import { onlyAsRoot } from './modes.ts'

const env = { PATH: '/usr/bin:/bin' }
const sh = (command: string) => ({ file: '/bin/sh', args: ['-c', command] })

async function outputOf(command: { file: string; args: readonly string[] }): Promise<[string, unknown]> {
  const program = await startOnPipes(command, env, ownAccount())
  program.endInput()
  const text: string[] = []
  const read = (output: Output | undefined, kept: string[]): Promise<void> =>
    new Promise((resolve) => output?.read((bytes) => kept.push(bytes.toString()) > 0, resolve))
  await Promise.all([read(program.stdout, text), read(program.stderr, [])])
  return [text.join(''), await program.ended]
}

test('nothing is left open by programs that have ended', async () => {
  await outputOf(sh('true'))
  const before = readdirSync('/proc/self/fd').length
  for (let time = 0; time < 20; time += 1) await outputOf(sh('echo x'))
  await new Promise((resolve) => setImmediate(resolve))
  expect(readdirSync('/proc/self/fd').length).toBeLessThanOrEqual(before)
})

test('a program that does not exist cannot be started, and nothing is left open', async () => {
  await expect(
    start({ file: '/no/such/program', args: [] }, env, undefined, () => ['ignore', 'ignore', 'ignore']),
  ).rejects.toThrow('The program could not be started.')
  await expect(startOnPipes({ file: '/bin/sh', args: ['-c', 'a\0b'] }, env, undefined)).rejects.toThrow(
    /null bytes/,
  )
})

test('a descriptor that is ours alone is nothing to children', async () => {
  const fd = openSync('/etc/passwd', 'r')
  const forget = hideFromChildren(fd)
  try {
    // Node would not let it be inherited; that the place is taken shows that nothing else could be in it.
    expect((await outputOf(sh(`readlink /proc/self/fd/${fd}`)))[0]).toBe('/dev/null\n')
  } finally {
    forget()
    closeSync(fd)
  }
  expect((await outputOf(sh(`readlink /proc/self/fd/${fd}`)))[0]).toBe('')
})

test('credentials survive being arguments, and missing ones are not root’s', () => {
  const credentials = { uid: 1000, gid: 1001, groups: [1001, 20] }
  expect(parseCredentials(formatCredentials(credentials))).toEqual(credentials)
  for (const wrong of [[], ['', '', ''], ['1000'], ['1000', 'x', ''], ['', '1000', '']])
    expect(() => parseCredentials(wrong)).toThrow(TypeError)
})

describe.runIf(isRoot)(`dropping privileges (${onlyAsRoot})`, () => {
  const credentials = { uid: 4711, gid: 4712, groups: [4712, 4713, 4714] }

  test.each(['setpriv', 'node'] as const)('by %s nothing is left of root', async (way) => {
    const command = await commandAs(
      credentials,
      sh('cat /proc/self/status; kill -0 1 || echo no; exit 9'),
      way,
    )
    expect(command.file).toMatch(way === 'node' ? /node/ : /setpriv$/)
    const [text, exit] = await outputOf(command)
    const field = (name: string): string => new RegExp(`^${name}:\\s+(.*)$`, 'm').exec(text)![1]!.trim()
    expect([field('Uid'), field('Gid'), field('Groups')]).toEqual([
      '4711\t4711\t4711\t4711',
      '4712\t4712\t4712\t4712',
      '4712 4713 4714',
    ])
    expect([field('CapEff'), field('CapPrm'), field('SigIgn'), field('SigBlk')]).toEqual(
      Array.from({ length: 4 }, () => '0000000000000000'),
    )
    expect(text).toMatch(/^no$/m)
    expect(exit).toEqual({ type: 'exit-status', status: 9 })
  })

  test('by node a program is killed by a closed pipe, as everywhere', async () => {
    const command = await commandAs(credentials, sh('yes | head -1; echo $?'), 'node')
    expect((await outputOf(command))[0]).toBe('y\n0\n')
    const [, exit] = await outputOf(await commandAs(credentials, sh('kill -PIPE $$'), 'node'))
    expect(exit).toEqual({ type: 'exit-signal', signal: 'PIPE', coreDumped: false, message: '' })
  })
})
