// Logins by SSH while PostgreSQL is away: a login waits for it for a few seconds, and whoever is not let in
// reads why, whatever they have to show and whether or not there is such a device.
import { once } from 'node:events'
import net, { type AddressInfo } from 'node:net'
import { afterAll, beforeAll, expect, test, vi } from 'vitest'
import { sample } from '@hawser/contract/examples'
import { run } from '../../ssh/test/programs.ts'
import { openWay, type How, type Way } from '../clients/way.ts'
import { until } from '../harness/eventually.ts'
import { freshDatabase } from '../harness/postgres.ts'

vi.setConfig({ testTimeout: 60_000, hookTimeout: 120_000 })

/** A way to the database on which nobody answers while it is closed. */
async function doorTo(url: string) {
  const target = new URL(url)
  const { port, hostname } = target
  const sockets = new Set<net.Socket>()
  let open = true
  let refused = 0
  const server = net.createServer((near) => {
    near.on('error', () => undefined)
    if (!open) {
      refused += 1
      near.destroy()
      return
    }
    const far = net.connect(Number(port), hostname)
    for (const [one, other] of [
      [near, far],
      [far, near],
    ] as const) {
      sockets.add(one)
      one.on('error', () => undefined).on('close', () => (sockets.delete(one), other.destroy()))
      one.pipe(other)
    }
  })
  server.listen(0, '127.0.0.1')
  await once(server, 'listening')
  target.port = String((server.address() as AddressInfo).port)
  return {
    url: target.href,
    /** Connections that came while it was closed. */
    refused: () => refused,
    close() {
      open = false
      for (const socket of sockets) socket.destroy()
    },
    reopen: () => void (open = true),
    async [Symbol.asyncDispose]() {
      for (const socket of sockets) socket.destroy()
      server.close()
      await once(server, 'close')
    },
  }
}

const opened = new AsyncDisposableStack()
let door: Awaited<ReturnType<typeof doorTo>>
let way: Way

beforeAll(async () => {
  door = opened.use(await doorTo(await freshDatabase()))
  way = opened.use(await openWay({}, { database: door.url }))
})
afterAll(() => opened.disposeAsync())

const sentence = /The service cannot check logins right now; try again in a moment \(reference [0-9a-z-]+\)/i

test('everybody is told that logins cannot be checked', async () => {
  door.close()
  try {
    const ways: How[] = [{}, { device: 'nobody-has-this' }, way.saying('pilot')]
    const outcomes = await Promise.all(ways.map((how) => way.ssh('true', how)))
    for (const { status, stderr } of outcomes) {
      expect(status).toBe(255)
      expect(stderr).toMatch(sentence)
      expect(stderr).not.toContain('Internal error')
    }
    const joining = await run('ssh', [
      '-N',
      '-R',
      '0:localhost:22',
      ...way.args(),
      `${sample.tenant}@127.0.0.1`,
    ])
    expect(joining.stderr).toContain('The service cannot check logins right now; try again in a moment')
  } finally {
    door.reopen()
  }
})

test('a login that comes while the database is away for a moment is let in', async () => {
  expect((await way.ssh('true')).status).toBe(0)
  door.close()
  await using running = way.start('echo here', { flags: ['-v'] })
  await running.until(/(Offering public key)/)
  const before = door.refused()
  await until(() => door.refused() > before + 1)
  door.reopen()
  expect(await running.status).toBe(0)
  expect(running.stdout()).toBe('here\n')
})
