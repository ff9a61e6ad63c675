// Libraries of Python as peers, in both roles, through small scripts in peers/. Both scripts of a role take
// the same words, so that one list of claims holds for every library; what only one of them has is in the
// test of that one.
import { spawn } from 'node:child_process'
import { getDiffieHellman, randomBytes } from 'node:crypto'
import { mkdirSync, readFileSync, statSync } from 'node:fs'
import net from 'node:net'
import path from 'node:path'
import { createInterface } from 'node:readline'
import { afterAll, beforeAll, describe, expect, test } from 'vitest'
import type { Algorithms } from '../src/algorithms.ts'
import { allAlgorithms } from '../src/algorithms.ts'
import type { Proof } from '../src/auth/client.ts'
import type { Attempt, Decision } from '../src/auth/server.ts'
import { connect, type ConnectOptions } from '../src/client.ts'
import type { Connection } from '../src/connection/connection.ts'
import { joinSocket, readPort, writeListen, writeTcpForward } from '../src/connection/forwarding.ts'
import { privateKeyFile, type PrivateKey } from '../src/keys/private-key.ts'
import { publicKeyLine } from '../src/keys/public-key.ts'
import { openSftp } from '../src/sftp/client.ts'
import { localFiles } from '../src/sftp/files.ts'
import { serveSftp } from '../src/sftp/server.ts'
import {
  agreed,
  everyKey,
  oneByOne,
  roundTrip,
  sha256,
  startDaemon,
  startEcho,
  type Daemon,
} from './peers.ts'
import { folder, freePort, type Folder } from './programs.ts'
import { all, outputOf } from './reading.ts'
import { runProgram, startServer, type TestServer, type TestServerOptions } from './server.ts'

/** The one of the system, for which the libraries are installed; the path may lead to another. */
const python = '/usr/bin/python3'
const scripts = path.join(import.meta.dirname, 'peers')
const env = { PYTHONDONTWRITEBYTECODE: '1' }

/** The answer of a script; `error` when it failed. */
export type Told = Record<string, unknown>

export interface Worker extends AsyncDisposable {
  ask(request: Record<string, unknown>): Promise<Told>
}

export function startWorker(script: string): Worker {
  const child = spawn(python, [path.join(scripts, script)], {
    stdio: ['pipe', 'pipe', 'pipe'],
    env: { ...process.env, ...env },
  })
  const waiting: PromiseWithResolvers<Told>[] = []
  let errors = ''
  child.stdin.on('error', () => undefined)
  child.stderr.on('data', (chunk: Buffer) => (errors += chunk.toString()))
  createInterface({ input: child.stdout }).on('line', (line) =>
    waiting.shift()?.resolve(JSON.parse(line) as Told),
  )
  const ended = new Promise<void>((resolve) => {
    const end = (): void => {
      for (const one of waiting.splice(0)) one.reject(new Error(`${script} ended: ${errors}`))
      resolve()
    }
    child.on('error', end)
    child.on('close', end)
  })
  return {
    async ask(request) {
      const answer = Promise.withResolvers<Told>()
      waiting.push(answer)
      child.stdin.write(`${JSON.stringify(request)}\n`)
      return answer.promise
    },
    async [Symbol.asyncDispose]() {
      child.stdin.end()
      child.kill()
      await ended
    },
  }
}

export interface PythonPeer {
  readonly client: string
  readonly server: string
  readonly shared: Partial<Algorithms>
  /** The software that our ident must name. */
  readonly software?: string
  /** False where it breaks the rules while keys are renewed. */
  readonly renewsKeys?: boolean
}

const password = 'sesame'
const often = { rekey_bytes: 1_000_000 }
/** Who wants new keys while data flows: theirs, ours. */
const renewals = (
  peer: PythonPeer,
  us: string,
): [string, { rekey_bytes?: number }, { rekey_bytes?: number }][] =>
  peer.renewsKeys === false
    ? [['nobody wants new keys', {}, {}]]
    : [
        ['nobody wants new keys', {}, {}],
        ['it wants new keys every megabyte', often, {}],
        [`${us} wants new keys every megabyte`, {}, often],
      ]
/** More than a packet, and not a multiple of one. */
const script = 'head -c 100001 /dev/zero | tr "\\0" x; echo err >&2; exit 5'
const xs = sha256(Buffer.alloc(100_001, 'x'))

/** A folder with keys of every type, and with bytes. */
export interface Materials extends Disposable {
  readonly where: Folder
  readonly keys: readonly PrivateKey[]
  readonly hostKeys: readonly PrivateKey[]
  readonly bytes: Buffer
  /** The file of one of the keys. */
  fileOf(key: PrivateKey): string
}

