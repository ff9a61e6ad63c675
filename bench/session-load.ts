// A program for bench/access.ts: many SSH clients in one process, on our own package, because a process for
// each would be most of what is measured. They log in with a key, run `true` again and again, or hold
// sessions open with `cat`.
import { readFileSync } from 'node:fs'
import net from 'node:net'
import {
  clientAlgorithms,
  connect,
  parsePrivateKey,
  startSession,
  type Connection,
  type PrivateKey,
} from '../ssh/src/index.ts'
import { measure } from './kit.ts'
import { kex } from './openssh.ts'
import { takeOrders } from './programs.ts'

interface Login {
  readonly port: number
  readonly user: string
  readonly keyFile: string
}
export type SessionOrder =
  | (Login & { readonly do: 'measure'; readonly seconds: number; readonly clients: number })
  /** Stops at the first refusal. */
  | (Login & { readonly do: 'open'; readonly count: number })
  | { readonly do: 'close' }

/** Concurrent openings. */
const atOnce = 8

const open: Connection[] = []
const keys = new Map<string, PrivateKey>()

function keyIn(file: string): PrivateKey {
  const key = keys.get(file) ?? parsePrivateKey(readFileSync(file, 'utf8'))
  keys.set(file, key)
  return key
}

function logIn({ port, user, keyFile }: Login): Promise<Connection> {
  return connect(net.connect({ port, host: '127.0.0.1' }), {
    user,
    proofs: [{ method: 'publickey', key: keyIn(keyFile) }],
    checkHostKey: () => true,
    algorithms: { ...clientAlgorithms, kex: [kex] },
  })
}

async function runTrue(login: Login): Promise<void> {
  await using connection = await logIn(login)
  const { channel, exit } = await startSession(connection, { program: { type: 'exec', command: 'true' } })
  while (await channel.read());
  const how = await exit
  if (how?.type !== 'exit-status' || how.status !== 0)
    throw new Error('the server did not say that all is well')
}

async function hold(login: Login): Promise<void> {
  const connection = await logIn(login)
  await startSession(connection, { program: { type: 'exec', command: 'cat' } })
  open.push(connection)
}

/** This many more, or up to the first refusal. */
async function holdMany(
  login: Login,
  count: number,
): Promise<{ opened: number; refused: string | undefined }> {
  const before = open.length
  let [waiting, refused]: [number, string | undefined] = [count, undefined]
  const opener = async (): Promise<void> => {
    while (waiting > 0) {
      waiting--
      try {
        await hold(login)
      } catch (error) {
        refused ??= String(error)
        waiting = 0
      }
    }
  }
  await Promise.all(Array.from({ length: Math.min(atOnce, count) }, opener))
  return { opened: open.length - before, refused }
}

takeOrders(async (order: SessionOrder) => {
  if (order.do === 'measure')
    return measure(() => runTrue(order), { seconds: order.seconds, concurrency: order.clients })
  if (order.do === 'open') return holdMany(order, order.count)
  await Promise.all(open.splice(0).map((connection) => connection.end()))
  return {}
})
