// docs/guides/command-line.md as a newcomer follows it: every block is run from the top to the end, with the real OpenSSH
// programs and a real device, and must work. Only names are put in place: the server's address, the user on the device.
import { readFileSync, writeFileSync } from 'node:fs'
import path from 'node:path'
import { afterAll, beforeAll, describe, expect, test } from 'vitest'
import { sample } from '@hawser/contract/examples'
import { exitCodes } from '../../cli/src/complaint.ts'
import { openDesk, type Desk } from '../../cli/test/program.ts'
import { freePort, run } from '../../ssh/test/programs.ts'
import { sharedWay } from './way.ts'

const guide = readFileSync(path.join(import.meta.dirname, '../../docs/guides/command-line.md'), 'utf8')
const blocks = [...guide.matchAll(/^```(sh|console)\n([^]*?)^```$/gm)].map(([, kind, text], i) => ({ i, kind, text: text! }))

const port = await freePort()
const way = sharedWay({ HAWSER_URL: '', HAWSER_SSH: `127.0.0.1:${port}`, HAWSER_SSH_PUBLIC_PORT: String(port) })
let desk: Desk

beforeAll(async () => {
  desk = openDesk()
  // The programs as they are, without this machine's own configuration, and with a key that the namespace knows.
  const quiet = ['StrictHostKeyChecking=no', 'UserKnownHostsFile=/dev/null', 'LogLevel=ERROR', `IdentityFile=${way.where.file('olga')}`]
  const options = quiet.map((one) => `-o ${one}`).join(' ')
  const script = (name: string, text: string) => writeFileSync(path.join(desk.bin, name), `#!/bin/sh\n${text}\n`, { mode: 0o755 })
  script('ssh', `f=none; test -f "$HOME/.ssh/config" && f="$HOME/.ssh/config"; exec /usr/bin/ssh -F "$f" ${options} "$@"`)
  script('scp', `exec /usr/bin/scp -S '${desk.bin}/ssh' "$@"`)
  await way.owner.devices.addTag({ params: { uid: way.agent.uid }, body: { tag: 'lifting' } })
})
afterAll(() => desk[Symbol.dispose]())

const here = (text: string) =>
  text
    .replaceAll('https://hawser.example.com', way.service.url)
    .replaceAll('<key>', sample.apiKey)
    .replaceAll('root@', `${way.user.name}@`)
    .replaceAll('--user root', `--user ${way.user.name}`)

const env = () => ({
  HOME: desk.folder,
  XDG_CONFIG_HOME: path.join(desk.folder, 'config'),
  HAWSER_SERVER: '',
  PATH: `${desk.bin}:${process.env['PATH']}`,
})

/** A talk: `$ ` is a command, a line with a colon a question and what is answered, anything else is what it says. */
async function talk(text: string): Promise<void> {
  const [command = '', ...lines] = text.trimEnd().split('\n')
  using terminal = desk.shell(`cd ~ && ${here(command.slice(2))}`)
  for (const line of lines) {
    const [, question, answer] = /^([^:]+:) ?(\w*)$/.exec(line) ?? []
    if (question) {
      await terminal.until(new RegExp(question))
      terminal.type(`${answer || sample.owner.password}\r`)
    } else await terminal.until(new RegExp(here(line)))
  }
  expect(await terminal.ended).toBe(0)
}

describe('the guide', () => {
  test.each(blocks)('works, block $i: $text', async ({ kind, text }) => {
    if (kind === 'console') return talk(text)
    if (text.includes('# Ctrl-C')) {
      using terminal = desk.shell(`cd ~ && ${here(text)}`)
      await terminal.until(/Ctrl-C ends it/)
      terminal.type('\u0003')
      await terminal.ended
      return undefined
    }
    const { status, stdout, stderr } = await run('bash', ['--norc', '-ec', `cd ~\n${here(text)}`], undefined, env())
    expect(status, `${stdout.toString()}\n${stderr}`).toBe(0)
  })

  test('has every exit code, in the words of the command', () => {
    const rows = [...guide.matchAll(/^\| (\d+) \| (.*) \|$/gm)].map(([, code, meaning]) => [code, meaning])
    expect(rows).toEqual(Object.entries(exitCodes))
  })

  test('names no command that there is not', async () => {
    const named = [...guide.matchAll(/`hawser ([a-z][a-z-]*(?: [a-z][a-z-]*)?)[^`]*`/g)].map(([, words]) => words!.split(' '))
    expect(named.length).toBeGreaterThan(3)
    for (const words of named) {
      const said = await desk.hawser(['help', ...words])
      expect([words, said.code]).toEqual([words, 0])
    }
  })
})
