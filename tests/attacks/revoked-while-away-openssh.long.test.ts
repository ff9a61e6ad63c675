// A device is rejected or removed, or its namespace is deleted, while its agent is away and the server starts
// again. The agent holds terminals for a server that comes back; when it is refused, they end. Only the
// server can end them so: an outage, a proxy and a stranger at the server's address cannot.
import { once } from 'node:events'
import { createServer } from 'node:http'
import { afterEach, beforeEach, expect, test, vi } from 'vitest'
import { openRestarts, restored, type Restarts } from '../clients/restarts.ts'
import { eventually } from '../harness/eventually.ts'
import { areGone, isRunning, shellOn, ways } from './revoked.ts'

vi.setConfig({ testTimeout: 120_000, hookTimeout: 120_000 })

let restarts: Restarts
beforeEach(async () => {
  restarts = await openRestarts()
})
afterEach(async () => restarts[Symbol.asyncDispose]())

interface Refusal {
  readonly status: number
  readonly headers?: Readonly<Record<string, string>>
}

/** Somebody else is at the address of the server, until the agent has had an answer. */
async function stranger(port: number, { status, headers = {} }: Refusal): Promise<void> {
  let answered = 0
  const server = createServer((_request, response) => {
    answered += 1
    response.writeHead(status, headers).end()
  })
  server.on('upgrade', (_request, socket) => {
    answered += 1
    const lines = Object.entries(headers).map(([name, value]) => `${name}: ${value}\r\n`)
    socket.end(`HTTP/1.1 ${status} Refused\r\n${lines.join('')}content-length: 0\r\n\r\n`)
  })
  server.listen(port, '127.0.0.1')
  await once(server, 'listening')
  await eventually(() => expect(answered).toBeGreaterThan(0), 60_000)
  server.closeAllConnections()
  server.close()
  await once(server, 'close')
}

test('an outage, a proxy and a stranger with forged or old refusals end nothing', async () => {
  const { terminal, pid } = await shellOn(restarts)
  using _ = terminal
  const [session] = await restarts.list()
  await restarts.isKept(session!.uid)
  const { port } = restarts.program()
  await restarts.stop('SIGKILL')
  const forged = Buffer.alloc(64, 7).toString('base64')
  const refusals: readonly Refusal[] = [
    { status: 502 },
    { status: 404 },
    { status: 401 },
    { status: 401, headers: { 'x-hawser-hang-up': forged } },
    { status: 401, headers: { 'x-hawser-hang-up': '' } },
  ]
  for (const refusal of refusals) {
    await stranger(port, refusal)
    expect(isRunning(pid)).toBe(true)
  }
  await restarts.start()
  await restored(restarts)
  expect(isRunning(pid)).toBe(true)
  const { uid, device_uid } = session!
  await restarts.api().sessions.close({ params: { uid }, body: { device: device_uid } })
  await areGone([pid])
})

test.each(Object.entries(ways))('%s while away: no program stays', async (_way, revoke) => {
  const { terminal, pid } = await shellOn(restarts)
  using _ = terminal
  const [session] = await restarts.list()
  await restarts.isKept(session!.uid)
  restarts.agent.kill('SIGSTOP')
  try {
    await restarts.stop('SIGKILL')
    await restarts.start('away')
    await revoke(restarts)
    expect(isRunning(pid)).toBe(true)
  } finally {
    restarts.agent.kill('SIGCONT')
  }
  await areGone([pid])
})
