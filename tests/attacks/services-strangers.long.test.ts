// Strangers who begin a request at a public service and stop in the middle: a body that does not go on, an
// answer that nobody reads. After a minute or so they lose their places and connections. A connection that
// waits for its next request ends, too.
import { expect, test } from 'vitest'
import { serviceLimits } from '@hawser/contract/limits'
import { eventually } from '../harness/eventually.ts'
import { sharedServices, startProgram } from '../harness/services.ts'
import { answers, dial, head } from './services-raw.ts'

const place = sharedServices()
const mib = 1024 * 1024
const perSource = serviceLimits.requestsOfSource.max
/** A minute of silence, and the time until it is noticed; twice as long for what nobody reads. */
const longest_ms = 4 * 60_000

const from = (host: string, source: string): readonly string[] => [
  `Host: ${host}`,
  `X-Forwarded-For: ${source}`,
]

test.concurrent(
  'a body that stops gives its place back',
  async () => {
    await using program = await startProgram((request, response) =>
      request.resume().on('end', () => response.end('whole')),
    )
    const { host } = await place.serve(program.port, { audience: 'public' })
    const lines = Array.from({ length: perSource }, () => {
      const line = dial(place.url)
      line.socket.write(
        `${head('POST / HTTP/1.1', ...from(host, '198.51.100.1'), 'Content-Length: 10')}12345`,
      )
      return line
    })
    const headers = { 'x-forwarded-for': '198.51.100.1' }
    const status = async (): Promise<number> => (await place.browser().ask(host, { headers })).status
    await eventually(async () => expect(await status()).toBe(429))
    await Promise.all(lines.map(({ closed }) => closed))
    expect(await status()).toBe(200)
  },
  longest_ms,
)

test.concurrent(
  'an answer that nobody reads gives its place back',
  async () => {
    const left = Promise.withResolvers<void>()
    await using program = await startProgram((_, response) => {
      response.once('close', () => left.resolve())
      response.end(Buffer.alloc(64 * mib))
    })
    const { host } = await place.serve(program.port, { audience: 'public' })
    const line = dial(place.url)
    line.socket.write(head('GET / HTTP/1.1', ...from(host, '198.51.100.2')))
    await answers(line, 1)
    line.socket.pause()
    await left.promise
    line.socket.destroy()
  },
  longest_ms,
)

test.concurrent(
  'a connection that asks for nothing more is closed',
  async () => {
    await using program = await startProgram((_, response) => void response.end('answered'))
    const { host } = await place.serve(program.port, { audience: 'public' })
    const line = dial(place.url)
    line.socket.write(head('GET / HTTP/1.1', ...from(host, '198.51.100.3')))
    expect(await answers(line, 1)).toEqual([200])
    await line.closed
  },
  longest_ms,
)
