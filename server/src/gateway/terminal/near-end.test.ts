// The end of a session is the end of every channel, whichever client opened it and however late it is accepted.
import { expect, onTestFinished, test, vi } from 'vitest'
import { ChannelRefused, localPair, Reason } from '@hawser/ssh'
import { dismiss, goodbye_ms, type TerminalClient } from './client.ts'
import { nearEnd, type NearEnd } from './near-end.ts'

const noTerminals = {
  screen: () => expect.unreachable(),
  mayHold: false,
  onLost: () => undefined,
  onAttach: () => undefined,
  onAttached: () => undefined,
}
const openEnd = (): NearEnd => nearEnd(localPair()[1], noTerminals)

/** A client that reattaches and opens a channel next to its terminal. */
async function besideOf(end: NearEnd) {
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

test('another client opens sessions beside its terminal and nothing else: the device hears of no forward', async () => {
  const end = openEnd()
  const [other, joining] = localPair()
  void end.join(joining)
  await expect(other.open('direct-tcpip')).rejects.toThrow(ChannelRefused)
  expect(end.channels.length).toBe(0)
})

test('a client that does not read its last words is let go all the same', async () => {
  vi.useFakeTimers({ toFake: ['setTimeout', 'clearTimeout'] })
  onTestFinished(() => void vi.useRealTimers())
  const [client, end] = localPair()
  const opening = client.open('session')
  const channel = (await end.channels.next())!.accept()
  const telling = dismiss({ channel } as unknown as TerminalClient, 'The session was closed.')
  await vi.advanceTimersByTimeAsync(goodbye_ms)
  await telling
  await (
    await opening
  ).closed
})
