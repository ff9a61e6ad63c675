// Compression on the whole way, with the real client and the real agent: `ssh -C` towards people, and towards
// devices what their links need. Bytes are counted on the link between agent and server.
import { randomBytes } from 'node:crypto'
import { readFileSync } from 'node:fs'
import { expect, test } from 'vitest'
import { roundTrip, startEcho } from '../../ssh/test/peers.ts'
import { freePort, run } from '../../ssh/test/programs.ts'
import { startAgent, type Agent } from '../harness/agent.ts'
import { startLink, type Link, type LinkShape } from '../harness/link.ts'
import { openWay, sharedWay } from './way.ts'

const way = sharedWay()
const text = Buffer.from(
  Array.from({ length: 60_000 }, (_, at) => `${at} ropes of ${(at * 7_919) % 997} fathoms each\n`).join(''),
)
const random = randomBytes(1_000_000)
/** What headers, windows and keepalives may take beside the data. */
const slack = 1.05

interface Device extends AsyncDisposable {
  readonly name: string
  readonly agent: Agent
  readonly link: Link
  /** Sends these bytes there and back; returns how many crossed the link. */
  echo(bytes: Buffer): Promise<{ readonly there: number; readonly back: number }>
}

async function deviceBehind(
  name: string,
  shape: Partial<LinkShape>,
  env: Record<string, string> = {},
): Promise<Device> {
  await using opened = new AsyncDisposableStack()
  const { url, rooms } = way.service
  const link = opened.use(await startLink({ port: Number(new URL(url).port) }, shape))
  const server = { url: `http://${link.host}:${link.port}`, rooms }
  const agent = opened.use(await startAgent(server, { hostname: name, env }))
  const held = opened.move()
  return {
    name,
    agent,
    link,
    async echo(bytes) {
      const before = { there: link.down.payload, back: link.up.payload }
      const { stdout, status } = await way.ssh('cat', { device: name, input: bytes })
      expect(status).toBe(0)
      expect(stdout.equals(bytes)).toBe(true)
      return { there: link.down.payload - before.there, back: link.up.payload - before.back }
    },
    [Symbol.asyncDispose]: async () => held.disposeAsync(),
  }
}

test('ssh -C compresses to the gateway and back', async () => {
  const { stdout, stderr } = await way.ssh('cat', {
    input: text,
    flags: ['-C'],
    settings: ['LogLevel=DEBUG1'],
  })
  expect(stdout.equals(text)).toBe(true)
  expect(stderr).toContain('compression: zlib@openssh.com')
  const [, sent, received] = /Transferred: sent (\d+), received (\d+) bytes/.exec(stderr) ?? []
  expect(Math.max(Number(sent), Number(received))).toBeLessThan(text.length / 3)
})

test('ssh -C while the client renews its keys all the time, with text and random data', async () => {
  const input = Buffer.concat([text, random, text])
  const { stdout, stderr } = await way.ssh('cat', {
    input,
    flags: ['-C'],
    settings: ['LogLevel=DEBUG1', 'RekeyLimit=1M'],
  })
  expect(stdout.equals(input)).toBe(true)
  expect(stderr.split('SSH2_MSG_NEWKEYS received').length).toBeGreaterThan(2)
})

test('ssh -C reaches an agent of the field, which knows nothing of it', async () => {
  await using old = await way.oldAgent(2)
  const { stdout } = await way.ssh('cat', { device: old.name, input: text, flags: ['-C'] })
  expect(stdout.equals(text)).toBe(true)
})

test('scp -C copies there and back', async () => {
  const [from, there, back] = [way.where.write('text', text), way.there('text'), way.where.file('back')]
  const words = way.args({ flags: ['-C'] }).map((word) => (word === '-p' ? '-P' : word))
  const at = `${way.sshid()}@127.0.0.1:${there}`
  expect((await run('scp', [...words, '-q', from, at])).status).toBe(0)
  expect((await run('scp', [...words, '-q', at, back])).status).toBe(0)
  expect(readFileSync(back).equals(text)).toBe(true)
})

test('a server that compresses never ignores ssh -C', async () => {
  await using strict = await openWay({ HAWSER_COMPRESSION: 'never' })
  const { stdout, stderr } = await strict.ssh('echo fine', { flags: ['-C'], settings: ['LogLevel=DEBUG1'] })
  expect(stdout.toString()).toBe('fine\n')
  expect(stderr).toContain('compression: none')
})

test('on a good link nothing is compressed', async () => {
  await using device = await deviceBehind('quay', {})
  const { there, back } = await device.echo(text)
  expect(Math.min(there, back)).toBeGreaterThan(text.length)
})

test('where the device answers late, text is compressed in both directions and random data passes', async () => {
  await using device = await deviceBehind('islet', { delay_ms: 100 })
  const { there, back } = await device.echo(text)
  expect(Math.max(there, back)).toBeLessThan(text.length / 3)
  const untouched = await device.echo(random)
  expect(Math.max(untouched.there, untouched.back)).toBeLessThan(random.length * slack)
})

test('on a slow link text is compressed once data has to wait', async () => {
  await using device = await deviceBehind('buoy-2', { bytesPerSecond: 500_000 })
  const { there, back } = await device.echo(Buffer.concat([text, text]))
  expect(Math.max(there, back)).toBeLessThan(text.length * 1.3)
})

test('an agent may compress always, and so does then its gateway', async () => {
  await using device = await deviceBehind('wreck', {}, { HAWSER_COMPRESSION: 'always' })
  const { there, back } = await device.echo(text)
  expect(Math.max(there, back)).toBeLessThan(text.length / 3)
})

test('an agent may compress never', async () => {
  await using device = await deviceBehind('ferry', { delay_ms: 100 }, { HAWSER_COMPRESSION: 'never' })
  const { there, back } = await device.echo(text)
  expect(Math.min(there, back)).toBeGreaterThan(text.length)
})

test('a forwarded connection is not compressed beside a session that is', async () => {
  await using device = await deviceBehind('lock', {}, { HAWSER_COMPRESSION: 'always' })
  using echo = await startEcho()
  const port = await freePort()
  await using client = way.start(`echo ready; sleep 60`, {
    device: device.name,
    flags: ['-L', `${port}:127.0.0.1:${echo.port}`],
  })
  await client.until(/ready/)
  const before = device.link.up.payload
  expect((await roundTrip(port, text)).equals(text)).toBe(true)
  expect(device.link.up.payload - before).toBeGreaterThan(text.length)
})
