// Bodies of requests, changed at random, to every operation that takes one. As the edge reads them: what is
// taken has no field that the contract does not name. And over the wire, from the owner of a namespace: each
// is answered, and never with a 500. The first byte of an input chooses the operation, the rest is the body.
import net from 'node:net'
import { expect, test, vi } from 'vitest'
import { sample } from '@hawser/contract/examples'
import { withinLimits } from '../../server/src/http/json-limits.ts'
import { checker, known } from '../../server/src/http/validate.ts'
import { cases } from '../contract/cases.ts'
import { startService } from '../harness/service.ts'
import { buildWorld } from '../harness/world.ts'
import { fuzz } from './fuzz.ts'

vi.setConfig({ testTimeout: 3_600_000 })

/** A password is hashed for every one of these, on purpose slowly: they would take all the time. */
const slow = new Set(['users.login', 'users.auth', 'users.register'])
const targets = cases.filter(({ op, id }) => op.body !== undefined && !slow.has(id)).slice(0, 256)

const seeds = targets.map(({ op }, index) =>
  Buffer.concat([Buffer.of(index), Buffer.from(JSON.stringify(op.example.body ?? {}))]),
)

test('any bodies, as the edge reads them', async () => {
  const readers = targets.map(({ op, name }) => {
    if (!op.body) throw new Error(`${name} takes no body.`)
    const { properties } = op.body as { properties?: Readonly<Record<string, unknown>> }
    return {
      name,
      check: checker(op.body),
      copy: known(op.body),
      fields: properties && new Set(Object.keys(properties)),
    }
  })
  const { inputs, endings } = await fuzz({
    name: 'http-bodies',
    seeds,
    feed(input) {
      const reader = readers[(input[0] ?? 0) % readers.length]
      if (!reader) throw new Error('There is no operation with a body.')
      const text = input.toString('utf8', 1)
      if (!withinLimits(text)) return 'too complex'
      let body: unknown
      try {
        body = JSON.parse(text)
      } catch {
        return 'no JSON'
      }
      if (!reader.check(body)) return `${reader.name}: refused`
      const given = reader.copy(body)
      if (reader.fields)
        for (const field of Object.keys(given as object)) expect(reader.fields.has(field), field).toBe(true)
      return `${reader.name}: taken`
    },
  })
  expect(endings.size).toBeGreaterThan(targets.length)
  console.log(`http-bodies: ${inputs} inputs, ${endings.size} endings`)
})

test('any bodies over the wire', async () => {
  await using service = await startService()
  const world = await buildWorld(service)
  const token = await world.token('owner')
  using line = openLine(Number(new URL(service.url).port))
  const { inputs, endings } = await fuzz({
    name: 'http',
    share: 0.05,
    seeds,
    async feed(input) {
      const target = targets[(input[0] ?? 0) % targets.length]
      if (!target) throw new Error('There is no operation with a body.')
      const path = target.path.replaceAll(/:(\w+)/g, (_, name: string) =>
        encodeURIComponent(target.op.example.params?.[name] ?? 'x'),
      )
      const body = input.subarray(1)
      const head = [
        `${target.method} ${path} HTTP/1.1`,
        'host: fuzz',
        'content-type: application/json',
        `authorization: Bearer ${token}`,
        `content-length: ${body.length}`,
      ]
      const status = await line.ask(Buffer.concat([Buffer.from(`${head.join('\r\n')}\r\n\r\n`), body]))
      expect(status, `${target.name} of ${sample.namespace}`).not.toBe(500)
      return `${target.name}: ${status}`
    },
  })
  expect(endings.size).toBeGreaterThan(targets.length / 2)
  console.log(`http: ${inputs} inputs, ${endings.size} endings`)
})

/** One connection that is kept; a new one where the server has closed it. */
function openLine(port: number): Disposable & { ask(request: Buffer): Promise<number> } {
  let socket: net.Socket | undefined
  return {
    async ask(request) {
      const { promise, resolve, reject } = Promise.withResolvers<number>()
      const used = (socket ??= net.connect(port, '127.0.0.1').on('error', () => undefined))
      let came = ''
      const onData = (chunk: Buffer): void => {
        came += chunk.toString('latin1')
        const end = came.indexOf('\r\n\r\n')
        if (end < 0) return
        const length = Number(/^content-length: (\d+)/im.exec(came)?.[1] ?? 0)
        const chunked = /^transfer-encoding: chunked/im.test(came)
        if (chunked ? !came.endsWith('0\r\n\r\n') : came.length < end + 4 + length) return
        if (/^connection: close/im.test(came)) socket = undefined
        resolve(Number(/^HTTP\/1\.1 (\d+)/.exec(came)?.[1]))
      }
      const onEnd = (): void => {
        socket = undefined
        reject(new Error(`The server closed the connection without an answer: ${came}`))
      }
      used.on('data', onData).on('close', onEnd)
      used.write(request)
      try {
        return await promise
      } finally {
        used.off('data', onData).off('close', onEnd)
        if (socket === undefined) used.destroy()
      }
    },
    [Symbol.dispose]: () => void socket?.destroy(),
  }
}
