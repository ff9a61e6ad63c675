// Many channels on one connection of the real OpenSSH, and readers that do not read: everybody gets what is
// theirs, nobody waits for somebody else, and whoever is slow holds a window of bytes and no more, however
// much there is to send.
import { spawn } from 'node:child_process'
import { existsSync } from 'node:fs'
import { expect, test, vi } from 'vitest'
import { atRest, eventually } from '../../tests/harness/eventually.ts'
import { connect } from '../src/client.ts'
import { startSession } from '../src/connection/session.ts'
import { parsePrivateKey } from '../src/keys/private-key.ts'
import { checker, flow } from './flow.ts'
import { folder, keygen, quietArgs, run, startSshd } from './programs.ts'
import { runProgram, startServer } from './server.ts'

vi.setConfig({ testTimeout: 120_000 })

const many = 64
const mebibyte = 1024 * 1024

test('64 sessions at once of one OpenSSH client with our server', async () => {
  using where = folder()
  const everybody = Promise.withResolvers<void>()
  await using server = await startServer({
    async onSession(session) {
      // Nobody begins before all are there.
      if (server.sessions.length === many) everybody.resolve()
      await everybody.promise
      await runProgram(session)
    },
  })
  const control = `ControlPath=${where.file('control')}`
  const master = run('ssh', [...quietArgs(server.port, control, 'ControlMaster=yes'), '-N', 'olga@127.0.0.1'])
  await eventually(() => expect(existsSync(where.file('control'))).toBe(true))
  const outcomes = await Promise.all(
    Array.from({ length: many }, async (_, n) => {
      const sent = Buffer.alloc(mebibyte + n, n)
      const { stdout, status } = await run(
        'ssh',
        [...quietArgs(server.port, control), 'olga@127.0.0.1', `cat; exit ${n}`],
        sent,
      )
      return [stdout.equals(sent), status]
    }),
  )
  expect(outcomes).toEqual(Array.from({ length: many }, (_, n) => [true, n]))
  expect(server.connections.length).toBe(1)
  await run('ssh', [...quietArgs(server.port, control), '-O', 'exit', 'olga@127.0.0.1'])
  await master
})

test('64 sessions at once of our client with sshd', async () => {
  using where = folder()
  await keygen(where, 'olga', '-t', 'ed25519')
  // So deep, bash does not read the settings of whoever runs the test, which may take long 64 times.
  await using sshd = await startSshd(where, where.read('olga.pub'), 'SetEnv SHLVL=9')
  await using connection = await connect(sshd.connect(), {
    user: sshd.user,
    proofs: [{ method: 'publickey', key: parsePrivateKey(where.read('olga')) }],
    checkHostKey: () => true,
  })
  const sessions = await Promise.all(
    Array.from({ length: many }, async () =>
      startSession(connection, { program: { type: 'exec', command: 'cat; exit 3' } }),
    ),
  )
  const outcomes = await Promise.all(
    sessions.map(async ({ channel, exit }, n) => {
      const sent = Buffer.alloc(mebibyte + n, n)
      const sending = channel.write(sent).then(async () => channel.end())
      const parts: Buffer[] = []
      for await (const { bytes } of channel) parts.push(bytes)
      await sending
      return [Buffer.concat(parts).equals(sent), await exit]
    }),
  )
  expect(outcomes).toEqual(sessions.map(() => [true, { type: 'exit-status', status: 3 }]))
})

/** Resolves when the number has not changed for a while. */
const standsStill = async (number: () => number): Promise<number> => atRest(number, 500, 1)

test('a client that does not read makes the server wait, and then gets everything', async () => {
  let written = 0
  const total = 200 * mebibyte
  await using server = await startServer({
    async onSession({ channel, exit }) {
      for (const piece of flow(total)) {
        await channel.write(piece)
        written += piece.length
      }
      await exit(0)
    },
  })
  const child = spawn('ssh', [...quietArgs(server.port), 'olga@127.0.0.1', 'anything'], {
    stdio: ['ignore', 'pipe', 'inherit'],
  })
  const ended = new Promise((resolve) => void child.once('close', resolve))
  // Its window, its pipe, and the sockets between; far less than there is.
  expect(await standsStill(() => written)).toBeLessThan(20 * mebibyte)
  const check = checker()
  for await (const part of child.stdout as AsyncIterable<Buffer>) check.take(part)
  expect(check.result).toEqual({ bytes: total, right: true })
  expect(await ended).toBe(0)
})

test('a server that does not read makes the client wait, and then gets everything', async () => {
  const [start, check] = [Promise.withResolvers<void>(), checker()]
  await using server = await startServer({
    async onSession({ channel, exit }) {
      await start.promise
      for await (const { bytes } of channel) check.take(bytes)
      await exit(0)
    },
  })
  const client = spawn('ssh', [...quietArgs(server.port), 'olga@127.0.0.1', 'anything'], {
    stdio: ['pipe', 'ignore', 'inherit'],
  })
  const ended = new Promise((resolve) => void client.once('close', resolve))
  const total = 200 * mebibyte
  let sent = 0
  const sending = (async () => {
    for (const piece of flow(total)) {
      await new Promise<void>((resolve) => void client.stdin.write(piece, () => resolve()))
      sent += piece.length
    }
    client.stdin.end()
  })()
  const before_bytes = process.memoryUsage().rss
  expect(await standsStill(() => sent)).toBeLessThan(20 * mebibyte)
  expect(process.memoryUsage().rss - before_bytes).toBeLessThan(100 * mebibyte)
  start.resolve()
  await sending
  expect(await ended).toBe(0)
  expect(check.result).toEqual({ bytes: total, right: true })
})
