// Every text of the console is in the catalogue of every language: nothing is shown that did not ask for it,
// nothing is asked for that is not there, and nothing is there that nobody asks for.
import { globSync, readFileSync } from 'node:fs'
import path from 'node:path'
import { describe, expect, test } from 'vitest'
import { auditActions } from '@hawser/contract/audit-actions'
import { failures } from '@hawser/contract/failures'
import { keyRefusals, refusalSentences } from '@hawser/contract/logins'
import { roleMatrix } from '@hawser/contract/role-matrix'
import { sentences } from '@hawser/contract/sentences'
import { de } from '../../console/src/language/de/index.ts'
import { serverSentences } from './server-sentences.ts'
import { placeholdersOf, textsOf } from './texts.ts'

const folder = path.join(import.meta.dirname, '../../console/src')
/** The page of the components, which only a build for tests has, is for those who write pages. */
const forDevelopers = ['design.tsx']
const files = globSync('**/*.{ts,tsx}', { cwd: folder })
  .filter((file) => !/\.test\.ts$|\.d\.ts$|^language\/de\//.test(file) && !forDevelopers.includes(file))
  .toSorted()
const readings = new Map(
  files.map((file) => [file, textsOf(readFileSync(path.join(folder, file), 'utf8'), file.endsWith('x'))]),
)
const asked = new Set([
  ...[...readings.values()].flatMap(({ keys }) => keys.map(({ text }) => text)),
  ...Object.values(failures)
    .filter(({ status }) => status < 500)
    .map(({ message }) => message),
  ...Object.values(auditActions),
  ...Object.values(refusalSentences),
  ...Object.values(keyRefusals),
  ...Object.values(sentences),
  ...serverSentences(),
  ...roleMatrix().flatMap(({ thing, title, summary }) => [thing, title, summary]),
])

test('every text passes through the catalogue', () => {
  const outside = [...readings].flatMap(([file, reading]) =>
    reading.outside.map(({ text, line }) => `console/src/${file}:${line} ${text}`),
  )
  expect(readings.size).toBeGreaterThan(100)
  expect(outside).toEqual([])
})

test('German has every text that is asked for, and no other', () => {
  expect([...asked].filter((text) => !(text in de))).toEqual([])
  expect(Object.keys(de).filter((text) => !asked.has(text))).toEqual([])
})

test('what an entry of the audit log is about has a word', () => {
  const rules = path.join(import.meta.dirname, '../../server/src/domain')
  const kinds = globSync('**/*.ts', { cwd: rules })
    .filter((file) => !file.endsWith('.test.ts'))
    .flatMap((file) => [
      ...readFileSync(path.join(rules, file), 'utf8').matchAll(
        /target(?:: |Of = .{0,120}?=> \()\{\s*kind: '([^']+)'/gs,
      ),
    ])
    .map(([, kind]) => kind!)
  expect(kinds).toEqual(expect.arrayContaining(['device', 'firewall rule', 'audit stream', 'data budget']))
  expect([...new Set(kinds)].filter((kind) => !(kind in de))).toEqual([])
})

test('the sentences that the server refuses with are found in its source', () => {
  const found = serverSentences()
  // Of a rule; of a rule that names the field; by a constant; of a terminal; of a viewer.
  expect(found).toEqual(
    expect.arrayContaining([
      'A member already has this address.',
      'Not an IP address.',
      'This namespace invites only its members.',
      'A firewall rule of the namespace does not allow this.',
      'You may no longer watch this session.',
    ]),
  )
  expect(found).not.toContain('The store of recordings cannot be reached.')
})

test('a text stands in one area only, and every area is in the catalogue', async () => {
  const areas = globSync('language/de/*.ts', { cwd: folder }).filter((file) => !file.endsWith('index.ts'))
  const modules = await Promise.all(
    areas.map(async (file) => (await import(path.join(folder, file))) as Record<string, object>),
  )
  const texts = modules.flatMap((module) => Object.values(module).flatMap((area) => Object.keys(area)))
  expect(texts.length).toBeGreaterThan(100)
  expect(texts.filter((text, index) => texts.indexOf(text) !== index)).toEqual([])
  expect(texts.filter((text) => !(text in de))).toEqual([])
})

test('a translation takes the values of its text', () => {
  const differ = Object.entries(de).filter(
    ([text, german]) => placeholdersOf(text).join() !== placeholdersOf(german).join(),
  )
  expect(differ).toEqual([])
  expect(Object.values(de).filter((german) => german.trim() === '')).toEqual([])
})

describe('the reader of texts', () => {
  const outside = (source: string) => textsOf(source).outside.map(({ text }) => text)
  const keys = (source: string) => textsOf(source).keys.map(({ text }) => text)

  test.each([
    ['between tags', 'const A = () => <p>Hello</p>', 'Hello'],
    ['in a condition between tags', 'const A = () => <p>{on ? "yes" : null}</p>', 'yes'],
    ['in an attribute', 'const A = () => <B label="Sign in" />', 'Sign in'],
    ['in an attribute that it has never met', 'const A = () => <B caption="ready" />', 'ready'],
    ['in a template', 'const A = () => <B label={`Hello ${name}`} />', 'Hello …'],
    ['in a message', 'const a = () => showToast("It is saved.")', 'It is saved.'],
    [
      'in an error for people',
      'const a = () => { throw new UserError("That is too large.") }',
      'That is too large.',
    ],
    ['in a table', 'const words = { on: "Switched on" }', 'Switched on'],
    ['one word in a table', 'const words = { on: "Online" }', 'Online'],
    ['in a list of choices', 'const A = () => <C options={[["off", "Nothing at all"]]} />', 'Nothing at all'],
    [
      'glued into a text of the catalogue',
      'const a = () => t(`Hello ${name}`)',
      'a text with a value glued into it',
    ],
    ['as a value of a text', 'const a = () => t("Hello {name}", { name: "you" })', 'you'],
    ['asked for too early', 'const a = t("Hello")', 'a text asked for while the module loads'],
  ])('finds a text %s', (_, source, found) => {
    expect(outside(source)).toEqual([found])
  })

  test('takes code, class names, types and errors for developers for what they are', () => {
    expect(
      outside(`
        type Word = 'Hello you'
        const A = () => <p className="big red"><code>ssh root@crane</code>{t('Hello')}</p>
        const b = () => { throw new Error('the page has no place') }
        const c = (event) => event.key === 'Enter'
      `),
    ).toEqual([])
  })

  test('follows both forms of a number, both sides of a condition, and a text of a table', () => {
    expect(
      keys(
        `const a = () => [tn(n, '{count} day', '{count} days'), t(on ? 'On' : 'Off'), rich('<a>x</a>', {})]`,
      ),
    ).toEqual(['{count} day', '{count} days', 'On', 'Off', '<a>x</a>'])
    expect(keys(`const words = { on: msg('Online') }`)).toEqual(['Online'])
  })
})
