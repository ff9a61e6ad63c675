// What can be said about our pages without following them: every block of commands is one that some test
// runs, or is on the list of those that cannot be; links lead somewhere; commands, settings and sentences
// that a page names are there.
import { existsSync, globSync, readFileSync } from 'node:fs'
import path from 'node:path'
import { describe, expect, test } from 'vitest'
import { detachVariable, personVariable } from '@hawser/contract/tunnel'
import { exitCodes } from '../../cli/src/errors.ts'
import { aliases } from '../../cli/src/help.ts'
import { allCommands } from '../../cli/src/main.ts'
import { commands as adminCommands } from '../../server/src/commands/admin.ts'
import { settings } from '../../server/src/config.ts'
import { blocksOf, isCommand, root } from './blocks.ts'
import { followedElsewhere, notRun } from './not-run.ts'

const guides = globSync('docs/guides/*.md', { cwd: root }).toSorted()
const pages = ['README.md', 'CONTRIBUTING.md', ...guides]
const prose = [
  ...pages,
  'SECURITY.md',
  'ARCHITECTURE.md',
  'CHANGELOG.md',
  'docs/comparison.md',
  'docs/glossary.md',
  ...globSync('docs/flows/*.md', { cwd: root }),
]
const textOf = (page: string): string => readFileSync(path.join(root, page), 'utf8')
/** Without its blocks. */
const proseOf = (page: string): string => textOf(page).replaceAll(/^\s*```[^]*?^\s*```$/gm, '')

describe('blocks', () => {
  test('what is not run is on the list, with its reason', () => {
    const found = pages.flatMap(blocksOf).filter(({ how }) => how === 'not-run')
    const lines = found.map(({ page, text, detail }) => `${page}: ${text.split('\n')[0]} (${detail})`)
    expect(lines.toSorted()).toEqual(
      notRun.map(([page, line, reason]) => `${page}: ${line} (${reason})`).toSorted(),
    )
  })

  test('pages whose blocks are commands are ones that a test follows', () => {
    const followed = new Set(['README.md', ...guides])
    const others = prose.filter(
      (page) =>
        !followed.has(page) && blocksOf(page).some((block) => isCommand(block) && block.how !== 'not-run'),
    )
    expect(others).toEqual([])
  })

  test.each(Object.entries(followedElsewhere))('%s is followed by %s', (page, test) => {
    expect(textOf(test)).toContain(`docs/guides/${page}`)
  })

  test('no command hides in a drawing', () => {
    const drawings = prose.flatMap(blocksOf).filter((block) => block.language === 'text')
    const hidden = drawings.filter(({ text }) =>
      /^(\$ |(sudo|npm|ssh|scp|curl|hawser|docker|systemctl|git) )/m.test(text),
    )
    expect(hidden.map(({ page, line }) => `${page}:${line}`)).toEqual([])
  })
})

test('every promise of SECURITY.md names its test, and every attack has its promise', () => {
  const [, promises = ''] = textOf('SECURITY.md').split('## What is promised')
  const rows = promises.split('\n').filter((line) => line.startsWith('| ') && !line.startsWith('| nobody'))
  const named = rows.flatMap((row) => [...row.matchAll(/`([a-z0-9-]+)`/g)].map(([, name]) => name))
  const attacks = globSync('tests/attacks/*.test.ts', { cwd: root }).map((file) =>
    path.basename(file).replace(/(\.long)?\.test\.ts$/, ''),
  )
  // These hold what others rely on: that nothing is used or shown that is wrong.
  const foundations = ['admin-founds-nothing', 'damaged-recordings', 'native-cipher-trial', 'unknown-methods']
  expect(rows.every((row) => row.includes('`'))).toBe(true)
  expect(new Set([...named, ...foundations])).toEqual(new Set(attacks))
})

