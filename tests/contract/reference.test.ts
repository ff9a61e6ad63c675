// The checked-in reference is what the code says: docs/reference/ holds exactly the pages that
// docs/write-reference.ts would write now, byte for byte. So does the index of docs/decisions/.
import { readdirSync, readFileSync } from 'node:fs'
import { describe, expect, test } from 'vitest'
import { decisionsIndex, decisionsPage, referencePages } from '../../docs/write-reference.ts'
import { settings } from '../../server/src/config.ts'

const folder = new URL('../../docs/reference/', import.meta.url)
const remedy = 'run `npm run reference` and look at the difference'
const pages = referencePages()

test('the reference has exactly the pages that are written', () => {
  expect(readdirSync(folder).toSorted(), remedy).toEqual(Object.keys(pages).toSorted())
})

describe('docs/reference is up to date', () => {
  test.each(Object.keys(pages))('%s', (name) => {
    expect(readFileSync(new URL(name, folder), 'utf8') === pages[name], `${name} differs: ${remedy}`).toBe(
      true,
    )
  })
})

test('the index of the decisions is up to date', () => {
  expect(readFileSync(decisionsIndex, 'utf8'), remedy).toBe(decisionsPage())
})

test('every setting is on the page about configuration, with its default', () => {
  for (const [name, { fallback }] of Object.entries(settings)) {
    const row = pages['configuration.md']?.split('\n').find((line) => line.startsWith(`| \`${name}\``))
    expect(row, name).toBeDefined()
    if (fallback) expect(row).toContain(`\`${fallback}\``)
  }
})
