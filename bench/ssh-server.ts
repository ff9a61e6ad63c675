// A program for bench/ssh.ts: an SSH server on our own package or on npm's `ssh2`, whichever its first word
// says, that lets in one key and runs nothing: what it is asked for it does itself, so that its processor
// time is that of the protocol.
//   true         ends at once               hold         stays until it is let go
//   down <n>     n bytes come               up           takes whatever comes
// The server prints the port on which it listens, and collects garbage at SIGUSR2 if its Node lets it.
import { readFileSync } from 'node:fs'
import { createRequire } from 'node:module'
import net, { type AddressInfo } from 'node:net'
import type { Duplex } from 'node:stream'
import { acceptConnection, parsePrivateKey, receiveSession, type Channel } from '../ssh/src/index.ts'

const [kind, hostKeyFile = '', allowed = ''] = process.argv.slice(2)
const hostKey = readFileSync(hostKeyFile, 'utf8')
const allowedBlob = Buffer.from(allowed, 'base64')
/** Node's read from a program's pipe. */
const chunk = Buffer.alloc(64 * 1024)

function amountOf(command: string): number {
  return Number(/^down (\d+)$/.exec(command)?.[1] ?? 0)
}

async function serveOurs(socket: net.Socket): Promise<void> {
  const connection = await acceptConnection(socket, {
    hostKeys: [parsedHostKey],
    methods: ['publickey'],
    authenticate: (attempt) =>
      Promise.resolve('key' in attempt && attempt.key.blob.equals(allowedBlob) ? 'accept' : 'refuse'),
    channelTypes: ['session'],
  })
  for await (const opening of connection.channels) void runOurs(opening.accept()).catch(() => undefined)
}

async function runOurs(channel: Channel): Promise<void> {
  const session = await receiveSession(channel, () => true)
  if (session?.program.type !== 'exec') return channel.close()
  const { command } = session.program
  for (let left = amountOf(command); left > 0; left -= chunk.length)
    await channel.write(left < chunk.length ? chunk.subarray(0, left) : chunk)
  if (command === 'up') while (await channel.read());
  if (command === 'hold') await channel.closed
  else await session.exit(0)
}

/** The used part; the package has no types of its own. */
interface Ssh2 {
  readonly Server: new (
    options: { readonly hostKeys: readonly string[] },
    onClient: (client: Ssh2Client) => void,
  ) => net.Server
  readonly utils: { parseKey(text: string): { verify(blob: Buffer, signature: Buffer): boolean } }
}
interface Ssh2Client {
  on(event: 'authentication', hear: (context: Ssh2Attempt) => void): this
  on(event: 'session', hear: (accept: () => Ssh2Session) => void): this
  on(event: 'error', hear: (error: Error) => void): this
  setNoDelay(noDelay: boolean): this
}
interface Ssh2Attempt {
  readonly method: string
  readonly key?: { readonly data: Buffer }
  readonly signature?: Buffer
  readonly blob?: Buffer
  accept(): void
  reject(methods: readonly string[]): void
}
interface Ssh2Session {
  on(
    event: 'exec',
    hear: (
      accept: () => Duplex & { exit(status: number): void },
      _: unknown,
      info: { readonly command: string },
    ) => void,
  ): this
}

function serveSsh2(): net.Server {
  const { Server, utils } = createRequire(import.meta.url)('ssh2') as Ssh2
  const key = utils.parseKey(`ssh-ed25519 ${allowed}`)
  return new Server({ hostKeys: [hostKey] }, (client) => {
    client.setNoDelay(true).on('error', () => undefined)
    client.on('authentication', (context) => {
      const known = context.method === 'publickey' && context.key?.data.equals(allowedBlob) === true
      const good = known && (!context.signature || key.verify(context.blob!, context.signature))
      if (good) context.accept()
      else context.reject(['publickey'])
    })
    client.on('session', (accept) => {
      accept().on('exec', (take, _, { command }) => {
        const stream = take()
        stream.on('error', () => undefined)
        void runSsh2(stream, command)
      })
    })
  })
}

async function runSsh2(stream: Duplex & { exit(status: number): void }, command: string): Promise<void> {
  for (let left = amountOf(command); left > 0; left -= chunk.length) {
    const room = stream.write(left < chunk.length ? chunk.subarray(0, left) : chunk)
    if (!room) await new Promise((resolve) => void stream.once('drain', resolve))
  }
  if (command === 'up') {
    stream.resume()
    await new Promise((resolve) => void stream.once('end', resolve))
  }
  if (command === 'hold') return
  stream.exit(0)
  stream.end()
}

const parsedHostKey = parsePrivateKey(hostKey)
const listener =
  kind === 'ours'
    ? net.createServer({ noDelay: true }, (socket) => void serveOurs(socket).catch(() => undefined))
    : serveSsh2()
// So that a profile is written.
process.once('SIGTERM', () => process.exit(0))
process.on('SIGUSR2', () => {
  globalThis.gc?.()
  console.log('collected')
})
listener.listen(0, '127.0.0.1', () => console.log(`listening on ${(listener.address() as AddressInfo).port}`))
