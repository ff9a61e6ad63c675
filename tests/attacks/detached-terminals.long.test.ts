// Terminals that an agent keeps for a server that is away, attacked by whoever reaches the agent's SSH
// server: another server, a stolen tunnel, another user of the device. Without the secret of a
// terminal nobody gets anything of it, not even the knowledge that there is one; and an agent keeps no
// more than its bound.
import { randomBytes } from 'node:crypto'
import { afterEach, expect, test, vi } from 'vitest'
import {
  detachText,
  detachVariable,
  attachSubsystem,
  mostDetached,
  type DetachRequest,
} from '@hawser/contract/tunnel'
import { Reason, startSession, writeRequest, type Connection } from '@hawser/ssh'
import { startDevice, type Device } from '../../agent/test/device.ts'
import { ownAccount } from '../../agent/src/users.ts'
import { detachedTerminals, type DetachedTerminals } from '../../agent/src/detached-terminals.ts'
import { eventually } from '../harness/eventually.ts'

vi.setConfig({ testTimeout: 60_000 })

const account = ownAccount().name
const hex = (): string => randomBytes(32).toString('hex')
const keepOf = (change: Partial<DetachRequest> = {}): DetachRequest => ({
  id: hex(),
  secret: hex(),
  grace_s: 60,
  ...change,
})
const pty = { terminal: 'xterm', columns: 80, rows: 24, width: 0, height: 0, modes: new Map() }

let opened: AsyncDisposableStack | undefined
afterEach(async () => opened?.disposeAsync())

async function place(): Promise<{ device: Device; detached: DetachedTerminals }> {
  opened = new AsyncDisposableStack()
  const ending = new AbortController()
  const detached = detachedTerminals(ending.signal)
  const device = opened.use(await startDevice({ detached }))
  opened.defer(() => ending.abort())
  return { device, detached }
}

/** A program in a terminal, for which the gateway asks what it may ask. */
async function begin(device: Device, keep: DetachRequest, command = 'echo begun; exec cat') {
  const connection = await device.connect()
  const { channel } = await startSession(connection, {
    program: { type: 'exec', command },
    pty,
    env: { [detachVariable]: detachText(keep) },
  })
  let text = ''
  void channel.readAll(({ bytes }) => void (text += bytes.toString())).catch(() => undefined)
  await eventually(() => expect(text).toContain('begun'))
  return {
    connection,
    lose: async () => connection.end(Reason.connectionLost, 'away'),
  }
}

/** What somebody gets who wants a terminal of this name. */
async function wanted(connection: Connection, value: string) {
  const channel = await connection.open('session')
  const env = writeRequest({ type: 'env', name: detachVariable, value })
  const subsystem = writeRequest({ type: 'subsystem', name: attachSubsystem })
  const asked = [
    channel.request(env.name, env.payload, true),
    channel.request(subsystem.name, subsystem.payload, true),
  ]
  return { channel, granted: (await Promise.all(asked))[1]! }
}

test('with its id and secret a terminal goes on, and says nothing without', async () => {
  const { device, detached } = await place()
  const keep = keepOf()
  const lost = await begin(device, keep)
  await lost.lose()
  await eventually(() => expect(detached.waiting()).toEqual([keep.id]))
  await using stranger = await device.connect()
  const wrong = [
    { ...keep, secret: hex() },
    { ...keep, id: hex() },
    { ...keep, secret: keep.id },
    { ...keep, secret: keep.secret.replace(/.$/, (last) => (last === '0' ? '1' : '0')) },
  ].map(detachText)
  const malformed = [
    '',
    keep.id,
    `${keep.id} `,
    `${keep.id} ${keep.secret}`,
    `${keep.id} ${keep.secret} 0`,
    '* * 1',
  ]
  for (const value of [...wrong, ...malformed]) expect((await wanted(stranger, value)).granted).toBe(false)
  // Nothing of that has taken it away from its own server.
  const { channel, granted } = await wanted(stranger, detachText(keep))
  expect(granted).toBe(true)
  expect(JSON.parse(String((await channel.read())!.bytes))).toEqual({
    columns: 80,
    rows: 24,
    bytes: 7,
    whole: true,
  })
  expect(String((await channel.read())!.bytes)).toContain('begun')
  await channel.close()
})

test('another account of the device does not get it, whatever it knows', async () => {
  const { device, detached } = await place()
  const keep = keepOf()
  await (await begin(device, keep)).lose()
  await eventually(() => expect(detached.waiting()).toEqual([keep.id]))
  expect(detached.find(keep, 'somebody-else')).toBeUndefined()
})

