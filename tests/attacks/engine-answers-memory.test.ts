// A rogue container engine, or a rogue container, answers in pieces of one byte, or with millions of empty
// values. Kept as they came, a few megabytes on the wire were gigabytes here. The test weighs what is held while
// the answer is on its way.
import http from 'node:http'
import { once } from 'node:events'
import type { AddressInfo } from 'node:net'
import { expect, test } from 'vitest'
import { engineClient, EngineFailure } from '../../engine/src/client.ts'
import { containerShell } from '../../engine/src/container-shell.ts'
import type { Exec, Output } from '../../engine/src/exec.ts'
import { held_bytes, mib } from './held.ts'

const answer_bytes = 512 * 1024
/** Twice the answer, for the buffer that grows, and what the connection itself needs. */
const most_bytes = 16 * mib

async function engineThat(answer: (response: http.ServerResponse) => void) {
  const server = http.createServer((_, response) => answer(response)).listen(0, '127.0.0.1')
  await once(server, 'listening')
  const { port } = server.address() as AddressInfo
  const client = engineClient({
    endpoint: () => ({ host: '127.0.0.1', port, name: 'engine' }),
    answer_ms: 60_000,
  })
  return {
    client,
    async [Symbol.asyncDispose]() {
      server.closeAllConnections()
      server.close()
      await once(server, 'close')
    },
  }
}

test('an answer in chunks of one byte holds its bytes', async () => {
  const chunks = Buffer.alloc(answer_bytes * 6, '1\r\nx\r\n')
  await using engine = await engineThat((response) => {
    response.flushHeaders()
    response.socket!.write(chunks)
    response.socket!.end('0\r\n\r\n')
  })
  const before = await held_bytes()
  const read = engine.client.bytes('/containers/x/archive', 16 * mib)
  const over = read.then(() => true)
  let most = 0
  for (let isOver = false; !isOver;) {
    most = Math.max(most, (await held_bytes()) - before)
    isOver = await Promise.race([over, new Promise<false>((resolve) => setTimeout(resolve, 50, false))])
  }
  expect((await read).length).toBe(answer_bytes)
  expect(most).toBeLessThan(most_bytes)
})

test('an answer of millions of values is refused before it is parsed', async () => {
  await using engine = await engineThat((response) => response.end(`[${'{},'.repeat(4 * mib)}{}]`))
  await expect(engine.client.json('GET', '/containers/json')).rejects.toThrow(EngineFailure)
})

test('a shell in a container that prints byte by byte holds its bytes', async () => {
  const mark = 'mark'
  let weighed = 0
  const before = await held_bytes()
  async function* output(): AsyncGenerator<Output> {
    const page = Buffer.alloc(64 * 1024, 'x')
    for (let at = 0; at < answer_bytes; at += 1) {
      yield { stream: 0, bytes: page.subarray(at % page.length, (at % page.length) + 1) }
    }
    weighed = (await held_bytes()) - before
    yield { stream: 0, bytes: Buffer.from(`\n${mark} 0 \n${mark}\n`) }
  }
  const exec = { write: () => Promise.resolve(true), close: () => undefined } as unknown as Exec
  const done = await containerShell(exec, output(), mark).run('ls', { most_bytes: 8 * mib })
  expect(done.output.length).toBe(answer_bytes)
  expect(weighed).toBeLessThan(most_bytes)
})
