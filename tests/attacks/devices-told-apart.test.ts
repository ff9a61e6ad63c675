// Strangers could tell devices that exist from others, as often as they liked: a device that was online
// answered FAILURE, every other name DISCONNECT. Whoever has proved nothing gets the same answers for every
// name, at the same times, and each guess at a password counts. Whoever holds a key of the namespace is told
// what is the matter.
import { afterAll, beforeAll, describe, expect, test } from 'vitest'
import { sample } from '@hawser/contract/examples'
import { generatePrivateKey, type PrivateKey, type Unauthenticated } from '@hawser/ssh'
import { onlineDevice, startDoor, withoutReference, type Door } from './door.ts'

let door: Door
const olga = generatePrivateKey('ed25519')
const mallory = generatePrivateKey('ed25519')
const names = {
  online: onlineDevice,
  offline: `${sample.namespace}.crane-1`,
  pending: `${sample.namespace}.buoy`,
  unknown: `${sample.namespace}.nobody`,
  'in an unknown namespace': 'nowhere.crane-9',
  'an unknown uid': '0'.repeat(64),
}
const { online: _, ...others } = names

beforeAll(async () => {
  door = await startDoor({ HAWSER_SSH_FAILURE_LIMIT: '40/600' })
  await door.register(olga)
})
afterAll(async () => door[Symbol.asyncDispose]())

/** A key that somebody has only the public half of. */
const shownOnly = (key: PrivateKey) => ({
  blob: key.blob,
  algorithms: key.algorithms,
  askFirst: true,
  sign: (): never => {
    throw new Error('asked to sign')
  },
})

async function guess(
  from: string,
  attempts: readonly Parameters<Unauthenticated['attempt']>[1][],
): Promise<void> {
  const client = await door.knock({ from })
  for (const proof of attempts) await client.attempt(`pilot@${names.unknown}`, proof)
}

/** What each attempt was answered, until the server has enough, and every banner, without the name. */
async function seen(
  data: string,
  attempts: readonly Parameters<Unauthenticated['attempt']>[1][],
): Promise<string[]> {
  const banners: string[] = []
  const client = await door.knock({ banners })
  const answers: string[] = []
  for (const proof of attempts) {
    const answer = await client
      .attempt(`pilot@${data}`, proof)
      .catch((error: Error) => ({ ended: error.message }))
    answers.push(JSON.stringify(answer))
  }
  return [...answers, ...banners].map((text) => withoutReference(text).replaceAll(data, 'NAME'))
}

const guesses = [
  { method: 'none' },
  { method: 'publickey', key: shownOnly(mallory) },
  { method: 'publickey', key: mallory },
  { method: 'password', password: 'wrong' },
  { method: 'password', password: 'wronger' },
] as const

describe('whoever has proved nothing', () => {
  test.each(Object.entries(others))(
    'gets for a device that is %s the answers of one that is online',
    async (_, data) => {
      const [there, other] = await Promise.all([seen(onlineDevice, guesses), seen(data, guesses)])
      expect(other).toEqual(there)
      for (const answer of there.slice(0, guesses.length)) expect(answer).toContain('"accepted":false')
    },
  )

  test('is asked to sign with a key of the namespace whether the device exists or not', async () => {
    const shown = [{ method: 'publickey', key: shownOnly(olga) }] as const
    for (const name of ['online', 'offline', 'pending', 'unknown'] as const)
      expect(await seen(names[name], shown)).toEqual([JSON.stringify({ ended: 'asked to sign' })])
  })

  test('waits for the answer to a wrong password, whichever name it was for', async () => {
    await Promise.all(
      Object.values(names).map(async (data) => {
        const client = await door.knock()
        const asked_at = performance.now()
        await client.attempt(`pilot@${data}`, { method: 'password', password: 'wrong' })
        expect(performance.now() - asked_at).toBeGreaterThanOrEqual(990)
      }),
    )
  })

  test('has guesses at devices that do not exist counted like others', async () => {
    const from = '203.0.113.7'
    await Promise.all(
      Array.from({ length: 8 }, async (__, connection) =>
        guess(
          from,
          Array.from({ length: 5 }, (___, at) => ({ method: 'password', password: `${connection} ${at}` })),
        ),
      ),
    )
    for (const data of [names.online, names.unknown]) {
      const banners: string[] = []
      const client = await door.knock({ from, banners })
      await expect(
        client.attempt(`pilot@${data}`, { method: 'password', password: 'pilot' }),
      ).rejects.toThrow()
      expect(banners.map(withoutReference)).toEqual([
        'Too many failed attempts from your address; wait a while.\r\n',
      ])
    }
  })
})

describe('whoever holds a key of the namespace', () => {
  test.each(['offline', 'pending', 'unknown'] as const)(
    'is told that a device that is %s cannot be reached',
    async (name) => {
      const banners: string[] = []
      const client = await door.knock({ banners })
      await expect(
        client.attempt(`pilot@${names[name]}`, { method: 'publickey', key: olga }),
      ).rejects.toThrow()
      expect(banners.map(withoutReference)).toEqual([`${names[name]} is offline or cannot be reached\r\n`])
    },
  )
})
