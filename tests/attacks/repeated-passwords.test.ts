// A script that logs in with a password to a device that is offline, again and again, guesses nothing. It used up the
// failed logins of its address, so that nobody there could log in to devices that are online. Repetitions of one
// password for one name count little, whatever the device is: a stranger who repeats himself learns nothing.
import { afterAll, beforeAll, expect, test, vi } from 'vitest'
import { sample } from '@hawser/contract/examples'
import { passwordGuesses } from '../../server/src/gateway/login/guesses.ts'
import { onlineDevice, startDoor, withoutReference, type Door } from './door.ts'

vi.setConfig({ testTimeout: 60_000 })

const limit = 3
const names = {
  online: onlineDevice,
  offline: `${sample.namespace}.crane-1`,
  unknown: `${sample.namespace}.nobody`,
}
const enough = 'Too many failed attempts from your address; wait a while.\r\n'

let door: Door
beforeAll(async () => void (door = await startDoor({ HAWSER_SSH_FAILURE_LIMIT: `${limit}/600` })))
afterAll(async () => door[Symbol.asyncDispose]())

/** Tries passwords on connections of four attempts each, all at once. */
async function tries(from: string, data: string, passwords: readonly string[]): Promise<void> {
  const each = 4
  await Promise.all(
    Array.from({ length: Math.ceil(passwords.length / each) }, async (_, connection) => {
      const client = await door.knock({ from })
      for (const password of passwords.slice(connection * each, (connection + 1) * each))
        await client.attempt(`pilot@${data}`, { method: 'password', password }).catch(() => undefined)
    }),
  )
}

/** Whether the right password lets somebody in from there, and what they read if not. */
async function logIn(from: string): Promise<true | string[]> {
  const banners: string[] = []
  // One address may have only a few connections that are not logged in.
  door.leave()
  const client = await door.knock({ from, banners })
  const answer = await client
    .attempt(`pilot@${onlineDevice}`, { method: 'password', password: 'pilot' })
    .catch(() => undefined)
  return answer?.accepted === true || banners.map(withoutReference)
}

const repeated = Array.from({ length: limit * 4 }, () => 'the one in the script')
const guessed = Array.from({ length: limit }, (_, at) => `guess ${at}`)

test.each(Object.entries(names))(
  'a password that is repeated for a device that is %s locks nobody out',
  async (name, data) => {
    const from = `203.0.113.${10 + Object.keys(names).indexOf(name)}`
    await tries(from, data, repeated)
    expect(await logIn(from)).toBe(true)
  },
)

test.each(Object.entries(names))(
  'different passwords for a device that is %s all count',
  async (name, data) => {
    const from = `203.0.113.${20 + Object.keys(names).indexOf(name)}`
    await tries(from, data, guessed)
    expect(await logIn(from)).toEqual([enough])
  },
)

test('one password for different devices counts for each', async () => {
  const from = '203.0.113.30'
  await Promise.all(guessed.map(async (_, at) => tries(from, `${sample.namespace}.buoy-${at}`, ['same'])))
  expect(await logIn(from)).toEqual([enough])
})

test('of repetitions every tenth counts, because they are work, too', () => {
  const guesses = passwordGuesses()
  const repetitions = Array.from({ length: 30 }, () => guesses.counts('203.0.113.31', 'pilot@crane', 'same'))
  expect(repetitions.filter((counts) => counts)).toHaveLength(3)
})
