// A device on a bad link, reached by OpenSSH: its tunnel breaks in the middle of a session, and the session
// goes on when the device is back. While it is away the person is told once, may go on typing, and can leave.
import { afterAll, beforeAll, expect, test, vi } from 'vitest'
import { sample } from '@hawser/contract/examples'
import { startAgent, type Agent } from '../harness/agent.ts'
import { startLink, type Link } from '../harness/link.ts'
import { eventually, openWay, type Running, type Way } from './way.ts'

vi.setConfig({ testTimeout: 60_000, hookTimeout: 60_000 })

let way: Way
let link: Link
let agent: Agent
const device = 'remote'
const interrupted = `The connection to ${sample.namespace}.${device} is interrupted`

beforeAll(async () => {
  way = await openWay()
  link = await startLink({ port: Number(new URL(way.service.url).port) })
  agent = await startAgent(
    {
      url: `http://127.0.0.1:${link.port}`,
      tenant_id: sample.tenant,
      accept: (uid) => way.owner.devices.accept({ params: { uid } }),
    },
    { hostname: device },
  )
})
afterAll(async () => {
  await agent[Symbol.asyncDispose]()
  await link[Symbol.asyncDispose]()
  await way[Symbol.asyncDispose]()
})

const about = async () => (await way.owner.devices.get({ params: { uid: agent.uid } })).body
const grace = async (reconnect_grace_s: number) =>
  way.owner.namespaces.edit({ params: { tenant: sample.tenant }, body: { settings: { reconnect_grace_s } } })

/** Cuts the link until this is disposed of; resolves when the server has noticed. */
async function away(): Promise<AsyncDisposable> {
  link.refuse(true)
  link.cut()
  await eventually(async () => expect((await about()).online).toBe(false))
  return {
    async [Symbol.asyncDispose]() {
      link.refuse(false)
      await eventually(async () => expect((await about()).online).toBe(true))
    },
  }
}

/** A shell in a terminal that has printed its first prompt. */
async function shell(): Promise<Running> {
  const session = way.start(undefined, { device, flags: ['-tt'], env: { TERM: 'vt100' } })
  session.child.stdin.write("PS1='> '; echo be''gun\n")
  await session.until(/(begun)\r/)
  return session
}

/** SSH_FXP_INIT of version 3. */
const sftpInit = Buffer.from([0, 0, 0, 5, 1, 0, 0, 0, 3])
const count = (text: string, part: string): number => text.split(part).length - 1

test('a command goes on when the tunnel is cut, and what it prints is complete', async () => {
  await using session = way.start('i=0; while [ $i -lt 60 ]; do echo line $i; i=$((i+1)); sleep 0.05; done', {
    device,
  })
  await session.until(/(line 3)\n/)
  const back = agent.logged('tunnel.up')
  link.cut()
  await back
  expect(await session.status).toBe(0)
  expect(session.stdout()).toBe(Array.from({ length: 60 }, (_, index) => `line ${index}\n`).join(''))
  expect(session.stderr()).toBe('')
})

test('a person in a terminal is told once that the device is away, and what they type waits', async () => {
  await using session = await shell()
  {
    await using _ = await away()
    await session.until(/(interrupted; the session waits for it for up to 5 minutes\.)\r/)
    session.child.stdin.write('echo typed mean""while\n')
  }
  await session.until(/(typed meanwhile)\r/)
  expect(count(session.stdout(), interrupted)).toBe(1)
  session.child.stdin.write('exit 7\n')
  expect(await session.status).toBe(7)
})

test('a command and an SFTP client are told nothing', async () => {
  await using session = way.start('echo begun; cat', { device })
  await session.until(/(begun)/)
  await using sftp = way.start('sftp', { device, flags: ['-s'] })
  sftp.child.stdin.write(sftpInit)
  await eventually(() => expect(sftp.stdout()).not.toBe(''))
  const version = sftp.stdout()
  {
    await using _ = await away()
    session.child.stdin.end('typed meanwhile')
    // Longer than an interruption that a person in a terminal is told of.
    await using terminal = way.start(undefined, { device, flags: ['-tt'] })
    expect(await terminal.status).toBe(255)
    await new Promise((resolve) => setTimeout(resolve, 2_500))
  }
  expect(await session.status).toBe(0)
  expect(session.stdout()).toBe('begun\ntyped meanwhile')
  expect(session.stderr()).toBe('')
  expect(sftp.stdout()).toBe(version)
  sftp.child.stdin.end()
  expect(await sftp.status).toBe(0)
})

test('`~.` and Close session work while the device is away, and the device ends the programs when it is back', async () => {
  await using left = await shell()
  left.child.stdin.write('exec sleep 86401\n')
  await using closed = way.start('echo begun; exec sleep 86402', { device })
  await closed.until(/(begun)/)
  const { uid } = await way.newest()
  {
    await using _ = await away()
    left.child.stdin.write('\n~.')
    expect(await left.status).toBe(255)
    await way.owner.sessions.close({ params: { uid }, body: { device: agent.uid } })
    expect(await closed.status).toBe(255)
    expect(closed.stderr()).toContain('The session was closed by an administrator.')
  }
  const running = async () =>
    (await way.ssh('pgrep -fx "sleep 8640[12]" | wc -l', { device })).stdout.toString()
  await eventually(async () => expect(await running()).toBe('0\n'))
})

test('a cut that is longer than the namespace waits ends the session with a sentence', async () => {
  await grace(1)
  await using command = way.start('echo begun; cat', { device })
  await command.until(/(begun)/)
  await using terminal = await shell()
  {
    await using _ = await away()
    expect(await command.status).toBe(255)
    expect(command.stderr()).toContain(`The connection to ${sample.namespace}.${device} was lost.`)
    expect(await terminal.status).toBe(255)
    expect(terminal.stdout()).toContain(`The connection to ${sample.namespace}.${device} was lost.`)
    expect(terminal.stdout()).not.toContain(interrupted)
  }
})

test('with no time to wait a session ends with the tunnel, as with other agents', async () => {
  await grace(0)
  await using command = way.start('echo begun; cat', { device })
  await command.until(/(begun)/)
  link.cut()
  expect(await command.status).toBe(255)
  expect(command.stderr()).toContain('was lost.')
  await grace(300)
  await eventually(async () => expect((await about()).online).toBe(true))
})

test('sessions that wait for a device end when somebody removes it', async () => {
  await using terminal = await shell()
  await using command = way.start('echo begun; cat', { device })
  await command.until(/(begun)/)
  link.refuse(true)
  link.cut()
  await eventually(async () => expect((await about()).online).toBe(false))
  await terminal.until(/(interrupted; the session waits for it)/)
  await way.owner.devices.remove({ params: { uid: agent.uid } })
  for (const session of [terminal, command]) expect(await session.status).toBe(255)
  expect(command.stderr()).toContain('The device is no longer available.')
  // Nothing of it is left that a device which comes back could continue.
  expect([...way.service.reach.sessions.values()]).toEqual([])
  link.refuse(false)
  const enrolled = async () => (await way.owner.devices.list({ query: { status: 'pending' } })).body
  await eventually(async () => expect((await enrolled()).map(({ name }) => name)).toContain(device))
})
