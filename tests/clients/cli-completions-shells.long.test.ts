// Completions in the shells themselves: what Tab makes of a line in bash, zsh and fish, with names that only
// the server knows, and that a name made to be run as code is not.
import { existsSync } from 'node:fs'
import path from 'node:path'
import { stripVTControlCharacters } from 'node:util'
import { afterAll, beforeAll, describe, expect, test } from 'vitest'
import { sample } from '@hawser/contract/examples'
import { openDesk, type Desk } from '../../cli/test/program.ts'
import { run } from '../../ssh/test/programs.ts'
import { eventually } from '../harness/eventually.ts'
import { startService, type Service } from '../harness/service.ts'
import { buildWorld } from '../harness/world.ts'
import { openTerminal, type Terminal } from './terminal.ts'

let service: Service
let desk: Desk
let env: Record<string, string>
beforeAll(async () => {
  service = await startService()
  const world = await buildWorld(service)
  const owner = service.api({ token: await world.token('owner') })
  await owner.devices.addTag({ params: { uid: sample.device }, body: { tag: '$(touch${IFS}pwned)' } })
  desk = openDesk()
  env = {
    HOME: desk.folder,
    XDG_CONFIG_HOME: path.join(desk.folder, 'config'),
    HAWSER_SERVER: service.url,
    HAWSER_API_KEY: sample.apiKey,
    PATH: `${desk.bin}:${process.env['PATH']}`,
    PS1: 'ready> ',
    TERM: 'dumb',
  }
})
afterAll(async () => {
  desk[Symbol.dispose]()
  await service[Symbol.asyncDispose]()
})

/**
 * Types a beginning and Tab, then puts `echo` before it all, so that the shell itself says what the line
 * became.
 */
async function completed(terminal: Terminal, typed: string, becomes: string): Promise<void> {
  terminal.type(`${typed}\t`)
  // While the shell asks our program, what is typed need not reach its line editor.
  const word = becomes.split(' ').at(-1)!
  await eventually(() =>
    expect(stripVTControlCharacters(terminal.shown()).trimEnd().endsWith(word)).toBe(true),
  )
  terminal.type('\u0001echo \u0005\r')
  await terminal.until(new RegExp(`[\\r\\n]${becomes}\\r\\n`))
}

const lines: readonly (readonly [typed: string, becomes: string])[] = [
  ['hawser devi', 'hawser devices'],
  ['hawser devices acc', 'hawser devices accept'],
  ['hawser devices accept bu', 'hawser devices accept buoy'],
  ['hawser ssh root@cra', 'hawser ssh root@crane-1'],
  ['hawser run uptime --tag pi', 'hawser run uptime --tag pier'],
  ['hawser devices list --stat', 'hawser devices list --status'],
  ['hawser namespaces switch har', 'hawser namespaces switch harbour'],
]

describe('bash', () => {
  test('completes commands, options and names', async () => {
    using terminal = openTerminal('bash', ['--norc', '--noprofile', '-i'], { env, columns: 200 })
    terminal.type('cd ~; source <(hawser completion bash); echo lo"aded"\n')
    await terminal.until(/[\r\n]loaded/)
    for (const [typed, becomes] of lines) await completed(terminal, typed, becomes)
    // Two Tabs show what there is to choose from.
    terminal.type('hawser devices list --tag \t\t')
    await terminal.until(/pier +quay/)
    expect(terminal.shown()).not.toContain('touch')
    expect(existsSync(path.join(desk.folder, 'pwned'))).toBe(false)
  })
})

describe('zsh', () => {
  test('completes commands, options and names', async () => {
    using terminal = openTerminal('zsh', ['-f', '-i'], { env, columns: 200 })
    // With EDITOR=vi in the environment, zsh would have the keys of vi.
    terminal.type(
      'cd ~; bindkey -e; autoload -U compinit; compinit -u -D; source <(hawser completion zsh); echo lo"aded"\n',
    )
    await terminal.until(/[\r\n]loaded/)
    for (const [typed, becomes] of lines) await completed(terminal, typed, becomes)
    expect(existsSync(path.join(desk.folder, 'pwned'))).toBe(false)
  })
})

describe('fish', () => {
  const ask = async (line: string) => {
    const { stdout } = await run(
      'fish',
      ['--no-config', '-c', 'hawser completion fish | source; complete -C "$LINE"'],
      undefined,
      {
        ...env,
        LINE: line,
      },
    )
    return stdout.toString()
  }
  test.each(lines.map(([typed, becomes]) => ({ typed, word: becomes.split(' ').at(-1)! })))(
    '$typed becomes … $word',
    async ({ typed, word }) => {
      expect(await ask(typed)).toMatch(new RegExp(`^${word}\\t`, 'm'))
    },
  )
  test('offers files where a file is wanted, and runs no name', async () => {
    expect(await ask(`hawser keys add ${desk.folder}/bi`)).toContain('bin')
    expect(await ask('hawser devices list --tag ')).toMatch(/^pier\t/m)
    expect(existsSync(path.join(desk.folder, 'pwned'))).toBe(false)
  })
})

describe('without a server', () => {
  test('what is known without one is completed, and nobody is bothered with the rest', async () => {
    using alone = openDesk()
    expect((await alone.hawser(['__complete', 'dev'])).stdout).toMatch(/^devices\t/)
    expect(await alone.hawser(['__complete', 'ssh', ''])).toEqual({ code: 0, stdout: '', stderr: '' })
    expect(await alone.hawser(['completion', 'tcsh'])).toMatchObject({
      code: 2,
      stderr: expect.stringMatching(/one of bash, zsh, fish/) as string,
    })
  })
})