test('who takes it over has it alone: the connection that had it ends, and what it types goes nowhere', async () => {
  const { device } = await place()
  const keep = keepOf()
  const before = await begin(device, keep)
  await using next = await device.connect()
  const { channel, granted } = await wanted(next, detachText(keep))
  expect(granted).toBe(true)
  expect((await before.connection.ended).by).not.toBe('us')
  await channel.write(Buffer.from('mine\n'))
  let text = ''
  void channel.readAll(({ bytes }) => void (text += bytes.toString())).catch(() => undefined)
  await eventually(() => expect(text).toContain('mine\r\n'))
  await channel.close()
})

test('a goodbye ends it at once, and so does its time', async () => {
  const { device, detached } = await place()
  const ended = async (keep: DetachRequest) =>
    eventually(() => expect(detached.find(keep, account)).toBeUndefined())
  const clean = keepOf()
  const left = await begin(device, clean)
  expect(detached.find(clean, account)).toBeDefined()
  await left.connection.end(Reason.byApplication, 'The session is over.')
  await ended(clean)
  const short = keepOf({ grace_s: 1 })
  await (await begin(device, short)).lose()
  await ended(short)
})

test(`an agent keeps ${mostDetached} terminals; one more ends with its connection, and an id counts once`, async () => {
  const { device, detached } = await place()
  const keeps = Array.from({ length: mostDetached }, () => keepOf())
  const lost = []
  for (const keep of keeps) lost.push(await begin(device, keep))
  const beyond = await begin(device, keepOf())
  // The secret of a terminal that is there is not replaced.
  const twice = await begin(device, { ...keeps[0]!, secret: hex() })
  for (const one of [...lost, beyond, twice]) await one.lose()
  await eventually(() => expect(new Set(detached.waiting())).toEqual(new Set(keeps.map(({ id }) => id))))
  expect(detached.find(keeps[0]!, account)).toBeDefined()
})

/** What the agent answers to the variable on a channel of its own, which may stay open. */
async function answered(connection: Connection, keep: DetachRequest) {
  const channel = await connection.open('session')
  const { name, payload } = writeRequest({ type: 'env', name: detachVariable, value: detachText(keep) })
  return { channel, does: await channel.request(name, payload, true) }
}

test('an agent says that it keeps a terminal only if it has room for it', async () => {
  const { device, detached } = await place()
  const keeps = Array.from({ length: mostDetached - 1 }, () => keepOf())
  const [first, ...others] = await Promise.all(keeps.map(async (keep) => begin(device, keep)))
  await using gateway = await device.connect()
  const last = await answered(gateway, keepOf())
  expect(last.does).toBe(true)
  // The place is taken before the program has begun.
  expect((await answered(gateway, keepOf())).does).toBe(false)
  await last.channel.close()
  await eventually(async () => expect((await answered(gateway, keepOf())).does).toBe(true))
  for (const one of [first!, ...others]) await one.connection.end(Reason.byApplication, 'over')
  await eventually(() => expect(detached.find(keeps[0]!, account)).toBeUndefined())
})

test('of the terminals of one connection it says so of one at a time, and of none that is not there', async () => {
  const { device } = await place()
  const keep = keepOf()
  await using gateway = await device.connect()
  const env = { [detachVariable]: detachText(keep) }
  // A program without a terminal leaves the place to others.
  await startSession(gateway, { program: { type: 'exec', command: 'exec cat' }, env })
  const program = { type: 'exec', command: 'echo begun; exec cat' } as const
  const { channel } = await startSession(gateway, { program, pty, env })
  expect(String((await channel.read())!.bytes)).toContain('begun')
  expect((await answered(gateway, keep)).does).toBe(false)
  await channel.close()
  await eventually(async () => expect((await answered(gateway, keep)).does).toBe(true))
})

test('a program that writes without end is not stopped, and costs no more than the bound', async () => {
  const { device, detached } = await place()
  const keep = keepOf()
  const file = device.where.file('count')
  const lost = await begin(
    device,
    keep,
    `echo begun; for i in $(seq 40); do seq 20000; echo $i > ${file}; done; exec cat`,
  )
  await lost.lose()
  await eventually(() => expect(device.where.read('count').trim()).toBe('40'))
  expect(detached.waiting()).toEqual([keep.id])
  await using next = await device.connect()
  const { channel } = await wanted(next, detachText(keep))
  let bytes = 0
  void channel.readAll((chunk) => void (bytes += chunk.bytes.length)).catch(() => undefined)
  await eventually(() => expect(bytes).toBeGreaterThan(90 * 1024))
  expect(bytes).toBeLessThan(97 * 1024)
  await channel.close()
})
