// Somebody who reads a page and does what it says: each block of commands in turn, in a home of their own,
// with the real programs of this machine. Only names are put in place (the server's address, ports, the user
// on the device); what a page shows must then be shown. See blocks.ts for what the words behind a fence mean.
import { once } from 'node:events'
import { chmodSync, mkdirSync, writeFileSync } from 'node:fs'
import net from 'node:net'
import path from 'node:path'
import { expect } from 'vitest'
import { openDesk, type Desk } from '../../cli/test/program.ts'
import { run } from '../../ssh/test/programs.ts'
import { openTerminal, type Terminal } from '../clients/terminal.ts'
import { eventually } from '../harness/eventually.ts'
import type { Block } from './blocks.ts'

export interface Scene {
  /** Puts the names of the test in the place of those on the page. */
  here(text: string): string
  /** What is typed where the page shows a question without an answer. Undefined: it is no question. */
  answer(question: string): string | undefined
  readonly env?: Readonly<Record<string, string>>
  /** Where commands are run; the home unless said. */
  readonly folder?: string
}

export interface Reader extends AsyncDisposable {
  readonly desk: Desk
  /** `meanwhile` is done while a program that stays is working, with what it has shown. */
  follow(block: Block, meanwhile?: (shown: string) => Promise<void>): Promise<void>
  /** All that was said so far. */
  said(): string
}

const patience_ms = 60_000

export function openReader(scene: Scene): Reader {
  const desk = openDesk()
  const file = (name: string): string => path.join(desk.folder, name)
  furnish(desk)
  const env = {
    HOME: desk.folder,
    XDG_CONFIG_HOME: file('config'),
    HAWSER_SERVER: '',
    HAWSER_API_KEY: '',
    ...scene.env,
    PATH: `${desk.bin}:${process.env['PATH']}`,
  }
  const folder = scene.folder ?? desk.folder
  const running: Terminal[] = []
  let said = ''

  const open = (command: string): Terminal =>
    openTerminal('/bin/bash', ['--norc', '-c', `cd '${folder}' && ${command}`], {
      columns: 200,
      rows: 50,
      env,
    })

  async function plain({ text, how }: Block): Promise<void> {
    const { status, stdout, stderr } = await run(
      'bash',
      ['--norc', '-ec', `cd '${folder}'\n${scene.here(text)}`],
      undefined,
      env,
    )
    said += stdout.toString() + stderr
    const shown = `${stdout.toString()}\n${stderr}`
    if (how === 'fails') expect(status, shown).not.toBe(0)
    else expect(status, shown).toBe(0)
  }

  async function stays(
    { text, how, detail }: Block,
    meanwhile?: (shown: string) => Promise<void>,
  ): Promise<void> {
    const terminal = open(scene.here(text))
    running.push(terminal)
    const port = /listens on (\d+)/.exec(scene.here(detail))?.[1]
    const works = async (): Promise<void> =>
      port === undefined
        ? expect(readable(terminal.shown())).toContain(scene.here(detail))
        : knock(Number(port))
    await eventually(works, patience_ms)
    said += readable(terminal.shown())
    await meanwhile?.(readable(terminal.shown()))
    if (how === 'stays on') return
    await stop(terminal)
  }

  async function stop(terminal: Terminal): Promise<void> {
    terminal.type('\u0003')
    await terminal.ended
    running.splice(running.indexOf(terminal), 1)
  }

  /** One command of a talk, with what is shown below it. */
  async function talk(command: string, lines: readonly string[], fails: boolean): Promise<void> {
    using terminal = open(scene.here(command))
    let read = 0
    for (const line of lines) {
      const [, question = '', given = ''] = /^(.*[:?]) ?(\S*)$/.exec(scene.here(line)) ?? []
      const answer = scene.answer(question)
      const wanted = patternOf(answer === undefined ? scene.here(line) : question)
      read = await eventually(() => {
        const found = wanted.exec(readable(terminal.shown()).slice(read))
        expect(found, `${line}\n---- is not in ----\n${readable(terminal.shown())}`).not.toBe(null)
        return read + found!.index + found![0].length
      }, patience_ms)
      if (answer !== undefined) terminal.type(`${given === '' ? answer : given}\r`)
    }
    const status = await terminal.ended
    said += readable(terminal.shown())
    if (fails) expect(status, terminal.shown()).not.toBe(0)
    else expect(status, terminal.shown()).toBe(0)
  }

  return {
    desk,
    said: () => said,
    async follow(block, meanwhile) {
      if (block.how === 'not-run') throw new Error('it is not run')
      if (block.how.startsWith('stays')) return stays(block, meanwhile)
      if (block.language === 'sh') return plain(block)
      for (const part of block.text.trimEnd().split(/^(?=\$ )/m)) {
        const [command = '', ...lines] = part.trimEnd().split('\n')
        await talk(command.slice(2), lines, block.how === 'fails')
      }
      return undefined
    },
    async [Symbol.asyncDispose]() {
      for (const terminal of running.toReversed()) await stop(terminal)
      desk[Symbol.dispose]()
    },
  }
}

/** OpenSSH as a person has it, but with the reader's home: it would look the home up in the list of users. */
function furnish({ folder, bin }: Desk): void {
  mkdirSync(path.join(folder, '.ssh'), { mode: 0o700 })
  const config = path.join(folder, 'ssh_config')
  const lines = [
    `Include ${path.join(folder, '.ssh/config')}`,
    'Host *',
    '  StrictHostKeyChecking accept-new',
    '  NumberOfPasswordPrompts 1',
    `  UserKnownHostsFile ${path.join(folder, '.ssh/known_hosts')}`,
    `  IdentityFile ${path.join(folder, '.ssh/id_ed25519')}`,
  ]
  writeFileSync(config, `${lines.join('\n')}\n`)
  const script = (name: string, text: string): void => {
    writeFileSync(path.join(bin, name), `#!/bin/sh\n${text}\n`)
    chmodSync(path.join(bin, name), 0o755)
  }
  script('ssh', `exec /usr/bin/ssh -F '${config}' "$@"`)
  for (const program of ['scp', 'sftp']) script(program, `exec /usr/bin/${program} -S '${bin}/ssh' "$@"`)
  // Where the tests do not run as root, what asks for root gets the reader's own rights.
  if (process.getuid?.() !== 0) script('sudo', 'exec "$@"')
}

/** What was shown, without colours and with the ends of lines that a page has. */
const readable = (shown: string): string =>
  shown
    // oxlint-disable-next-line no-control-regex -- that is what they are
    .replaceAll(/\u001b(?:\[[0-9;?]*[a-zA-Z]|\][^\u0007]*\u0007)/g, '')
    .replaceAll('\r', '')

/** A line as it is, with anything in the place of `…`, and blanks for blanks. */
function patternOf(line: string): RegExp {
  const escaped = line.trim().replaceAll(/[.*+?^${}()|[\]\\]/g, String.raw`\$&`)
  return new RegExp(escaped.replaceAll('…', '[^\\n]*?').replaceAll(/\s+/g, String.raw`\s+`))
}

async function knock(port: number): Promise<void> {
  const socket = net.connect(port, '127.0.0.1')
  await once(socket, 'connect')
  socket.destroy()
}
