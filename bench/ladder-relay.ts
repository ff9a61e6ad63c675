// The relay of bench/ladder.ts: a gateway that is built up layer by layer. It listens for one client and for
// one device, as the gateway does, and passes bytes between them through as many of the gateway's layers as
// the rung says, with the same settings. Every rung has all layers of the rungs before it, but for `pipe`,
// which replaces the loop of `legs`.
import { generateKeyPairSync } from 'node:crypto'
import { once } from 'node:events'
import http from 'node:http'
import net, { type AddressInfo } from 'node:net'
import type { Duplex } from 'node:stream'
import { acceptBytes, openMux } from '@hawser/mux'
import { channelPolicy } from '../server/src/gateway/channels/channels.ts'
import { keyFrom } from '../server/src/recording/key.ts'
import { recordings } from '../server/src/recording/recordings.ts'
import { diskStorage } from '../server/src/recording/storage/disk.ts'
import { sessionRecorder } from '../server/src/recording/tap.ts'
import {
  acceptConnection,
  clientAlgorithms,
  connect,
  generatePrivateKey,
  joinSocket,
  pipe,
  receiveSession,
  startSession,
  type Channel,
  type ClientOptions,
  type Connection,
  type PipeOptions,
} from '../ssh/src/index.ts'
import { openPolicy } from '@hawser/contract/policies'
import { sessionPolicy } from '../server/src/domain/access/session-policy.ts'
import { livePolicy } from '../server/src/gateway/channels/live-policy.ts'

/** From the ground up. */
export const rungs = ['tcp', 'websocket', 'yamux', 'leg', 'legs', 'pipe', 'taps', 'recording'] as const
export type Rung = (typeof rungs)[number]
export const has = (rung: Rung, layer: Rung): boolean => rungs.indexOf(rung) >= rungs.indexOf(layer)

export const cipher = 'aes128-gcm@openssh.com'

/** A shell in a terminal: only terminals are recorded. */
export const shell = {
  program: { type: 'shell' },
  pty: { terminal: 'xterm', columns: 80, rows: 24, width: 0, height: 0, modes: new Map<number, number>() },
} as const

export interface RelayPorts {
  readonly near: number
  readonly far: number
}

export interface LadderRelay {
  readonly ports: RelayPorts
  unwritten_bytes(): number
}

/** `folder`: for recordings. */
export async function startLadderRelay(rung: Rung, folder: string): Promise<LadderRelay> {
  const near = Promise.withResolvers<net.Socket>()
  const far = Promise.withResolvers<Duplex>()
  const kept = recordings({
    storage: diskStorage(folder),
    key: keyFrom(generateKeyPairSync('ed25519').privateKey),
    clock: { now: Date.now },
    onFailed: fail,
  })
  const device = has(rung, 'websocket')
    ? http.createServer().on('upgrade', (...upgrade) => far.resolve(acceptBytes(...upgrade)))
    : net.createServer({ noDelay: true }, far.resolve)
  const ports = {
    near: await listen(net.createServer({ noDelay: true, pauseOnConnect: true }, near.resolve)),
    far: await listen(device),
  }
  Promise.all([near.promise, far.promise])
    .then(([socket, carrier]) => {
      const stream = has(rung, 'yamux')
        ? openMux(carrier, { role: 'client', mostIncoming: 0 }).open()
        : carrier
      if (has(rung, 'leg')) return joinSsh(rung, socket, stream, kept)
      stream.pipe(socket).pipe(stream)
      return undefined
    })
    .catch(fail)
  return { ports, unwritten_bytes: () => kept.unwritten_bytes }
}

/** A failing relay ends its process, and with it the bench. */
function fail(error: unknown): void {
  console.error(error)
  process.exit(1)
}

async function listen(server: net.Server): Promise<number> {
  server.listen(0, '127.0.0.1')
  await once(server, 'listening')
  return (server.address() as AddressInfo).port
}

/** The server's side of a leg, open to everybody. */
export function acceptLeg(stream: Duplex): Promise<Connection> {
  return acceptConnection(stream, {
    hostKeys: [generatePrivateKey('ed25519')],
    methods: ['password'],
    authenticate: () => Promise.resolve('accept'),
    channelTypes: ['session'],
  })
}

export function dialLeg(stream: Duplex, options: Partial<ClientOptions> = {}): Promise<Connection> {
  return connect(stream, {
    user: 'bench',
    proofs: [{ method: 'password', password: 'bench' }],
    checkHostKey: () => true,
    algorithms: { ...clientAlgorithms, ciphers: [cipher] },
    ...options,
  })
}

async function joinSsh(
  rung: Rung,
  socket: net.Socket,
  stream: Duplex,
  kept: ReturnType<typeof recordings>,
): Promise<void> {
  // As the gateway dials a device; see server/src/gateway/device/device-leg.ts.
  const far = await dialLeg(stream, { speakSecond: true, packet_bytes: 128 * 1024 })
  if (rung === 'leg') return joinSocket((await startSession(far, shell)).channel, socket)
  const accepting = acceptLeg(socket)
  socket.resume()
  const near = await accepting
  if (rung === 'legs') return joinByHand(near, far)
  await pipe(near, far, has(rung, 'taps') ? policy(rung === 'recording', kept) : {})
}

/** One session, joined by two loops. */
async function joinByHand(near: Connection, far: Connection): Promise<void> {
  for await (const opening of near.channels) {
    const channel = opening.accept()
    await receiveSession(channel, () => true)
    const { channel: other } = await startSession(far, shell)
    await Promise.all([copy(channel, other), copy(other, channel)])
  }
}

async function copy(from: Channel, to: Channel): Promise<void> {
  for (let chunk = await from.read(); chunk; chunk = await from.read())
    await to.write(chunk.bytes, chunk.stream)
}

/** The gateway's rules for a session of our own agent; see server/src/gateway/channels/session.ts. */
function policy(record: boolean, kept: ReturnType<typeof recordings>): PipeOptions {
  const uid = 'f'.repeat(64)
  const recorder = sessionRecorder({
    recordings: kept,
    about: {
      tenant_id: '00000000-0000-4000-8000-00000000beef',
      session_uid: uid,
      device_uid: 'd'.repeat(64),
      username: 'bench',
    },
    settings: { record, continueUnrecorded: false },
    onBegun: () => undefined,
    onOverBudget: () => undefined,
    onFailed: fail,
  })
  const last = { active_at: 0 }
  return channelPolicy({
    record: {
      uid,
      events: { add: () => () => undefined, end: () => undefined },
      note: () => undefined,
      held: () => undefined,
      resumed: () => undefined,
      released: () => undefined,
      shared: () => undefined,
      leave: () => undefined,
      finish: () => undefined,
    },
    limits: undefined,
    announcement: '',
    person: '',
    client: { address: '127.0.0.1', port: 22 },
    agentIsOurs: true,
    acceptEnv: [],
    closesAtEof: false,
    lostMessage: () => 'The connection to the device was lost.',
    recorder: recorder.channel,
    mask: recorder.mask,
    policy: livePolicy(sessionPolicy(openPolicy)),
    active: () => void (last.active_at = performance.now()),
  })
}
