// In a group exchange the server chooses the prime, and the gateway meets devices as a client before anybody
// has accepted them. Any odd number of up to 8192 bits was taken, and computed with. Now only primes that are
// known: nothing is computed for another number, whatever it is. What real sshd does with that is tried, too.
import { duplexPair } from 'node:stream'
import { randomBytes } from 'node:crypto'
import { setImmediate as turn } from 'node:timers/promises'
import { afterAll, beforeAll, describe, expect, test } from 'vitest'
import { allAlgorithms, clientAlgorithms, connect, openClient, parsePrivateKey } from '@hawser/ssh'
import { knownGroup } from '../../ssh/src/kex/dh-group.ts'
import { Message } from '../../ssh/src/messages.ts'
import { folder, keygen, startSshd } from '../../ssh/test/programs.ts'
import { writeKexInit } from '../../ssh/src/transport/kexinit.ts'
import { packetReader, packetWriter } from '../../ssh/src/transport/packets.ts'
import { message } from '../../ssh/src/wire.ts'
import { countJobs } from './jobs.ts'

const gex = 'diffie-hellman-group-exchange-sha256'

/**
 * A device that knows group exchange alone and answers with this group; what our client says to that, and
 * what it computed.
 */
async function offered(
  prime: Buffer,
  generator: Buffer,
): Promise<{ said: number[]; jobs: readonly string[]; why: string }> {
  const [line, socket] = duplexPair()
  const [reader, writer] = [packetReader(), packetWriter()]
  const said: number[] = []
  let ident = false
  line.on('data', (chunk: Buffer) => {
    const at = ident ? 0 : chunk.indexOf('\n') + 1
    ident = true
    reader.push(chunk.subarray(at))
    for (let payload = reader.next(); payload; payload = reader.next()) {
      said.push(payload[0]!)
      const answer = message(Message.gexGroup, 1_200).mpint(prime).mpint(generator)
      if (payload[0] === Message.gexRequest) for (const part of writer.seal(answer)) line.write(part)
    }
  })
  line.write('SSH-2.0-Device\r\n')
  for (const part of writer.seal(writeKexInit('server', { ...allAlgorithms, kex: [gex] }))) line.write(part)
  using jobs = countJobs()
  const failed = openClient(socket, { checkHostKey: () => true, handshake_ms: 5_000 }).then(
    () => 'it went on',
    (error: Error) => error.message,
  )
  while (!said.includes(Message.gexInit) && !said.includes(Message.disconnect)) await turn()
  line.destroy()
  return {
    said: said.filter((type) => type !== Message.kexInit),
    jobs: [...jobs.elsewhere, ...jobs.here],
    why: await failed,
  }
}

const odd = (bytes: number): Buffer => {
  const number = randomBytes(bytes)
  number[0]! |= 0x80
  number[bytes - 1]! |= 1
  return number
}
const two = Buffer.of(2)
const divisible = Buffer.from((2n ** 2047n + 1n).toString(16), 'hex')

describe('a device that is not even accepted', () => {
  test.each<[string, Buffer, Buffer]>([
    ['an odd number of 8192 bits', odd(1_024), two],
    ['a prime of 8192 bits', knownGroup('modp18').prime, two],
    ['an odd number of 3072 bits', odd(384), two],
    ['a number that three divides', divisible, two],
    ['a prime that is known, with another generator', knownGroup('modp15').prime, Buffer.of(4)],
  ])('%s: nothing is computed with it', async (_, prime, generator) => {
    const { said, jobs, why } = await offered(prime, generator)
    expect(why).toContain('a group of its own')
    expect(said).toEqual([Message.gexRequest, Message.disconnect])
    expect(jobs).toEqual([])
  })

  test.each(['modp14', 'modp15', 'modp16'])('%s is taken', async (name) => {
    const { prime, generator } = knownGroup(name)
    expect((await offered(prime, generator)).said).toEqual([Message.gexRequest, Message.gexInit])
  })
})

describe('a real sshd', () => {
  const where = folder()
  const opened = new AsyncDisposableStack()
  beforeAll(async () => keygen(where, 'olga', '-t', 'ed25519'))
  afterAll(async () => {
    await opened.disposeAsync()
    where[Symbol.dispose]()
  })
  async function enter(...settings: string[]): Promise<string> {
    const sshd = opened.use(await startSshd(opened.use(folder()), where.read('olga.pub'), ...settings))
    const proofs = [{ method: 'publickey', key: parsePrivateKey(where.read('olga')) }] as const
    await using connection = await connect(sshd.connect(), {
      user: sshd.user,
      proofs,
      checkHostKey: () => true,
      algorithms: clientAlgorithms,
    })
    return connection.transport.negotiated.kex.name
  }

  test('that has more than group exchange is reached by something better', async () => {
    expect(await enter()).toBe('curve25519-sha256')
    expect(await enter(`KexAlgorithms ${gex},diffie-hellman-group14-sha256`)).toBe(
      'diffie-hellman-group14-sha256',
    )
  })

  test('without primes of its own is reached by it, and with them it is not', async () => {
    expect(await enter(`KexAlgorithms ${gex}`, 'ModuliFile /nowhere')).toBe(gex)
    await expect(enter(`KexAlgorithms ${gex}`)).rejects.toThrow('a group of its own')
  })
})
