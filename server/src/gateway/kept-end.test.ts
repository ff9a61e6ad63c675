// The end of a session is the end of every channel, whichever client opened it and however late it is accepted.
import { expect, test } from 'vitest'
import { localPair, Reason } from '@hawser/ssh'
import { keptEnd, type KeptEnd } from './kept-end.ts'

const openEnd = (): KeptEnd =>
  keptEnd(localPair()[1], { screen: () => undefined, onLost: () => false, onAttached: () => undefined })

/** A client that continues the session and opens a channel beside its terminal. */
async function besideOf(end: KeptEnd) {
  const [other, joining] = localPair()
  void end.join(joining)
  const channel = other.open('session')
  return { channel, opening: (await end.channels.next())! }
}

test('a channel of another client ends with the session, and is told nothing that it could not read', async () => {
  const end = openEnd()
  const { channel, opening } = await besideOf(end)
  opening.accept()
  const opened = await channel
  const got = opened.read()
  await end.end(Reason.byApplication, 'The session is closed.')
  expect(await got).toBeUndefined()
  await opened.closed
})

test('one that is accepted after the session was ended is over at once', async () => {
  const end = openEnd()
  const { channel, opening } = await besideOf(end)
  const over = end.end(Reason.byApplication)
  opening.accept()
  await over
  await (
    await channel
  ).closed
})
