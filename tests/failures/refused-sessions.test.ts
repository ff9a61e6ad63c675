// A device that refuses a session which its client believes to be open: the gateway confirms a session before
// our own agent has heard of it, and says afterwards why there is none. The client, the gateway's rules for
// channels and the device's SSH server are the real ones, on lines in memory.
import { expect, test } from 'vitest'
import {
  openClient,
  pipe,
  writeRequest,
  type Channel,
  type Connection,
  type ServerConnection,
} from '@hawser/ssh'
import { pair, servedLine } from '../../ssh/test/pairs.ts'
import { all } from '../../ssh/test/reading.ts'
import { channelPolicy } from '../../server/src/gateway/channels/channels.ts'
import { openPolicy } from '@hawser/contract/policies'
import { sessionPolicy } from '../../server/src/domain/access/session-policy.ts'
import { livePolicy } from '../../server/src/gateway/channels/live-policy.ts'

const hostile = 'no \u001b[31mroom\u0007 here\r\n'
const nothing = (): undefined => undefined
const recorder = {
  terminal: nothing,
  resize: nothing,
  announcement: nothing,
  interrupted: nothing,
  channel: undefined,
  typist: nothing,
  program: nothing,
  output: nothing,
  exit: nothing,
  close: async () => undefined,
}

interface Refusing extends AsyncDisposable {
  readonly client: Connection
  readonly device: ServerConnection
}

/** A client whose sessions the gateway passes on to a device that refuses them. */
async function refusing(): Promise<Refusing> {
  await using opened = new AsyncDisposableStack()
  const near = opened.use(await pair())
  const { line, server } = servedLine({ earlyChannels: true })
  const leg = await openClient(line, { checkHostKey: () => true, pipelining: true })
  expect((await leg.attempt('olga', { method: 'none' })).accepted).toBe(true)
  const [far, device] = [leg.connection(), await server]
  opened.defer(async () => {
    await far.end()
    await device.end()
  })
  /** Resolves when the client has asked for a program on the newest channel. */
  let asked: Promise<void> | undefined
  const watched = () => {
    const { promise, resolve } = Promise.withResolvers<void>()
    asked = promise
    return { ...recorder, program: () => resolve() }
  }
  void pipe(
    near.server,
    far,
    channelPolicy({
      record: {
        uid: 'f'.repeat(64),
        events: { add: () => nothing, end: nothing },
        note: nothing,
        held: nothing,
        resumed: nothing,
        released: nothing,
        shared: nothing,
        leave: nothing,
        finish: nothing,
      },
      limits: undefined,
      announcement: '',
      client: { address: '192.0.2.7', port: 40_000 },
      person: '',
      agentIsOurs: true,
      acceptEnv: [],
      closesAtEof: false,
      lostMessage: () => 'The connection to harbour.crane was lost.',
      recorder: watched,
      mask: (text) => text,
      policy: livePolicy(sessionPolicy(openPolicy)),
      active: nothing,
    }),
  )
  void (async () => {
    for await (const opening of device.channels) {
      await asked
      opening.refuse(4, hostile)
    }
  })()
  const whole = opened.move()
  return { client: near.client, device, [Symbol.asyncDispose]: () => whole.disposeAsync() }
}

const sentence = '\r\nThe device refused the session: no ?[31mroom? here??\r\n'

type Request = Parameters<typeof writeRequest>[0]

/** Asks as clients do, which wait for no answer. */
function ask(channel: Channel, request: Request): void {
  const { name, payload } = writeRequest(request)
  void channel.request(name, payload, true).catch(nothing)
}

test('a command reads on its standard error why the device refused its session, as plain text', async () => {
  await using ends = await refusing()
  // Twice, because the connection stays.
  for (const command of ['true', 'false']) {
    const channel = await ends.client.open('session')
    ask(channel, { type: 'exec', command })
    const { stdout, stderr } = await all(channel)
    expect([stdout.toString(), stderr.toString()]).toEqual(['', sentence])
  }
})

test('a shell in a terminal shows it', async () => {
  await using ends = await refusing()
  const channel = await ends.client.open('session')
  const size = { columns: 80, rows: 24, width: 0, height: 0 }
  ask(channel, { type: 'pty-req', pty: { terminal: 'vt100', ...size, modes: new Map() } })
  ask(channel, { type: 'shell' })
  expect((await all(channel)).stdout.toString()).toBe(sentence)
})
