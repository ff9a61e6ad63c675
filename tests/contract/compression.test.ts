// Answers are compressed for those who ask for it, when it is worth it, and are the same in
// every other respect.
import { gunzipSync } from 'node:zlib'
import http from 'node:http'
import { afterAll, beforeAll, expect, test } from 'vitest'
import { startService, type Service } from '../harness/service.ts'
import { buildWorld, type World } from '../harness/world.ts'

let service: Service
let world: World
beforeAll(async () => {
  service = await startService()
  world = await buildWorld(service)
})
afterAll(() => service[Symbol.asyncDispose]())

interface Answer {
  headers: http.IncomingHttpHeaders
  body: Buffer
}

/** As it is on the wire; `fetch` would decompress. */
async function ask(path: string, encoding: string | undefined): Promise<Answer> {
  const authorization = `Bearer ${await world.token('owner')}`
  return new Promise((resolve, reject) => {
    const headers = { authorization, ...(encoding === undefined ? {} : { 'accept-encoding': encoding }) }
    http
      .get(service.url + path, { headers }, (answer) => {
        const chunks: Buffer[] = []
        answer
          .on('data', (chunk: Buffer) => chunks.push(chunk))
          .on('end', () => resolve({ headers: answer.headers, body: Buffer.concat(chunks) }))
      })
      .on('error', reject)
  })
}

test('a long list is compressed, has its total, and is what the others get', async () => {
  const plain = await ask('/api/devices?status=accepted', undefined)
  expect(plain.headers['content-encoding']).toBeUndefined()
  const list = '/api/audit?limit=100'
  const whole = await ask(list, undefined)
  expect(whole.body.length).toBeGreaterThan(2048)
  for (const encoding of ['gzip', 'gzip, deflate, br', 'br, *;q=0.1', 'GZIP;q=0.5']) {
    const packed = await ask(list, encoding)
    expect(packed.headers['content-encoding'], encoding).toBe('gzip')
    expect(packed.headers['vary']).toContain('accept-encoding')
    expect(packed.headers['content-type']).toBe(whole.headers['content-type'])
    expect(packed.body.length).toBeLessThan(whole.body.length / 2)
    expect(JSON.parse(gunzipSync(packed.body).toString())).toHaveProperty('entries')
  }
})

test.each(['br', 'identity', 'gzip;q=0', 'gzip;q=0.0, *;q=0', 'nonsense'])(
  'who asks for %s gets it as it is',
  async (encoding) => {
    const { headers, body } = await ask('/api/audit?limit=100', encoding)
    expect(headers['content-encoding']).toBeUndefined()
    expect(headers['vary'], 'a cache between must not mix them up').toContain('accept-encoding')
    expect(JSON.parse(body.toString())).toHaveProperty('entries')
  },
)

test('a short answer is left alone', async () => {
  const { headers, body } = await ask('/api/stats', 'gzip')
  expect(headers['content-encoding']).toBeUndefined()
  expect(JSON.parse(body.toString())).toHaveProperty('registered_devices')
})
