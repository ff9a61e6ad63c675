// A connection inside of one process keeps the promises that one on a wire keeps: order, pace, requests with
// their answers, and an end that everybody hears of.
import { expect, test } from 'vitest'
import {
  ChannelClosed,
  ChannelRefused,
  ConnectionEnded,
  localPair,
  pipe,
  startSession,
  type Channel,
} from '../src/index.ts'

/** Both ends of one channel. */
async function channels(type = 'session'): Promise<[Channel, Channel]> {
  const [near, far] = localPair()
  const opening = near.open(type)
  const asked = (await far.channels.next())!
  const accepted = asked.accept()
  return [await opening, accepted]
}

const settledNow = async (work: Promise<unknown>): Promise<boolean> => {
  let settled = false
  void work.then(
    () => (settled = true),
    () => (settled = true),
  )
  for (let turn = 0; turn < 20; turn += 1) await Promise.resolve()
  return settled
}

test('bytes come in order and by stream, and the end after the last of them', async () => {
  const [near, far] = await channels()
  const writing = (async () => {
    for (const [text, stream] of [['one', 0] as const, ['two', 1] as const, ['three', 0] as const])
      await near.write(Buffer.from(text), stream)
    await near.end()
  })()
  const got: string[] = []
  for await (const { bytes, stream } of far) got.push(`${stream} ${bytes.toString()}`)
  await writing
  expect(got).toEqual(['0 one', '1 two', '0 three'])
  await expect(near.write(Buffer.from('more'))).rejects.toThrow(ChannelClosed)
})

test('a write waits until somebody takes it', async () => {
  const [near, far] = await channels()
  const writing = near.write(Buffer.from('slow'))
  expect(await settledNow(writing)).toBe(false)
  expect((await far.read())?.bytes.toString()).toBe('slow')
  await writing
})

test('a close waits for what was written, a close now does not', async () => {
  const [near, far] = await channels()
  void near.write(Buffer.from('last'))
  const closing = near.close()
  expect(await settledNow(closing)).toBe(false)
  expect((await far.read())?.bytes.toString()).toBe('last')
  await closing
  expect(await far.read()).toBeUndefined()
  await far.closed

  const [other, end] = await channels()
  const lost = other.write(Buffer.from('lost'))
  await Promise.all([other.close('now'), expect(lost).rejects.toThrow(ChannelClosed)])
  expect(await end.read()).toBeUndefined()
})

test('requests are answered, also with no; without a wish for an answer nobody waits', async () => {
  const [near, far] = await channels()
  const answers = Promise.all([
    near.request('shell', Buffer.from('x'), true),
    near.request('pty-req', undefined, true),
  ])
  const first = (await far.requests.next())!
  expect([first.type, first.payload.toString(), first.wantReply]).toEqual(['shell', 'x', true])
  first.reply(true)
  ;(await far.requests.next())!.reply(false)
  expect(await answers).toEqual([true, false])
  expect(await near.request('window-change')).toBe(true)
  await far.close()
  await expect(near.request('signal', undefined, true)).rejects.toThrow(ChannelClosed)
})

test('what is refused says why, and what nobody takes is refused', async () => {
  const [near, far] = localPair()
  const opening = near.open('direct-tcpip')
  ;(await far.channels.next())!.refuse(1, 'not here')
  await expect(opening).rejects.toThrow(new ChannelRefused(1, 'not here'))
  const many = Array.from({ length: 40 }, () => near.open('session'))
  for (const one of many) one.catch(() => undefined)
  await expect(many.at(-1)).rejects.toThrow(ChannelRefused)
  const asked = near.request('tcpip-forward', Buffer.from('x'))
  ;(await far.requests.next())!.refuse()
  expect(await asked).toBeUndefined()
  await near.end()
  await Promise.all(many.map((one) => expect(one).rejects.toThrow()))
})

test('the end of one side is heard at the other, with its sentence, and by everything under way', async () => {
  const [near, far] = localPair()
  const opening = near.open('session')
  const there = (await far.channels.next())!.accept()
  const here = await opening
  const [reading, writing, waiting] = [here.read(), there.close(), far.channels.next()]
  await writing
  expect(await reading).toBeUndefined()
  const second = near.open('session')
  await far.end(11, 'The server is stopping.')
  await expect(second).rejects.toThrow(ConnectionEnded)
  expect(await waiting).toBeDefined()
  expect(await near.ended).toMatchObject({ by: 'peer', message: 'The server is stopping.' })
  expect(await far.ended).toMatchObject({ by: 'us' })
  await expect(near.open('session')).rejects.toThrow(ConnectionEnded)
})

test('two of them are joined by a pipe as two on wires are', async () => {
  const [client, near] = localPair()
  const [far, server] = localPair()
  const piped = pipe(near, far)
  const serving = (async () => {
    const channel = (await server.channels.next())!.accept()
    const asked = (await channel.requests.next())!
    asked.reply(true)
    for await (const { bytes } of channel) await channel.write(Buffer.from(bytes.toString().toUpperCase()))
    await channel.request('exit-status', Buffer.from([0, 0, 0, 3]))
    await channel.close()
    return asked.type
  })()
  const { channel, exit } = await startSession(client, { program: { type: 'shell' } })
  await channel.write(Buffer.from('hello'))
  await channel.end()
  let got = ''
  for await (const { bytes } of channel) got += bytes.toString()
  expect([got, await serving, await exit]).toEqual(['HELLO', 'shell', { type: 'exit-status', status: 3 }])
  await client.end(11, 'Done.')
  expect(await piped).toMatchObject({ side: 'near', ended: { message: 'Done.' } })
})