describe('what pages name', () => {
  /** As GitHub makes them of headings. */
  const anchorsOf = (page: string): string[] =>
    [...textOf(page).matchAll(/^#+ (.*)$/gm)].map(([, heading]) =>
      heading!
        .toLowerCase()
        .replaceAll(/[^\p{L}\p{N} _-]/gu, '')
        .replaceAll(' ', '-'),
    )

  const decisions = globSync('docs/decisions/*.md', { cwd: root }).toSorted()
  test.each([...prose, ...decisions])('links of %s lead somewhere', (page) => {
    const broken = [...proseOf(page).matchAll(/\]\(([^)\s]+)\)/g)].flatMap(([, link]) => {
      if (/^(https?|mailto):/.test(link!)) return []
      const [file = '', anchor] = link!.split('#')
      const target = file === '' ? page : path.join(path.dirname(page), file)
      if (!existsSync(path.join(root, target))) return [link]
      return anchor !== undefined && !anchorsOf(target).includes(anchor) ? [link] : []
    })
    expect(broken).toEqual([])
  })

  test('clients that are called tested have a test, and every client with a test is in the table', () => {
    const [, section = ''] = textOf('docs/guides/connecting.md').split('## Which clients')
    const rows = [...section.matchAll(/^\| (?!client |---)(.*) \|$/gm)].map(([, row]) => row!.split(' | '))
    const named = rows.flatMap(([client, , , tests = '']) =>
      [...tests.matchAll(/`([^`]+)`/g)].map(([, file]) => ({ client, file: file! })),
    )
    expect(rows.filter(([client]) => !named.some((one) => one.client === client))).toEqual([])
    expect(named.filter(({ file }) => !existsSync(path.join(root, file)))).toEqual([])
    const foreign = globSync(
      'tests/clients/{ansible,curl,dropbear,editors,git,mosh,old-clients,putty,rsync}-*.test.ts',
      { cwd: root },
    )
    expect(foreign.filter((file) => !named.some((one) => one.file === file))).toEqual([])
    expect(prose.filter((page) => /any SSH client works/i.test(textOf(page)))).toEqual([])
  })

  test('every guide is in the index', () => {
    const index = textOf('docs/guides/README.md')
    for (const guide of guides)
      if (!guide.endsWith('README.md')) expect(index).toContain(`(${path.basename(guide)})`)
  })

  const ofServer = new Set([
    'serve',
    'admin',
    'recording verify',
    'admin config print',
    'admin backup',
    'admin restore',
    'admin migrate',
    'import shellhub',
  ])
  for (const { words } of adminCommands) ofServer.add(`admin ${words}`)
  const ofPeople = new Set(allCommands().flatMap(({ words }) => [words.join(' '), words[0]!]))

  test('commands are there', () => {
    const named = prose.flatMap((page) =>
      [...proseOf(page).matchAll(/`hawser ([a-z][^`]*)`/g)].map(([, line]) => ({
        page,
        line: line!.replaceAll('\n', ' '),
      })),
    )
    expect(named.length).toBeGreaterThan(20)
    const missing = named.filter(({ line }) => {
      const words = line.split(' ').filter((word) => /^[a-z][a-z-]*$/.test(word))
      const first = aliases[words[0]!] ?? words[0]!
      if (first === 'help') return false
      const server = [words.slice(0, 4), words.slice(0, 3), words.slice(0, 2), words.slice(0, 1)]
      if (server.some((some) => ofServer.has(some.join(' ')))) return false
      return !(ofPeople.has(`${first} ${words[1] ?? ''}`.trim()) || (ofPeople.has(first) && isLeaf(first)))
    })
    expect(missing).toEqual([])
  })

  /** It takes arguments, not verbs. */
  const isLeaf = (word: string): boolean =>
    allCommands().some(({ words }) => words.length === 1 && words[0] === word)

  test('settings are there', () => {
    const agent =
      readFileSync(path.join(root, 'agent/src/config.ts'), 'utf8') +
      readFileSync(path.join(root, 'agent/src/connector-config.ts'), 'utf8')
    const ofAgent = [...agent.matchAll(/find\('([A-Z_]+)'\)/g)].map(([, name]) => `HAWSER_${name}`)
    const known = new Set([
      ...Object.keys(settings),
      ...ofAgent,
      'HAWSER_SERVER',
      'HAWSER_API_KEY',
      // Of `npm run build` and `npm run package`.
      'HAWSER_AGENT_NODE',
      'HAWSER_NODE_DIST',
      // Of the agent, where an empty value has a meaning of its own.
      'HAWSER_FEATURES',
      // What programs on a device get.
      personVariable,
      // What the gateway tells an agent.
      detachVariable,
      'HAWSER_',
    ])
    const named = prose.flatMap((page) =>
      [...textOf(page).matchAll(/HAWSER_[A-Z0-9_]*/g)].map(([name]) => name),
    )
    expect([...new Set(named)].filter((name) => !known.has(name))).toEqual([])
  })

  test('the guide of the command line has every exit code, in the words of the command', () => {
    const rows = [...textOf('docs/guides/command-line.md').matchAll(/^\| (\d+) \| (.*) \|$/gm)].map(
      ([, code, meaning]) => [code, meaning],
    )
    expect(rows).toEqual(Object.entries(exitCodes))
  })

  test('sentences that people look up are said by something', () => {
    const files = globSync('{server,agent,cli,console,contract,ssh}/src/**/*.{ts,tsx}', { cwd: root }).filter(
      (file) => !file.includes('.test.'),
    )
    const sources = files.map(textOf).join('\n')
    // OpenSSH says these, and other programs, and the network.
    const others = [
      'X11 forwarding request failed on channel 0',
      'Nothing received from server on UDP port …',
      "Error resolving 'harbour.gantry@…",
      'Permission denied (password,publickey,keyboard-interactive)',
      'Connection refused',
      'REMOTE HOST IDENTIFICATION HAS CHANGED!',
    ]
    const sentences = [...textOf('docs/guides/troubleshooting.md').matchAll(/^\| `([^`]+)` \|/gm)].map(
      ([, sentence]) => sentence!,
    )
    expect(sentences.length).toBeGreaterThan(30)
    const unsaid = sentences.filter(
      (one) => !others.includes(one) && !one.split('…').every((part) => sources.includes(part.trim())),
    )
    expect(unsaid).toEqual([])
  })
})
