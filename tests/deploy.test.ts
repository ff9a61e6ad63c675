// What people copy from deploy/ must be true: every setting that is named there exists. (The guides:
// tests/guides/pages.test.ts.)
import { globSync, readFileSync } from 'node:fs'
import path from 'node:path'
import { expect, test } from 'vitest'
import { settings } from '../server/src/config.ts'

const root = path.join(import.meta.dirname, '..')
const files = globSync('deploy/**/*', { cwd: root }).filter((file) => /\.\w+$|Dockerfile$/.test(file))
/** Those of the agent and of the command for people. */
const others = new Set(['HAWSER_SERVER', 'HAWSER_API_KEY', 'HAWSER_SERVER_ADDRESS', 'HAWSER_TENANT_ID'])

test('there is something to look at', () => expect(files.length).toBeGreaterThan(5))

test.each(files)('%s names settings that exist', (file) => {
  const named = readFileSync(path.join(root, file), 'utf8').match(/HAWSER_[A-Z0-9_]+/g) ?? []
  expect(named.filter((name) => !(name in settings) && !others.has(name))).toEqual([])
})