/** Keys take long to make, and all of a file can have the same. */
let made: { readonly keys: PrivateKey[]; readonly hostKeys: PrivateKey[] } | undefined

export function materials(): Materials {
  const where = folder()
  const { keys, hostKeys } = (made ??= { keys: everyKey(), hostKeys: everyKey() })
  const bytes = randomBytes(8 * 1024 * 1024)
  where.write('bytes', bytes)
  for (const key of keys) where.write(`user-${key.type}`, privateKeyFile(key))
  for (const key of hostKeys) where.write(`host-${key.type}`, privateKeyFile(key))
  where.write('authorized_keys', keys.map(({ type, blob }) => `${publicKeyLine(type, blob)}\n`).join(''))
  return {
    where,
    keys,
    hostKeys,
    bytes,
    fileOf: ({ type }) => where.file(`user-${type}`),
    [Symbol.dispose]: where[Symbol.dispose],
  }
}

/** Our server, which lets in whoever has one of the keys or knows the password. */
export async function serve(
  { keys, hostKeys, where }: Materials,
  options: TestServerOptions = {},
): Promise<TestServer> {
  const authenticate = async (attempt: Attempt): Promise<Decision> => {
    if (attempt.method === 'password') return attempt.password === password ? 'accept' : 'refuse'
    if (attempt.method === 'keyboard-interactive') {
      const [answer] = await attempt.ask([{ text: 'Password: ', echo: false }], 'Door', 'Say it.')
      return answer === password ? 'accept' : 'refuse'
    }
    if (attempt.method === 'none') return 'refuse'
    return keys.some((key) => key.blob.equals(attempt.key.blob)) ? 'accept' : 'refuse'
  }
  return startServer({
    algorithms: allAlgorithms,
    hostKeys,
    methods: ['publickey', 'password', 'keyboard-interactive'],
    authenticate,
    async onSession(session) {
      if (session.program.type !== 'subsystem') return runProgram(session)
      await serveSftp(session.channel, localFiles(where.path))
      return session.exit(0)
    },
    ...options,
  })
}

/** All that a client of theirs is told to connect with, unless the test says otherwise. */
export function wish(given: Materials, peer: PythonPeer, server: TestServer): Record<string, unknown> {
  const host_key = given.hostKeys.map(({ type, blob }) => publicKeyLine(type, blob))
  return { do: 'connect', port: server.port, user: 'olga', host_key, algorithms: only(peer, {}) }
}

/** The algorithms that both know, fewer where these say so. */
function only({ shared }: PythonPeer, fewer: Partial<Algorithms>): Record<string, readonly string[]> {
  const kinds = ['kex', 'ciphers', 'macs', 'hostKey'] as const
  return Object.fromEntries(
    kinds.map((kind) => [kind, (shared[kind] ?? []).filter((name) => fewer[kind]?.includes(name) ?? true)]),
  )
}

const saying = ({ software }: PythonPeer): { readonly software?: string } =>
  software === undefined ? {} : { software }

