// Channels as streams: an SSH connection within an SSH connection, to the end of its files and of both.
import { randomBytes } from 'node:crypto'
import { expect, test } from 'vitest'
import { connect } from '../src/client.ts'
import { channelStream } from '../src/connection/stream.ts'
import { acceptConnection } from '../src/server.ts'
import { pair } from './pairs.ts'
import { hostKey } from './server.ts'

test('a connection runs through a channel of another', async () => {
  await using outer = await pair()
  const opening = outer.client.open('session')
  const there = channelStream((await outer.server.channels.next())!.accept())
  const here = channelStream(await opening)
  const accepting = acceptConnection(there, {
    hostKeys: [hostKey],
    methods: [],
    authenticate: async () => 'accept',
    channelTypes: ['session'],
  })
  const client = await connect(here, {
    user: 'olga',
    proofs: [{ method: 'none' }],
    checkHostKey: (key) => key.equals(hostKey.blob),
  })
  const server = await accepting

  const inner = client.open('session')
  const far = (await server.channels.next())!.accept()
  const near = await inner
  const bytes = randomBytes(3_000_000)
  const writing = near.write(bytes).then(async () => near.end())
  const parts: Buffer[] = []
  for await (const chunk of far) parts.push(chunk.bytes)
  await writing
  expect(Buffer.concat(parts).equals(bytes)).toBe(true)

  await client.end(11, 'that was it')
  expect((await server.ended).message).toBe('that was it')
})

test('the end of one direction leaves the other open', async () => {
  await using two = await pair()
  const opening = two.client.open('session')
  const there = channelStream((await two.server.channels.next())!.accept())
  const here = channelStream(await opening)
  here.end('question')
  const asked: Buffer[] = []
  for await (const chunk of there.iterator({ destroyOnReturn: false }) as AsyncIterable<Buffer>)
    asked.push(chunk)
  expect(Buffer.concat(asked).toString()).toBe('question')
  there.end('answer')
  const answered: Buffer[] = []
  for await (const chunk of here as AsyncIterable<Buffer>) answered.push(chunk)
  expect(Buffer.concat(answered).toString()).toBe('answer')
})

test('a stream whose connection breaks off fails', async () => {
  await using two = await pair()
  const opening = two.client.open('session')
  const there = channelStream((await two.server.channels.next())!.accept())
  await opening
  const failed = new Promise<Error>((resolve) => void there.on('error', resolve))
  there.resume()
  await two.client.end(11, 'gone')
  expect((await failed).message).toBe('gone')
})
