// Metrics are for whoever runs the server: nowhere by default, on a port of their own, or for the bearer of a
// token.
import { createServer, type AddressInfo } from 'node:net'
import { expect, test } from 'vitest'
import { hawser, startProgram, temporaryFolder } from './program.ts'

async function freePort(): Promise<number> {
  const server = createServer()
  await new Promise<void>((resolve) => server.listen(0, '127.0.0.1', resolve))
  const { port } = server.address() as AddressInfo
  await new Promise((resolve) => server.close(resolve))
  return port
}

test('there are none by default', async () => {
  using folder = temporaryFolder()
  await using program = await startProgram({ folder: folder.path })
  expect((await fetch(`${program.url}/metrics`)).status).toBe(404)
})

test('a port of their own counts requests by operation and status, and tells of the process', async () => {
  using folder = temporaryFolder()
  const port = await freePort()
  await using program = await startProgram({
    folder: folder.path,
    env: { HAWSER_METRICS: `127.0.0.1:${port}` },
  })
  await fetch(`${program.url}/info`)
  await fetch(`${program.url}/info`)
  await fetch(`${program.url}/api/devices`)
  const answer = await fetch(`http://127.0.0.1:${port}/metrics`)
  expect(answer.headers.get('content-type')).toContain('text/plain')
  const text = await answer.text()
  expect(text).toContain('hawser_request_seconds_count{operation="system.info",status="200"} 2')
  expect(text).toContain('hawser_request_seconds_count{operation="devices.list",status="401"} 1')
  expect(text).toMatch(/^process_resident_memory_bytes \d+/m)
  for (const figure of ['hawser_tunnels', 'hawser_sessions']) expect(text).toContain(`\n${figure} 0\n`)
  expect((await fetch(`${program.url}/metrics`)).status).toBe(404)
})

test.each([
  { flags: [], implementation: 'openssl', reason: undefined, figure: 1 },
  {
    flags: ['--no-experimental-ffi'],
    implementation: 'node:crypto',
    reason: 'this Node has no node:ffi, or it is switched off',
    figure: 0,
  },
])(
  'the log and a figure say that SSH packets are encrypted by $implementation',
  async ({ flags, implementation, reason, figure }) => {
    using folder = temporaryFolder()
    await using program = await startProgram({
      folder: folder.path,
      env: { HAWSER_METRICS_TOKEN: 'tide-table' },
      command: [process.execPath, ...flags, hawser, 'serve'],
    })
    const line = await program.logged('ssh.ciphers')
    expect([line['implementation'], line['reason']]).toEqual([implementation, reason])
    const answer = await fetch(`${program.url}/metrics`, { headers: { authorization: 'Bearer tide-table' } })
    expect(await answer.text()).toContain(`\nhawser_ssh_openssl ${figure}\n`)
  },
)

test('with a token they are on the main port, for its bearer alone', async () => {
  using folder = temporaryFolder()
  await using program = await startProgram({
    folder: folder.path,
    env: { HAWSER_METRICS_TOKEN: 'tide-table' },
  })
  const ask = (authorization?: string) =>
    fetch(`${program.url}/metrics`, authorization ? { headers: { authorization } } : {})
  expect((await ask()).status).toBe(401)
  expect((await ask('Bearer tide')).status).toBe(401)
  const right = await ask('Bearer tide-table')
  expect(right.status).toBe(200)
  expect(await right.text()).toContain('hawser_request_seconds')
})
