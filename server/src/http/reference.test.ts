// The browsable reference, as text: nothing from the document becomes markup, every operation can be linked
// to, and the page keeps to the policy that it is served under.
import { Script } from 'node:vm'
import { openapi, type OpenApiDocument } from '@hawser/contract/openapi'
import { describe, expect, test } from 'vitest'
import { referenceCss, referenceHtml, referenceJs } from './reference.ts'

const document = openapi({ version: '1.2.3' })
const page = referenceHtml(document)
const ids = [...page.matchAll(/ id="([^"]*)"/g)].map(([, id]) => id ?? '')

describe('escaping', () => {
  const hostile = `<script>alert("1")</script>&'\`<b>x</b>\``
  const escaped = '&lt;script&gt;alert(&quot;1&quot;)&lt;/script&gt;&amp;&#39;'

  /**
   * The document with every text that is shown replaced by a hostile one; names and addresses that lead the
   * code stay.
   */
  function poisoned(value: unknown): unknown {
    if (Array.isArray(value)) return value.map(poisoned)
    if (typeof value !== 'object' || value === null) return value
    const shown = [
      'description',
      'summary',
      'title',
      'version',
      'x-displayName',
      'x-access',
      'source',
      'default',
      'pattern',
    ]
    return Object.fromEntries(
      Object.entries(value).map(([key, inner]) => [
        key,
        typeof inner === 'string' && shown.includes(key) ? hostile : poisoned(inner),
      ]),
    )
  }

  test('no text of the document becomes markup', () => {
    const result = referenceHtml(poisoned(document) as OpenApiDocument)
    expect(result).not.toContain('<script>alert')
    expect(result).not.toContain('<b>x')
    expect(result.split(escaped).length).toBeGreaterThan(500)
    const shape = (text: string) => text.match(/<(script|b|link|input|details|section)\b/g)?.length
    expect(shape(result)).toBe(shape(page))
  })

  test('backticks mark code, and the code is escaped as well', () => {
    const result = referenceHtml({
      ...document,
      tags: [{ name: 'devices', 'x-displayName': 'Devices', description: 'see `<b>`' }],
    })
    expect(result).toContain('see <code>&lt;b&gt;</code>')
  })
})

test('every operation has an anchor of its own, its other addresses too', () => {
  const operations = Object.values(document.paths).flatMap((methods) => Object.values(methods))
  for (const { operationId } of operations) expect(ids).toContain(operationId)
  expect(new Set(ids).size).toBe(ids.length)
})

test('every link within the page leads to an anchor', () => {
  const targets = [...page.matchAll(/href="#([^"]*)"/g)].map(([, id]) => id)
  expect(targets.length).toBeGreaterThan(ids.length / 2)
  for (const target of targets) expect(ids).toContain(target)
})

test('the page has no inline style or script and nothing from another place', () => {
  expect(page).not.toMatch(/<style|<script(?! src="\/docs\/reference\.js")| style=| on\w+=|javascript:/)
  const assets = [...page.matchAll(/(?:src|<link[^>]* href)="([^"]*)"/g)].map(([, address]) => address ?? '')
  expect(assets.toSorted()).toEqual(['/assets/mark.svg', '/docs/reference.css', '/docs/reference.js'])
  expect(referenceCss + referenceJs).not.toMatch(/https?:|@import|url\(/)
})

test('nothing is left undefined', () => {
  expect(page).not.toMatch(/undefined|\[object/)
})

test('the script is whole JavaScript', () => {
  expect(() => new Script(referenceJs)).not.toThrow()
})