export function claimsAboutClient(peer: PythonPeer): void {
  describe('their client with our server', () => {
    let given: Materials
    let worker: Worker
    beforeAll(() => {
      given = materials()
      worker = startWorker(peer.client)
    })
    afterAll(async () => {
      await worker[Symbol.asyncDispose]()
      given[Symbol.dispose]()
    })
    /** Connects with one of our keys, unless the wish is another. */
    const login = async (
      server: TestServer,
      more: Record<string, unknown> = { key: given.fileOf(given.keys[0]!) },
    ): Promise<Told> => worker.ask({ ...wish(given, peer, server), ...more })
    const ran = { length: 100_001, sha256: xs, stderr: 'err\n', status: 5 }

    test('keys of every type get in, and a command runs', async () => {
      await using server = await serve(given)
      for (const key of given.keys) {
        expect([key.type, await login(server, { key: given.fileOf(key) })]).toEqual([
          key.type,
          { authenticated: true },
        ])
        expect(await worker.ask({ do: 'execute', command: script })).toEqual(ran)
        await worker.ask({ do: 'close' })
      }
      expect(server.failures).toEqual([])
    })

    test('a right password gets in, by either method, and a wrong one does not', async () => {
      await using server = await serve(given)
      for (const method of ['password', 'interactive']) {
        expect(await login(server, { [method]: password })).toEqual({ authenticated: true })
        await worker.ask({ do: 'close' })
        expect((await login(server, { [method]: 'other' })).error).toMatch(
          /^(?:AuthenticationException|PermissionDenied)|Too many authentication failures/,
        )
      }
    })

    test.each(oneByOne(peer.shared))('%s', async (name, algorithms) => {
      await using server = await serve(given)
      const key = given.fileOf(given.keys[0]!)
      expect(await login(server, { key, algorithms: only(peer, algorithms) })).toEqual({
        authenticated: true,
      })
      expect(await worker.ask({ do: 'execute', command: script })).toEqual(ran)
      await worker.ask({ do: 'close' })
      expect(agreed(server.connections[0]!)).toContain(name)
    })

    test.each(renewals(peer, 'our server'))(
      'what is piped in comes back while %s',
      async (_, theirs, ours) => {
        await using server = await serve(given, ours)
        await login(server, { key: given.fileOf(given.keys[0]!), ...theirs })
        const { transport } = server.connections[0]!
        const first = transport.negotiated
        const told = await worker.ask({ do: 'execute', command: 'cat', input: given.where.file('bytes') })
        expect(told).toMatchObject({ length: given.bytes.length, sha256: sha256(given.bytes), status: 0 })
        // Every exchange negotiates anew.
        expect(transport.negotiated === first).toBe(theirs !== often && ours !== often)
        await worker.ask({ do: 'close' })
      },
    )

    test('files go there and come back, and are what they were', async () => {
      await using server = await serve(given, saying(peer))
      await login(server)
      const [remote, back] = [given.where.file('remote'), given.where.file('back')]
      expect(await worker.ask({ do: 'sftp', local: given.where.file('bytes'), remote, back })).toEqual({
        names: ['link', 'second'],
        size: given.bytes.length,
        mode: 0o640,
        mtime: 1_000_000_001,
        link: 'second',
        resolved: `${remote}/second`,
        middle: 'changed',
        missing: 'not found',
      })
      expect(readFileSync(back).equals(given.bytes)).toBe(true)
      await worker.ask({ do: 'close' })
    })

    test('ports are forwarded both ways', async () => {
      await using server = await serve(given)
      using echo = await startEcho()
      await login(server)
      const told = await worker.ask({ do: 'direct', port: echo.port, input: given.where.file('bytes') })
      expect(told).toEqual({ length: given.bytes.length, sha256: sha256(given.bytes) })
      const { port } = await worker.ask({ do: 'listen' })
      const sent = given.bytes.subarray(0, 1_000_003)
      expect((await roundTrip(Number(port), sent)).equals(sent)).toBe(true)
      await worker.ask({ do: 'close' })
    })
  })
}

/** Their server, which lets in whoever has one of the keys or knows the password, unless more is said. */
export async function startPythonServer(
  peer: PythonPeer,
  { where, hostKeys }: Materials,
  more: Record<string, unknown> = {},
): Promise<Daemon> {
  const port = await freePort()
  // In the format of moduli(5); the groups are those of RFC 3526.
  const moduli = ['modp15', 'modp16']
    .map((name) => getDiffieHellman(name).getPrime())
    .map(
      (prime) => `20260101000000 2 6 100 ${prime.length * 8 - 1} 2 ${prime.toString('hex').toUpperCase()}\n`,
    )
  const settings = {
    port,
    host_keys: hostKeys.map(({ type }) => where.file(`host-${type}`)),
    authorized_keys: where.file('authorized_keys'),
    password,
    algorithms: only(peer, {}),
    moduli: where.write('moduli', moduli.join('')),
    ...more,
  }
  return startDaemon(python, [path.join(scripts, peer.server), JSON.stringify(settings)], port, env)
}

