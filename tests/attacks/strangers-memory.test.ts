// Strangers who have keys and do not log in: what they make the server hold is counted as the memory it is,
// and is little. One asks for new keys, goes no further, and sends messages that must be answered after the
// exchange; one reads no answer.
import { readFileSync } from 'node:fs'
import { afterAll, beforeAll, beforeEach, expect, test, vi } from 'vitest'
import { Message } from '../../ssh/src/messages.ts'
import { message } from '../../ssh/src/wire.ts'
import { startProgram, temporaryFolder, type Program } from '../failures/program.ts'
import { eventually } from '../harness/eventually.ts'
import { kexInit, rudeClient, unknown, type RudeClient } from './rude-client.ts'

vi.setConfig({ testTimeout: 120_000 })

const strangers = 8
const messages = 100_000
/**
 * Of all strangers together; before there were such bounds each made the server hold as much as this and
 * more.
 */
const most_mib = 64

const data = temporaryFolder()
let server: Program
let port: number
beforeAll(async () => {
  server = await startProgram({ folder: data.path, env: { HAWSER_LOG: 'debug' } })
  port = Number((await server.logged('ssh.listening'))['port'])
  // Once before anything is measured, so that what is loaded at the first time does not count.
  using first = await rudeClient(port)
  await first.flood(100, unknown)
})
afterAll(async () => {
  await server[Symbol.asyncDispose]()
  data[Symbol.dispose]()
})

let before_mib: number
beforeEach(() => void (before_mib = resident_mib()))

const resident_mib = (): number =>
  Number(/VmRSS:\s+(\d+) kB/.exec(readFileSync(`/proc/${server.child.pid}/status`, 'utf8'))![1]) / 1024

/** What the server has more than before, once it has dealt with all that was sent. */
async function grown_mib(): Promise<number> {
  expect((await fetch(`${server.url}/healthcheck`)).status).toBe(200)
  return resident_mib() - before_mib
}

const reasons = (why: string): number =>
  server.printed.filter((line) => line.includes('"connection.ended"') && line.includes(JSON.stringify(why)))
    .length

test('whoever asks for new keys before the login is let go, and nothing is kept for the end of the exchange', async () => {
  const all: RudeClient[] = []
  for (let count = 0; count < strangers; count += 1) {
    const rude = await rudeClient(port)
    all.push(rude)
    rude.readNothing()
    await rude.flood(1 + messages, (at) => (at === 0 ? kexInit() : unknown()))
  }
  expect(await grown_mib()).toBeLessThan(most_mib)
  for (const rude of all) rude.socket.resume()
  await Promise.all(all.map((rude) => rude.closed))
  await eventually(() => expect(reasons('New keys are not made before the login.')).toBe(strangers))
})

test('whoever reads no answer before the login is let go', async () => {
  const all: RudeClient[] = []
  for (let count = 0; count < strangers; count += 1) {
    const rude = await rudeClient(port)
    all.push(rude)
    rude.readNothing()
    // What the kernel takes for us is filled with long answers, what the server holds after that with short
    // ones.
    const sent = await rude.flood(2_000, () => message(Message.ping, 4_100).string(Buffer.alloc(4_000)))
    if (sent) await rude.flood(messages, unknown)
  }
  expect(await grown_mib()).toBeLessThan(most_mib)
  for (const rude of all) rude.socket.resume()
  await Promise.all(all.map((rude) => rude.closed))
  await eventually(() => expect(reasons('The peer does not read what it asks for.')).toBe(strangers))
})
