// The architecture, enforced: every source file of the project is held against tests/architecture/plan.ts.
// The second half tests the checker itself with small sources, an allowed and a forbidden one for each rule,
// because a check that cannot fail guards nothing.
import { globSync, readFileSync } from 'node:fs'
import path from 'node:path'
import { describe, expect, test } from 'vitest'
import { version } from '../contract/src/version.ts'
import { read } from './architecture/imports.ts'
import { violations, type SourceFile } from './architecture/rules.ts'

const root = path.join(import.meta.dirname, '..')

type Packages = Readonly<Record<string, string>>
interface Manifest {
  readonly dependencies?: Packages
  readonly devDependencies?: Packages
  readonly optionalDependencies?: Packages
}

test('every file keeps to the plan of the house', () => {
  const exclude = (name: string) => path.basename(name) === 'node_modules'
  const files = globSync('**/*.{ts,tsx}', { cwd: root, exclude }).map((file) => ({
    path: file.replaceAll(path.sep, '/'),
    text: readFileSync(path.join(root, file), 'utf8'),
  }))
  expect(files.map((file) => file.path)).toContain('contract/src/index.ts')
  const found = violations(files)
  expect(found, found.join('\n')).toEqual([])
})

test('every package of others is on a page of docs/decisions', () => {
  const pages = globSync('docs/decisions/*.md', { cwd: root }).map((file) =>
    readFileSync(path.join(root, file), 'utf8'),
  )
  const named = new Set(
    pages.flatMap((page) => Array.from(page.matchAll(/`([^`\s]+)`/g), ([, name]) => name)),
  )
  const used = globSync('{package.json,*/package.json}', { cwd: root }).flatMap((file) => {
    const read = JSON.parse(readFileSync(path.join(root, file), 'utf8')) as Manifest
    return Object.keys({ ...read.dependencies, ...read.devDependencies, ...read.optionalDependencies })
  })
  const missing = used.filter((name) => !name.startsWith('@hawser/') && !named.has(name))
  expect([...new Set(missing)]).toEqual([])
})

test('every package has the version of the program', () => {
  const manifest = (folder: string) =>
    JSON.parse(readFileSync(path.join(root, folder, 'package.json'), 'utf8')) as {
      version: string
      workspaces?: string[]
      dependencies?: Record<string, string>
    }
  const packages = ['.', ...(manifest('.').workspaces ?? [])]
  expect(packages).toContain('contract')
  for (const folder of packages) {
    const { version: stated, dependencies = {} } = manifest(folder)
    const ours = Object.entries(dependencies).filter(([name]) => name.startsWith('@hawser/'))
    expect([stated, ...ours.map(([, wanted]) => wanted)], folder).toEqual([
      version,
      ...ours.map(() => version),
    ])
  }
})

/** What the checker says about one file with this text, without its name. */
function said(file: string, text: string): string[] {
  return violations([{ path: file, text }]).map((sentence) => sentence.replace(/^\S+ /, ''))
}

describe('between packages', () => {
  test.each([
    ['agent/src/main.ts', '@hawser/contract'],
    ['agent/src/main.ts', '@hawser/ssh'],
    ['cli/src/main.ts', '@hawser/contract/devices'],
    ['agent/src/main.ts', '../../ssh/src/index.ts'],
    ['console/src/main.tsx', '@hawser/contract'],
    ['server/src/main.ts', '@hawser/ssh'],
    ['contract/src/index.ts', './devices.ts'],
    ['hawser.ts', './server/src/main.ts'],
    ['hawser.ts', '@hawser/cli/main'],
  ])('%s may import %s', (file, specifier) => {
    expect(said(file, `import { thing } from '${specifier}'`)).toEqual([])
  })

  test.each([
    [
      'contract/src/index.ts',
      '@hawser/ssh',
      'imports ssh: contract may not, because the contract is a promise',
    ],
    [
      'contract/src/index.ts',
      '../../server/src/domain/devices/devices.ts',
      'imports server: contract may not',
    ],
    ['ssh/src/index.ts', '@hawser/contract', 'imports contract: ssh may not, because ssh is a protocol'],
    [
      'agent/src/main.ts',
      '@hawser/server/main',
      'imports server: agent may not, because the agent is shipped to devices',
    ],
    ['cli/src/main.ts', '@hawser/agent', 'imports agent: cli may not'],
    [
      'console/src/main.ts',
      '@hawser/ssh',
      'imports ssh: console may not, because the console runs in a browser',
    ],
    ['server/src/main.ts', '@hawser/agent', 'imports agent: server may not'],
    [
      'server/src/domain/devices/devices.ts',
      '@hawser/cli/main',
      'imports cli: server/domain/devices may not',
    ],
    ['agent/src/main.ts', '../../tests/harness/postgres.ts', 'what is shipped does not know tests'],
    ['agent/src/main.ts', './main.test.ts', 'what is shipped does not know tests'],
    [
      'server/src/main.ts',
      '../../hawser.ts',
      'what is shipped does not know tests, benches, docs or starters',
    ],
  ])('%s may not import %s', (file, specifier, reason) => {
    // Types are no excuse here: a package that is not shipped along has no types either.
    expect(said(file, `import { thing } from '${specifier}'`)).toEqual([expect.stringContaining(reason)])
    expect(said(file, `import type { Thing } from '${specifier}'`)).toEqual([expect.stringContaining(reason)])
  })
})

describe('between rooms of the server', () => {
  test.each([
    ['server/src/main.ts', './storage/database.ts'],
    ['server/src/commands/admin.ts', '../domain/people/users.ts'],
    ['server/src/commands/admin.ts', '../compose/rooms.ts'],
    ['server/src/compose/rooms.ts', '../config.ts'],
    ['server/src/compose/rooms.ts', '@hawser/ssh'],
    ['server/src/import/people.ts', '../domain/people/users.ts'],
    ['server/src/domain/devices/devices.ts', '../access/filters.ts'],
    ['server/src/domain/devices/devices.ts', '../../kit/clock.ts'],
    ['server/src/bus/nats.ts', '@hawser/contract/devices'],
    ['server/src/kit/log.ts', '@hawser/contract/failures'],
    ['server/src/storage/devices.ts', './dialects/sqlite.ts'],
    ['server/src/storage/dialects/sqlite.ts', '../tables.ts'],
    ['server/src/gateway/login/listen.ts', '@hawser/ssh'],
    ['server/src/gateway/login/listen.ts', '../terminal/held.ts'],
  ])('%s may import %s', (file, specifier) => {
    expect(said(file, `import { thing } from '${specifier}'`)).toEqual([])
  })

  test.each([
    [
      'server/src/domain/devices/devices.ts',
      '../../storage/devices.ts',
      'the domain knows no HTTP, SSH or SQL',
    ],
    ['server/src/domain/devices/devices.ts', '../../bus/bus.ts', 'the domain knows no HTTP, SSH or SQL'],
    [
      'server/src/domain/devices/devices.ts',
      '../../tunnel/registry.ts',
      'the domain knows no HTTP, SSH or SQL',
    ],
    [
      'server/src/domain/devices/devices.ts',
      '../../recording/reader.ts',
      'the domain knows no HTTP, SSH or SQL',
    ],
    ['server/src/domain/people/users.ts', '../../mail/emails.ts', 'the domain knows no HTTP, SSH or SQL'],
    [
      'server/src/domain/billing/billing.ts',
      '../../billing/provider.ts',
      'the domain knows no HTTP, SSH or SQL',
    ],
    [
      'server/src/domain/devices/connectors.ts',
      '../../connectors/engine.ts',
      'the domain knows no HTTP, SSH or SQL',
    ],
    ['server/src/http/serve.ts', '../domain/devices/devices.ts', 'http reads the contract and names no noun'],
    [
      'server/src/http/terminal.ts',
      '../gateway/channels/session.ts',
      'http reads the contract and names no noun',
    ],
    ['server/src/gateway/login/handshake.ts', '../../domain/sessions/sessions.ts', 'the gateway is an edge'],
    ['server/src/gateway/channels/session.ts', '../../tunnel/open.ts', 'the gateway is an edge'],
    ['server/src/gateway/channels/session.ts', '../../recording/tap.ts', 'the gateway is an edge'],
    ['server/src/tunnel/registry.ts', '../bus/bus.ts', 'a tunnel carries bytes'],
  ])('%s may import the types of %s, not its values', (file, specifier, reason) => {
    expect(said(file, `import type { Thing } from '${specifier}'`)).toEqual([])
    expect(said(file, `import { thing } from '${specifier}'`)).toEqual([
      expect.stringMatching(new RegExp(`import type.*${reason}`)),
    ])
  })

  test.each([
    ['server/src/domain/devices/devices.ts', '../../http/serve.ts', 'the domain knows no HTTP, SSH or SQL'],
    [
      'server/src/domain/devices/devices.ts',
      '../../gateway/channels/session.ts',
      'the domain knows no HTTP, SSH or SQL',
    ],
    ['server/src/domain/devices/devices.ts', '@hawser/ssh', 'the domain knows no HTTP, SSH or SQL'],
    [
      'server/src/domain/devices/devices.ts',
      '../../config.ts',
      'a room is handed what it needs; composition is above it',
    ],
    ['server/src/domain/access/filters.ts', '../devices/devices.ts', 'the domain knows no HTTP, SSH or SQL'],
    ['server/src/compose/rooms.ts', '../commands/admin.ts', 'server/commands is above server/compose'],
    ['server/src/storage/devices.ts', '../domain/devices/devices.ts', 'storage keeps what it is given'],
    ['server/src/http/serve.ts', '../storage/devices.ts', 'http reads the contract'],
    ['server/src/http/serve.ts', '../gateway/channels/session.ts', 'http reads the contract'],
    ['server/src/http/serve.ts', '../main.ts', 'composition is above it'],
    ['server/src/gateway/login/listen.ts', '../../storage/devices.ts', 'the gateway is an edge'],
    ['server/src/gateway/terminal/held.ts', '../channels/session.ts', 'its rooms stand above each other'],
    ['server/src/tunnel/open.ts', '../domain/devices/devices.ts', 'a tunnel carries bytes'],
    ['server/src/recording/tap.ts', '../tunnel/open.ts', 'a recording is a tap'],
    ['server/src/bus/local.ts', '../domain/devices/devices.ts', 'the bus carries news'],
    ['server/src/mail/send.ts', '../domain/people/users.ts', 'mail sends the e-mails'],
    ['server/src/billing/provider.ts', '../storage/namespaces.ts', 'billing speaks to the payment provider'],
    [
      'server/src/connectors/engine.ts',
      '../domain/devices/connectors.ts',
      'connectors speak to container engines',
    ],
    ['server/src/kit/log.ts', '../bus/bus.ts', 'the kit has no nouns'],
  ])('%s may not import %s, not even its types', (file, specifier, reason) => {
    expect(said(file, `import { thing } from '${specifier}'`)).toEqual([expect.stringContaining(reason)])
    expect(said(file, `import type { Thing } from '${specifier}'`)).toEqual([expect.stringContaining(reason)])
  })

  test('files that import each other are reported, types included', () => {
    const importing = (name: string): string => `import type { Thing } from './${name}.ts'`
    const files = ['a', 'b', 'c'].map((name, index, names) => ({
      path: `ssh/src/${name}.ts`,
      text: importing(names[(index + 1) % 3] ?? ''),
    }))
    expect(violations(files)).toEqual([
      expect.stringContaining('ssh/src/a.ts → ssh/src/b.ts → ssh/src/c.ts → ssh/src/a.ts'),
    ])
    expect(violations(files.slice(1))).toEqual([])
  })

  test('a room that is not in the plan is reported', () => {
    expect(said('server/src/attic/box.ts', '')).toEqual([
      expect.stringContaining('is in a room that is not in'),
    ])
  })

  test('tests may import anything', () => {
    expect(
      said(
        'server/src/domain/devices.test.ts',
        "import { thing } from '../storage/devices.ts'\nimport pg from 'pg'",
      ),
    ).toEqual([])
    expect(
      said(
        'bench/heartbeats.ts',
        "import { Client } from 'ssh2'\nimport { thing } from '../server/src/main.ts'",
      ),
    ).toEqual([])
  })
})

describe('third-party packages', () => {
  test.each([
    ['server/src/storage/dialects/postgres.ts', 'pg'],
    ['server/src/storage/devices.ts', 'kysely/helpers/sqlite'],
    ['server/src/storage/dialects/sqlite.ts', 'node:sqlite'],
    ['server/src/http/serve.ts', 'fastify'],
    ['server/src/http/serve.ts', '@fastify/static'],
    ['server/src/domain/people/credentials.ts', 'jose'],
    ['server/src/mail/send.ts', 'nodemailer'],
    ['server/src/kit/log.ts', 'pino'],
    ['contract/src/fields.ts', 'typebox/value'],
    ['server/src/domain/devices/devices.ts', 'node:crypto'],
    ['vitest.config.ts', 'vitest/config'],
  ])('%s may import %s', (file, name) => {
    expect(said(file, `import thing from '${name}'`)).toEqual([])
  })

  test.each([
    ['server/src/domain/devices/devices.ts', 'kysely', 'only server/src/storage may'],
    ['server/src/main.ts', 'pg', 'only server/src/storage may'],
    ['agent/src/main.ts', 'node:sqlite', 'only server/src/storage may'],
    ['server/src/gateway/login/listen.ts', 'fastify', 'only server/src/http may'],
    ['server/src/main.ts', '@fastify/helmet', 'imports @fastify/helmet: only server/src/http may'],
    ['cli/src/main.ts', 'typebox', 'only contract may'],
    ['server/src/kit/ids.ts', 'nanoid', 'imports nanoid, which has no place yet'],
    ['hawser.ts', '@some/thing/deep', 'imports @some/thing, which has no place yet'],
    ['contract/src/fields.ts', 'node:crypto', 'contract also runs where there is no Node'],
    ['console/src/main.tsx', 'fs', 'console/src also runs where there is no Node'],
  ])('%s may not import %s, not even its types', (file, name, reason) => {
    expect(said(file, `import thing from '${name}'`)).toEqual([expect.stringContaining(reason)])
    expect(said(file, `import type { Thing } from '${name}'`)).toEqual([expect.stringContaining(reason)])
  })
})

describe('the environment', () => {
  test.each([
    "process.env.PORT ?? '80'",
    "process['env'].PORT",
    'const { env } = process',
    "import { env } from 'node:process'",
  ])('%s is for config.ts alone', (source) => {
    expect(said('server/src/config.ts', source)).toEqual([])
    expect(said('server/src/main.ts', source)).toEqual([
      expect.stringContaining('reads process.env: only server/src/config.ts does'),
    ])
    expect(said('agent/src/config.ts', source)).toEqual([])
  })

  test('a word in a comment or a string is not a reading', () => {
    expect(
      said('server/src/main.ts', "// process.env\nconst sentence = 'process.env'\nconst { pid } = process"),
    ).toEqual([])
  })
})

describe('names and sizes', () => {
  const lines = (count: number) => 'x\n'.repeat(count)
  const kit = (count: number): SourceFile[] =>
    Array.from({ length: count }, (_, i) => ({ path: `server/src/kit/a${i}.ts`, text: '' }))

  test.each([
    'ssh/src/public-keys.ts',
    'ssh/src/sftp/a.test.ts',
    'server/src/storage/migrations/0001-beginning.ts',
    'console/src/app.tsx',
  ])('%s is a good name', (file) => expect(said(file, '')).toEqual([]))
  test.each(['ssh/src/publicKeys.ts', 'ssh/src/public_keys.ts', 'tests/Harness.ts', 'ssh/src/keys-.ts'])(
    '%s is not',
    (file) => {
      expect(said(file, '')).toEqual(['file names are kebab-case'])
    },
  )
  test('600 lines are many and 601 too many', () => {
    expect(said('ssh/src/keys.ts', lines(600))).toEqual([])
    expect(said('ssh/src/keys.ts', lines(601))).toEqual([expect.stringContaining('has 601 lines')])
  })
  test('the kit has at most fourteen files, its tests not counted', () => {
    expect(violations([...kit(14), { path: 'server/src/kit/a0.test.ts', text: '' }])).toEqual([])
    expect(violations(kit(15))).toEqual([expect.stringContaining('server/src/kit has 15 files')])
  })
})

describe('reading imports', () => {
  test.each([
    ["import a from 'x'", 'value'],
    ["import 'x'", 'value'],
    ["import { type A, b } from 'x'", 'value'],
    ["import * as a from 'x'", 'value'],
    ["export { a } from 'x'", 'value'],
    ["export * from 'x'", 'value'],
    ["const a = await import('x')", 'value'],
    ["function f() { return import('x') }", 'value'],
    ["import type { A } from 'x'", 'type'],
    ["import type A from 'x'", 'type'],
    ["import { type A, type B } from 'x'", 'type'],
    ["export type { A } from 'x'", 'type'],
    ["export { type A } from 'x'", 'type'],
    ["export type * from 'x'", 'type'],
    ["type A = import('x').A", 'type'],
    ["let a: typeof import('x')", 'type'],
  ])('%s is a %s', (source, kind) => {
    expect(read(`// first\n${source}`).imports).toEqual([{ specifier: 'x', kind, line: 2 }])
  })

  test('a file that is not TypeScript is reported, not passed over', () => {
    expect(said('ssh/src/keys.ts', 'import {')).toEqual([expect.stringContaining('cannot be read')])
  })

  test('comments, strings and expressions that look like imports are none', () => {
    expect(
      read("// import a from 'x'\nconst a = `import b from 'x'`\nconst c = /import 'x'/\nawait import(a)")
        .imports,
    ).toEqual([])
  })
})
