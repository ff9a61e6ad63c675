// Methods that HTTP knows and no operation has, QUERY first of all, which gave 500: each is refused as any
// other wrong method, with what the address takes, or not found where nothing is.
import { METHODS, request } from 'node:http'
import { text } from 'node:stream/consumers'
import { expect, test } from 'vitest'
import { sharedPlace } from '../harness/place.ts'

const place = sharedPlace()
const known = new Set(['GET', 'HEAD', 'POST', 'PUT', 'PATCH', 'DELETE', 'CONNECT'])

async function send(method: string, path: string, headers: Record<string, string> = {}) {
  const { promise, resolve, reject } = Promise.withResolvers<{
    status: number | undefined
    allow: string | undefined
    body: string
  }>()
  const body = headers['content-type'] === undefined ? '' : '{"a":1}'
  // Node says no length for OPTIONS and TRACE by itself, and the body would be read as the next request.
  const framed = body === '' ? headers : { ...headers, 'content-length': String(body.length) }
  request(`${place.url}${path}`, { method, headers: framed }, (answer) => {
    text(answer).then(
      (told) => resolve({ status: answer.statusCode, allow: answer.headers.allow, body: told }),
      reject,
    )
  })
    .on('error', reject)
    .end(body)
  return promise
}

test.each(METHODS.filter((method) => !known.has(method)))('%s is refused', async (method) => {
  for (const headers of [{}, { 'content-type': 'application/json' }, { 'content-type': 'text/plain' }]) {
    const refused = await send(method, '/api/devices', headers)
    expect([refused.status, refused.body], method).toEqual([
      405,
      '{"message":"This address does not take that method."}',
    ])
    expect(refused.allow).toContain('GET')
    expect((await send(method, '/api/nonsense', headers)).status).toBe(404)
  }
  expect(place.log()).not.toContain('request.failed')
})
