// The addresses of the console's pages, which letters and the first start print, seen without a browser: each gives its
// page under a policy that lets in nothing but our own files, and what is no page stays an answer in JSON.
import { afterAll, beforeAll, expect, test } from 'vitest'
import { startService, type Service } from '../harness/service.ts'

let service: Service
beforeAll(async () => {
  service = await startService()
})
afterAll(() => service[Symbol.asyncDispose]())

test.each([
  ['/', 'Overview'],
  ['/login', 'Sign in'],
  ['/login/', 'Sign in'],
  ['/sign-up', 'Create an account'],
  ['/setup?code=44444444-4444-4444-8444-444444444444', 'Set up'],
  ['/confirm-account', 'Confirm your account'],
  ['/validation-account?email=una%40example.com&token=x', 'Confirm your account'],
  ['/update-password?id=65f000000000000000000004&token=x', 'New password'],
  ['/reset-mfa?id=65f000000000000000000007', 'Turn off the second factor'],
])('%s is a page of the console', async (address, title) => {
  const answer = await fetch(service.url + address)
  const html = await answer.text()
  expect(answer.status).toBe(200)
  expect(answer.headers.get('content-type')).toBe('text/html; charset=utf-8')
  expect(html).toContain(`<title>${title} · Hawser</title>`)
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
  // A link of a letter must not be answered from yesterday's page.
  expect(answer.headers.get('cache-control')).toBe('no-cache')
  // Everything the page asks for is ours and there.
  const files = [...html.matchAll(/(?:src|href)="(\/assets\/[^"]+)"/g)].map(([, file]) => file!)
  expect(files.length).toBeGreaterThan(2)
  for (const file of files) expect((await fetch(service.url + file)).status, file).toBe(200)
  expect(html).not.toMatch(/(src|href|action)="(https?:)?\/\/|<style|style="|<script>| on\w+="/)
})

test.each([
  '/login.html',
  '/index.html',
  '/assets',
  '/assets/',
  '/assets/none.js',
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
