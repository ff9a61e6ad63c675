// The guides that the server serves: every one is rendered whole, nothing of Markdown and no strange markup
// is left, links lead to pages and headings that are there, and every page of the console has one.
import { globSync, readFileSync } from 'node:fs'
import path from 'node:path'
import { afterAll, beforeAll, describe, expect, test } from 'vitest'
import { guideOf, guides } from '../../console/src/guides.ts'
import { markdownHtml } from '../../server/src/http/markdown.ts'
import { startService, type Service } from '../harness/service.ts'

const root = path.join(import.meta.dirname, '../..')
const names = globSync('docs/guides/*.md', { cwd: root }).map((file) => path.basename(file, '.md'))

let service: Service
beforeAll(async () => {
  service = await startService()
})
afterAll(() => service[Symbol.asyncDispose]())

const pages = new Map<string, Promise<string>>()
function pageOf(address: string): Promise<string> {
  const known = pages.get(address)
  if (known) return known
  const asked = fetch(service.url + address).then(async (answer) => {
    expect(answer.status, address).toBe(200)
    expect(answer.headers.get('content-type')).toBe('text/html; charset=utf-8')
    expect(answer.headers.get('content-security-policy')).toContain("default-src 'none'")
    return answer.text()
  })
  pages.set(address, asked)
  return asked
}
const addressOf = (name: string): string => (name === 'README' ? '/docs/guides' : `/docs/guides/${name}`)

describe('every guide', () => {
  test.each(names)('%s is served whole', async (name) => {
    const html = await pageOf(addressOf(name))
    const source = readFileSync(path.join(root, `docs/guides/${name}.md`), 'utf8')
    const [, title] = /^# (.+)$/m.exec(source)!
    expect(html).toContain('<h1 id=')
    expect(html).toContain(title!.replaceAll('`', '').split(' ')[0])
    // What stands outside of code has no mark of Markdown left.
    const prose = html.replaceAll(/<pre>.*?<\/pre>|<code>.*?<\/code>/gs, '').replaceAll(/<[^>]+>/g, '')
    expect(prose).not.toMatch(/```|\*\*|\]\(|^#{1,4} |^\s*\|/m)
    expect(html).not.toMatch(/<script|<style|style=|\son\w+=|javascript:/)
    expect((html.match(/<pre>/g) ?? []).length).toBe((source.match(/^\s*```/gm) ?? []).length / 2)
    // Links to our own pages lead to something.
    for (const [, href] of html.matchAll(/href="(\/docs[^"]*)"/g)) {
      const [address, anchor] = href!.split('#')
      if (address === '/docs/guides.css' || address === '/docs') continue
      const target = await pageOf(address!)
      if (anchor !== undefined) expect(target, href).toContain(`id="${anchor}"`)
    }
  })

  test('there is nothing else at these addresses', async () => {
    for (const name of ['nothing', '..%2f..%2fpackage', 'README.md', 'team.md', '%00'])
      expect((await fetch(`${service.url}/docs/guides/${name}`)).status, name).toBe(404)
    expect((await fetch(`${service.url}/docs/guides.css`)).headers.get('content-type')).toContain('text/css')
  })
})

describe('every page of the console', () => {
  const router = readFileSync(path.join(root, 'console/src/router.tsx'), 'utf8')
  const inShell = [
    ...[...router.matchAll(/\binside\('(\/[^']*)'/g)].map(([, page]) => page!),
    ...[...router.matchAll(/getParentRoute: \(\) => shell,\s+path: '(\/[^']*)'/g)].map(([, page]) => page!),
  ]

  test('has a guide, and there is none for a page that is not there', () => {
    expect(inShell).toContain('/devices/$uid')
    expect(Object.keys(guides).toSorted()).toEqual([...new Set(inShell)].toSorted())
  })

  test.each(Object.entries(guides))('%s leads to %s, which is there', async (route, guide) => {
    const [name, anchor] = guide.split('#')
    const html = await pageOf(`/docs/guides/${name}`)
    if (anchor !== undefined) expect(html).toContain(`id="${anchor}"`)
    expect(guideOf(route.replaceAll(/\$\w+/g, 'x'.repeat(64)))).toBe(`/docs/guides/${guide}`)
  })
})

describe('the renderer', () => {
  test.each([
    ['markup', '<img src=x onerror=alert(1)>', '<p>&lt;img src=x onerror=alert(1)&gt;</p>'],
    ['a link with a script', '[x](javascript:alert(1))', '<p>x)</p>'],
    [
      'a link out of its text',
      '[x](https://a.example/"onclick="y)',
      '<p><a href="https://a.example/&amp;quot;onclick=&amp;quot;y">x</a></p>',
    ],
    ['markup in code', '`<b>` and `**x**`', '<p><code>&lt;b&gt;</code> and <code>**x**</code></p>'],
    ['markup in a heading', '# <i>', '<h1 id="i">&lt;i&gt;</h1>'],
    ['a list in a list', '- a\n  - b\n- c', '<ul><li>a\n<ul><li>b</li></ul></li><li>c</li></ul>'],
    [
      'a table',
      '| a | b |\n|---|---|\n| `x` | y |',
      '<table><thead><tr><th>a</th><th>b</th></tr></thead><tbody><tr><td><code>x</code></td><td>y</td></tr></tbody></table>',
    ],
    ['a fence without an end', '```sh\nls', '<pre><code>ls</code></pre>'],
  ])('writes %s', (_, source, html) => {
    expect(markdownHtml(source)).toBe(html)
  })
})
