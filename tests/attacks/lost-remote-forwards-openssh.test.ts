// A client with ports and sockets on the device (`ssh -R`) is lost, and its session is held. Nobody is left who
// could serve the ports: they are closed on the device, and whoever comes back with the same `-R` gets them.
import { once } from 'node:events'
import { existsSync } from 'node:fs'
import net from 'node:net'
import { afterEach, expect, test } from 'vitest'
import { freePort } from '../../ssh/test/programs.ts'
import { openTerminal, type Terminal } from '../clients/terminal.ts'
import { eventually, sharedWay } from '../clients/way.ts'
import { until } from '../harness/eventually.ts'

const way = sharedWay()
const list = async () => (await way.owner.sessions.list({ query: { active: true } })).body

afterEach(async () => {
  for (const { uid, device_uid } of await list())
    await way.owner.sessions.close({ params: { uid }, body: { device: device_uid } })
  await until(async () => (await list()).length === 0)
})

/** A shell whose client also serves these on the device. */
function shell(remote: readonly string[], command: string[] = []): Terminal {
  const flags = [...remote.flatMap((one) => ['-R', one]), '-t']
  const settings = ['ExitOnForwardFailure=yes', 'LogLevel=INFO']
  return openTerminal('ssh', [...way.args({ flags, settings }), `${way.sshid()}@127.0.0.1`, ...command])
}

async function lose(terminal: Terminal): Promise<void> {
  terminal.kill('SIGKILL')
  await terminal.ended
  await eventually(async () => expect((await list()).filter(({ held }) => held)).toHaveLength(1))
}

const accepts = async (port: number): Promise<boolean> => {
  const socket = net.connect(port, '127.0.0.1')
  try {
    await once(socket, 'connect')
    return true
  } catch {
    return false
  } finally {
    socket.destroy()
  }
}

/** A server on the client's side that says one word. */
async function serving(word: string) {
  const server = net.createServer((socket) => socket.on('error', () => undefined).end(word))
  server.listen(0, '127.0.0.1')
  await once(server, 'listening')
  return { port: (server.address() as net.AddressInfo).port, [Symbol.dispose]: () => void server.close() }
}

async function readFrom(to: net.NetConnectOpts): Promise<string> {
  const socket = net.connect(to)
  socket.on('error', () => undefined)
  let text = ''
  socket.on('data', (bytes: Buffer) => (text += bytes.toString()))
  await new Promise<void>((resolve) => socket.once('close', resolve))
  return text
}

test('a lost client leaves neither port nor socket behind, and the same -R works again', async () => {
  using server = await serving('served')
  const port = await freePort()
  const path = way.there('socket')
  const remote = [`${port}:127.0.0.1:${server.port}`, `${path}:127.0.0.1:${server.port}`]
  const served = async () =>
    eventually(async () => {
      expect(await readFrom({ port, host: '127.0.0.1' })).toBe('served')
      expect(await readFrom({ path })).toBe('served')
    })
  const lost = shell(remote)
  await lost.until(/[$#] /)
  await served()
  await lose(lost)
  await eventually(async () => expect([await accepts(port), existsSync(path)]).toEqual([false, false]))

  using back = shell(remote, ['hawser-attach'])
  await served()
  back.type('echo he""re\n')
  await back.until(/here\r\n/)
  expect(back.shown()).not.toMatch(/forwarding failed/)
  expect((await list()).filter(({ held }) => held)).toEqual([])
})

test('a port that the device has chosen is closed, too', async () => {
  using server = await serving('served')
  const lost = shell([`0:127.0.0.1:${server.port}`])
  await lost.until(/Allocated port (\d+)/)
  const port = Number(/Allocated port (\d+)/.exec(lost.shown())![1])
  await lost.until(/[$#] /)
  expect(await accepts(port)).toBe(true)
  await lose(lost)
  await eventually(async () => expect(await accepts(port)).toBe(false))
})
