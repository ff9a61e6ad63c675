// The addresses of the console's pages, which e-mails and the first start print, seen without a browser: each
// gives its page under a policy that lets in nothing but our own files, and what is no page stays an answer
// in JSON for everybody but a person with a browser.
import { afterAll, beforeAll, expect, test } from 'vitest'
import { startService, type Service } from '../harness/service.ts'

let service: Service
beforeAll(async () => {
  service = await startService()
})
afterAll(() => service[Symbol.asyncDispose]())

test.each([
  '/',
  '/login',
  '/login/',
  '/sign-up',
  '/setup?code=44444444-4444-4444-8444-444444444444',
  '/confirm-account',
  '/validation-account?email=una%40example.com&token=x',
  '/update-password?id=65f000000000000000000004&token=x',
  '/reset-mfa?id=65f000000000000000000007',
  '/confirm-email?token=x',
  '/undo-change?token=x',
  '/devices?status=pending',
  `/devices/${'1'.repeat(64)}`,
  `/devices/${'1'.repeat(64)}/terminal`,
  `/sessions/${'3'.repeat(64)}`,
  '/search',
])('%s is a page of the console', async (address) => {
  const answer = await fetch(service.url + address)
  const html = await answer.text()
  expect(answer.status).toBe(200)
  expect(answer.headers.get('content-type')).toBe('text/html; charset=utf-8')
  expect(html).toContain('<title>Hawser</title>')
  expect((answer.headers.get('content-security-policy') ?? '').split('; ')).toEqual(
    expect.arrayContaining([
      "default-src 'none'",
      "script-src 'self'",
      "style-src 'self'",
      "connect-src 'self'",
      "base-uri 'none'",
      "frame-ancestors 'none'",
    ]),
  )
  expect(answer.headers.get('referrer-policy')).toBe('no-referrer')
  expect(answer.headers.get('x-content-type-options')).toBe('nosniff')
  // A link of an e-mail must not be answered from yesterday's page.
  expect(answer.headers.get('cache-control')).toBe('no-cache')
  // Everything the page asks for is ours and there.
  const files = [...html.matchAll(/(?:src|href)="(\/assets\/[^"]+)"/g)].map(([, file]) => file!)
  expect(files.length).toBeGreaterThan(2)
  for (const file of files) {
    const asset = await fetch(service.url + file)
    expect(asset.status, file).toBe(200)
    expect(asset.headers.get('cache-control'), file).toBe(
      file === '/assets/mark.svg' ? 'no-cache' : 'public, max-age=31536000, immutable',
    )
  }
  expect(html).not.toMatch(/(src|href|action)="(https?:)?\/\/|<style|style="|<script>| on\w+="/)
})

test.each([
  '/login.html',
  '/index.html',
  '/assets',
  '/assets/',
  '/assets/none.js',
  '/assets/.stamp',
  '/.stamp',
  '/src/main.tsx',
  '/assets/..%2findex.html',
  '/logins',
  '/package.json',
  '/tsconfig.json',
])('%s is not, and says so in JSON', async (address) => {
  const answer = await fetch(service.url + address)
  expect(answer.status).toBe(404)
  expect(answer.headers.get('content-type')).toBe('application/json; charset=utf-8')
  expect(await answer.json()).toEqual({ message: 'There is no such address on this server.' })
})

test('a browser with a wrong address gets the console, which says so, and the status still says 404', async () => {
  const asked = { headers: { accept: 'text/html,application/xhtml+xml,*/*;q=0.8' } }
  const lost = await fetch(`${service.url}/nope?page=2`, asked)
  expect(lost.status).toBe(404)
  expect(lost.headers.get('content-type')).toBe('text/html; charset=utf-8')
  expect(lost.headers.get('content-security-policy')).toContain("default-src 'none'")
  expect(await lost.text()).toContain('<title>Hawser</title>')
  // Not for parts of the API, nor for files.
  for (const address of [
    '/api/nope',
    '/assets/none.js',
    '/index.html',
    '/assets/..%2findex.html',
    '/docs/nope',
  ])
    expect((await fetch(service.url + address, asked)).headers.get('content-type'), address).toBe(
      'application/json; charset=utf-8',
    )
})

test('script and style are sent compressed, as the browser asks for it', async () => {
  const html = await (await fetch(service.url)).text()
  const files = [...html.matchAll(/(?:src|href)="(\/assets\/[^"]+\.(?:js|css))"/g)].map(([, file]) => file!)
  expect(files.length).toBeGreaterThan(1)
  for (const file of files)
    for (const encoding of ['br', 'gzip']) {
      const answer = await fetch(service.url + file, { headers: { 'accept-encoding': encoding } })
      expect(answer.headers.get('content-encoding'), file).toBe(encoding)
      expect(answer.headers.get('vary')?.toLowerCase(), file).toContain('accept-encoding')
    }
})
