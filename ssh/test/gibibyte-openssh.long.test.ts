// A gibibyte each way at once with the real OpenSSH, which renews its keys all the time; in both roles. Not a
// byte is lost, doubled or out of place. Every four megabytes it is, because every one would take twice as
// long; rekey-openssh.long.test.ts has that, with fewer bytes and over every kind of cipher.
import path from 'node:path'
import { expect, test, vi } from 'vitest'
import { connect } from '../src/client.ts'
import { startSession } from '../src/connection/session.ts'
import { parsePrivateKey } from '../src/keys/private-key.ts'
import { checker, flow } from './flow.ts'
import { folder, keygen, quietArgs, run, startSshd } from './programs.ts'
import { runProgram, startServer } from './server.ts'

vi.setConfig({ testTimeout: 300_000 })

const gibibyte = 1024 ** 3
const node = `'${process.execPath}' '${path.join(import.meta.dirname, 'flow.ts')}'`

test('the OpenSSH client with our server', async () => {
  let first: unknown
  await using server = await startServer({
    async onSession(session) {
      first = server.connections[0]!.transport.negotiated
      await runProgram(session)
    },
  })
  const ssh = [
    'ssh',
    ...quietArgs(server.port, 'RekeyLimit=4M', 'Ciphers=aes128-gcm@openssh.com'),
    'olga@127.0.0.1',
    'cat',
  ].join(' ')
  const { stdout, stderr } = await run('sh', ['-c', `${node} make ${gibibyte} | ${ssh} | ${node} check`])
  expect([stdout.toString(), stderr]).toEqual([`${gibibyte} right\n`, ''])
  // Every exchange negotiates anew.
  expect(server.connections[0]!.transport.negotiated).not.toBe(first)
})

test('our client with sshd', async () => {
  using where = folder()
  await keygen(where, 'olga', '-t', 'ed25519')
  await using sshd = await startSshd(where, where.read('olga.pub'), 'RekeyLimit 4M')
  await using connection = await connect(sshd.connect(), {
    user: sshd.user,
    proofs: [{ method: 'publickey', key: parsePrivateKey(where.read('olga')) }],
    checkHostKey: () => true,
  })
  const first = connection.transport.negotiated
  const { channel } = await startSession(connection, { program: { type: 'exec', command: 'cat' } })
  const send = async (): Promise<void> => {
    for (const piece of flow(gibibyte)) await channel.write(piece)
    await channel.end()
  }
  const sending = send()
  const check = checker()
  for await (const { bytes } of channel) check.take(bytes)
  await sending
  expect(check.result).toEqual({ bytes: gibibyte, right: true })
  expect(connection.transport.negotiated).not.toBe(first)
})
