// Both halves of every exchange arrive at the same secret, and values that would weaken it are refused.
import { getDiffieHellman } from 'node:crypto'
import { describe, expect, test } from 'vitest'
import { kexMethods } from '../algorithms.ts'
import { mpintBytes } from '../wire.ts'
import { agreementOver } from './dh-group.ts'
import { groupFor, requireKnownGroup } from './group-exchange.ts'
import type { Agreement } from './method.ts'

const direct = [...kexMethods.values()].flatMap((method) =>
  method.kind === 'direct' ? [[method.name, method.agreement] as const] : [],
)

async function exchange(agreement: Agreement): Promise<{ client: Buffer; server: Buffer }> {
  const { value, finish } = await agreement.start()
  const answer = await agreement.respond(value)
  return { client: await finish(answer.value), server: answer.secret }
}

describe.each(direct)('%s', (_, agreement) => {
  test('both sides have the same secret, and never the same twice', async () => {
    const secrets = [await exchange(agreement), await exchange(agreement)]
    for (const { client, server } of secrets) expect(client.equals(server)).toBe(true)
    expect(secrets[0]!.client.equals(secrets[1]!.client)).toBe(false)
  })

  test('values of a wrong size or kind are refused by either side', async () => {
    const good = (await agreement.start()).value.length
    for (const bad of [
      Buffer.alloc(0),
      Buffer.alloc(good),
      Buffer.alloc(good + 1, 0xff),
      Buffer.alloc(3_000, 0x7f),
    ]) {
      await expect(agreement.respond(bad)).rejects.toThrow(/not usable|32 bytes|point|out of range/)
      const { finish } = await agreement.start()
      await expect(finish(bad)).rejects.toThrow(/not usable|32 bytes|point|out of range/)
    }
  })
})

test('Diffie-Hellman takes no value that gives the secret away', async () => {
  const agreement = direct.find(([name]) => name === 'diffie-hellman-group14-sha256')![1]
  const prime = getDiffieHellman('modp14').getPrime()
  const less = Buffer.from(prime)
  less[less.length - 1]! -= 1
  for (const value of [Buffer.alloc(0), Buffer.of(0), Buffer.of(1), mpintBytes(less), mpintBytes(prime)]) {
    await expect(agreement.respond(value)).rejects.toThrow('out of range')
  }
  expect((await agreement.respond(Buffer.of(2))).secret.length).toBeGreaterThan(200)
})

describe('group exchange', () => {
  const bits = (min: number, wanted: number, max: number): number =>
    groupFor({ min, wanted, max }).prime.length * 8

  test('the group is as large as wanted, if there is one', () => {
    expect([
      bits(2048, 3072, 8192),
      bits(1024, 2048, 8192),
      bits(2048, 7000, 8192),
      bits(2048, 9000, 9000),
      bits(2048, 4096, 3072),
    ]).toEqual([3072, 2048, 8192, 8192, 3072])
    expect(() => bits(512, 1024, 1024)).toThrow('No group')
    expect(() => bits(4096, 4096, 2048)).toThrow('No group')
  })

  test('a group is taken if it is known, and refused if anything of it is not', () => {
    const group = groupFor({ min: 2048, wanted: 3072, max: 4096 })
    expect(() => requireKnownGroup(group)).not.toThrow()
    for (const generator of [Buffer.of(0), Buffer.of(1), Buffer.of(5), group.prime])
      expect(() => requireKnownGroup({ ...group, generator })).toThrow('a group of its own')
    for (const prime of [group.prime.subarray(1), Buffer.concat([group.prime.subarray(0, -1), Buffer.of(1)])])
      expect(() => requireKnownGroup({ ...group, prime })).toThrow('a group of its own')
    expect(() => requireKnownGroup(groupFor({ min: 8192, wanted: 8192, max: 8192 }))).toThrow(
      'a group of its own',
    )
  })

  test('both sides have the same secret over a group of their own', async () => {
    const { client, server } = await exchange(agreementOver(groupFor({ min: 2048, wanted: 2048, max: 2048 })))
    expect(client.equals(server)).toBe(true)
  })
})