export function claimsAboutServer(peer: PythonPeer): void {
  describe('our client with their server', () => {
    let given: Materials
    let daemon: Daemon
    beforeAll(async () => {
      given = materials()
      daemon = await startPythonServer(peer, given)
    })
    afterAll(async () => {
      await daemon[Symbol.asyncDispose]()
      given[Symbol.dispose]()
    })
    const login = async (
      proof?: Proof,
      options: Partial<ConnectOptions> = {},
      to = daemon,
    ): Promise<Connection> =>
      connect(to.connect(), {
        user: 'olga',
        proofs: [proof ?? { method: 'publickey', key: given.keys[0]! }],
        checkHostKey: (blob) => given.hostKeys.some((key) => key.blob.equals(blob)),
        ...options,
      })
    const interactive = (answer: string): Proof => ({
      method: 'keyboard-interactive',
      answer: async ({ prompts }) => prompts.map(() => answer),
    })

    test('keys of every type get in, and a command runs', async () => {
      for (const key of given.keys) {
        await using connection = await login({ method: 'publickey', key })
        const { stdout, stderr, exit } = await outputOf(connection, 'cat; echo err >&2; exit 9', 'some input')
        const seen = [key.type, stdout.toString(), stderr.toString(), exit]
        expect(seen).toEqual([key.type, 'some input', 'err\n', { type: 'exit-status', status: 9 }])
      }
    })

    test('a right password gets in, by either method, and a wrong one does not', async () => {
      for (const proof of [{ method: 'password', password } as const, interactive(password)]) {
        await using connection = await login(proof)
        expect((await outputOf(connection, 'echo in')).stdout.toString()).toBe('in\n')
      }
      for (const proof of [{ method: 'password', password: 'other' } as const, interactive('other')]) {
        await expect(login(proof)).rejects.toMatchObject({ name: 'AuthenticationFailed' })
      }
    })

    test.each(oneByOne(peer.shared))('%s', async (name, algorithms) => {
      await using connection = await login(undefined, { algorithms })
      const { stdout, exit } = await outputOf(connection, script)
      expect([sha256(stdout), exit]).toEqual([xs, { type: 'exit-status', status: 5 }])
      expect(agreed(connection)).toContain(name)
    })

    test.each(renewals(peer, 'our client'))('what is sent comes back while %s', async (_, theirs, ours) => {
      await using other = await startPythonServer(peer, given, theirs)
      await using connection = await login(undefined, ours, other)
      const first = connection.transport.negotiated
      const { stdout } = await outputOf(connection, 'cat', given.bytes)
      expect(stdout.equals(given.bytes)).toBe(true)
      expect(connection.transport.negotiated === first).toBe(theirs !== often && ours !== often)
    })

    test('files go there and come back, and are what they were', async () => {
      await using connection = await login(undefined, saying(peer))
      await using client = await openSftp(connection)
      const at = (name: string): string => path.join(given.where.file('ours'), name)
      mkdirSync(at(''))
      await client.write(
        at('first'),
        [given.bytes.subarray(0, 100_001), given.bytes.subarray(100_001)],
        0o600,
      )
      expect(readFileSync(at('first')).equals(given.bytes)).toBe(true)
      await client.rename(at('first'), at('second'))
      await client.link('second', at('link'))
      await client.change(at('second'), { mode: 0o640, atime: 1_000_000_000, mtime: 1_000_000_001 })
      expect(await client.stat(at('link'))).toMatchObject({ size: given.bytes.length, mtime: 1_000_000_001 })
      expect(statSync(at('second')).mode & 0o777).toBe(0o640)
      expect([await client.readLink(at('link')), await client.resolve(at('link'))]).toEqual([
        'second',
        at('second'),
      ])
      const names: string[] = []
      for await (const entry of client.list(at(''))) names.push(entry.name)
      expect(names.filter((name) => !/^\.+$/.test(name)).toSorted()).toEqual(['link', 'second'])
      const parts: Buffer[] = []
      for await (const part of client.read(at('second'))) parts.push(part)
      expect(Buffer.concat(parts).equals(given.bytes)).toBe(true)
      await client.remove(at('link'))
      await client.remove(at('second'))
      await client.removeFolder(at(''))
      await expect(client.stat(at(''))).rejects.toMatchObject({ name: 'SftpFailure', code: 2 })
    })

    test('ports are forwarded both ways', async () => {
      using echo = await startEcho()
      await using connection = await login(undefined, { channelTypes: ['forwarded-tcpip'] })
      const direct = await connection.open(
        'direct-tcpip',
        writeTcpForward({ host: '127.0.0.1', port: echo.port, origin: '127.0.0.1', originPort: 1 }),
      )
      const [{ stdout }] = await Promise.all([
        all(direct),
        direct.write(given.bytes).then(async () => direct.end()),
      ])
      expect(stdout.equals(given.bytes)).toBe(true)

      const port = readPort((await connection.request('tcpip-forward', writeListen('127.0.0.1', 0)))!)
      const joining = (async () => {
        const opening = (await connection.channels.next())!
        await joinSocket(
          opening.accept(),
          net.connect({ port: echo.port, host: '127.0.0.1', allowHalfOpen: true }),
        )
      })()
      const sent = given.bytes.subarray(0, 1_000_003)
      expect((await roundTrip(port, sent)).equals(sent)).toBe(true)
      await joining
    })
  })
}
