// The bytes of a real peer: github.com/hashicorp/yamux v0.1.2 as the server and go-multistream v0.6.1 on it,
// recorded over a WebSocket. They are played back here, so that our side keeps sending what that peer understood
// and keeps understanding what it sent.
import { expect, test } from 'vitest'
import { multistream } from '../src/index.ts'
import { rudePeer, takeAll } from './pairs.ts'

test('a stream of the recorded peer is opened, named, used and finished', async () => {
  const peer = rudePeer({ role: 'client' })
  const stream = peer.mux.open(
    Buffer.concat([multistream.propose('/echo/1.0.0'), Buffer.from('{"id":"7"}\n')]),
  )
  expect(await peer.hear(68)).toBe(
    '0001000100000001000c0000' +
      '00000000000000010000002c132f6d756c746973747265616d2f312e302e300a0c2f6563686f2f312e302e300a7b226964223a2237227d0a',
  )
  // Header and body of a frame come as two messages.
  peer.say('000100020000000100000000')
  peer.say('000000000000000100000014')
  peer.say('132f6d756c746973747265616d2f312e302e300a')
  peer.say('00000000000000010000000d')
  peer.say('0c2f6563686f2f312e302e300a')
  expect(await multistream.readReply(stream, '/echo/1.0.0')).toBe(true)
  stream.end('hello')
  expect(await peer.hear(29)).toBe('00000000000000010000000568656c6c6f000100040000000100000000')
  peer.say('000000000000000100000005')
  peer.say('68656c6c6f')
  peer.say('000100040000000100000000')
  expect((await takeAll(stream)).toString()).toBe('hello')
  expect(peer.mux.streams).toBe(0)
})

test('a proposal that the recorded peer does not know is refused, and the stream is given up', async () => {
  const peer = rudePeer({ role: 'client' })
  const stream = peer.mux.open(multistream.propose('/nope/1.0.0'))
  await peer.hear(12 + 12 + 33)
  peer.say('000100020000000100000000')
  peer.say('000000000000000100000014')
  peer.say('132f6d756c746973747265616d2f312e302e300a')
  peer.say('000000000000000100000004')
  peer.say('036e610a')
  expect(await multistream.readReply(stream, '/nope/1.0.0')).toBe(false)
  stream.destroy()
  expect(await peer.hear(12)).toBe('000100080000000100000000')
})

test('pings go both ways as they did with the recorded peer', async () => {
  const peer = rudePeer({ role: 'client' })
  const measure = peer.mux.ping()
  expect(await peer.hear(12)).toBe('000200010000000000000000')
  peer.say('000200020000000000000000')
  expect(await measure).toBeGreaterThanOrEqual(0)
  peer.say('000200010000000000000000')
  expect(await peer.hear(12)).toBe('000200020000000000000000')
  peer.mux.close()
  expect(await peer.hear(12)).toBe('000300000000000000000000')
})
