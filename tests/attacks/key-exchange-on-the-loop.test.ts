// A key exchange with group 16 and RSA took 14 ms of the only thread, for whoever connected. What takes long
// is computed by other threads now, on both sides of a connection, and what takes a tenth of a millisecond is
// offered first. What comes in while something is computed waits its turn.
import { setImmediate as turn } from 'node:timers/promises'
import { describe, expect, test } from 'vitest'
import {
  allAlgorithms,
  clientAlgorithms,
  connect,
  generatePrivateKey,
  serverAlgorithms,
  type Proof,
} from '@hawser/ssh'
import { Message } from '../../ssh/src/messages.ts'
import { servedLine, type TestedOptions } from '../../ssh/test/pairs.ts'
import { packetWriter } from '../../ssh/src/transport/packets.ts'
import { writeKexInit } from '../../ssh/src/transport/kexinit.ts'
import { message } from '../../ssh/src/wire.ts'
import { countJobs } from './jobs.ts'

const rsa = generatePrivateKey('rsa')
const ed25519 = generatePrivateKey('ed25519')

async function together(kex: string, options: TestedOptions, proof: Proof = { method: 'none' }) {
  const algorithms = { ...allAlgorithms, kex: [kex] }
  const { line, server } = servedLine({ algorithms, ...options })
  const client = await connect(line, { algorithms, user: 'olga', proofs: [proof], checkHostKey: () => true })
  return { client, server: await server, [Symbol.asyncDispose]: async () => client.end() }
}

describe('is computed by other threads', () => {
  test.each([
    'diffie-hellman-group16-sha512',
    'diffie-hellman-group14-sha256',
    'diffie-hellman-group-exchange-sha256',
    'ecdh-sha2-nistp384',
    'ecdh-sha2-nistp521',
  ])('%s with RSA', async (kex) => {
    using jobs = countJobs()
    await using _ = await together(kex, { hostKeys: [rsa] })
    // Of each side: a pair and a product; of the server a signature, which the client verifies.
    expect(jobs.elsewhere).toHaveLength(6)
    expect(jobs.here).toEqual([])
  })

  test('the proof that somebody has an RSA key', async () => {
    using jobs = countJobs()
    const methods = { methods: ['publickey'], authenticate: async () => 'accept' as const }
    await using _ = await together(
      'curve25519-sha256',
      { hostKeys: [ed25519], ...methods },
      { method: 'publickey', key: rsa },
    )
    expect(jobs.elsewhere).toHaveLength(2)
  })
})

test('both sides offer first what is cheap, and last what is not', () => {
  for (const { kex, hostKey } of [serverAlgorithms, clientAlgorithms]) {
    expect(kex.slice(0, 3)).toEqual([
      'mlkem768x25519-sha256',
      'curve25519-sha256',
      'curve25519-sha256@libssh.org',
    ])
    expect(kex.filter((name) => name.startsWith('diffie-hellman'))).toEqual(
      kex.slice(kex.findIndex((name) => name.startsWith('diffie-hellman'))),
    )
    expect(hostKey[0]).toMatch(/^ssh-ed25519/)
    expect(hostKey.slice(-2)).toEqual(['rsa-sha2-512', 'rsa-sha2-256'])
  }
  expect(serverAlgorithms.kex.at(-1)).toBe('diffie-hellman-group16-sha512')
})

test('new keys are made while data passes both ways, and every byte arrives in its place', async () => {
  const { client, server } = await together('diffie-hellman-group16-sha512', { hostKeys: [rsa] })
  const sent = Buffer.alloc(3_000_000)
  for (let at = 0; at < sent.length; at += 4) sent.writeUInt32BE(at, at)
  const echo = (async () => {
    for await (const opening of server.channels) {
      const channel = opening.accept()
      for await (const { bytes } of channel) await channel.write(bytes)
      await channel.end()
      return
    }
  })()
  const channel = await client.open('session')
  const writing = (async () => {
    for (let at = 0; at < sent.length; at += 300_000) {
      if (at % 900_000 === 0) client.rekey()
      if (at % 900_000 === 600_000) server.rekey()
      await channel.write(sent.subarray(at, at + 300_000))
    }
    await channel.end()
  })()
  const back: Buffer[] = []
  for await (const { bytes } of channel) back.push(Buffer.from(bytes))
  await Promise.all([writing, echo])
  expect(Buffer.concat(back).equals(sent)).toBe(true)
  await client.end()
})

test('a client that leaves while something is computed for it leaves nothing behind', async () => {
  const { line, server } = servedLine({ algorithms: allAlgorithms, hostKeys: [rsa] })
  const packets = packetWriter()
  const algorithms = { ...allAlgorithms, kex: ['diffie-hellman-group16-sha512'], hostKey: ['rsa-sha2-512'] }
  const begun = message(Message.kexStart, 600).string(Buffer.alloc(512, 0x55))
  line.resume()
  line.write('SSH-2.0-Boat\r\n')
  line.write(Buffer.concat([...packets.seal(writeKexInit('client', algorithms)), ...packets.seal(begun)]))
  using jobs = countJobs()
  while (jobs.elsewhere.length === 0) await turn()
  line.destroy()
  await expect(server).rejects.toThrow()
  while (jobs.here.length > 0) await turn()
})
