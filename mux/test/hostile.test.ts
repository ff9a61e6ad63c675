// Peers that break the rules end their session, and only that, with an error that names the rule; and they
// are told so.
import { Duplex, duplexPair } from 'node:stream'
import fc from 'fast-check'
import { expect, test } from 'vitest'
import { openMux, ProtocolError, StreamReset } from '../src/index.ts'
import { accept, closed, rudePeer, takeAll, takeBytes, turns } from './pairs.ts'

const open1 = '000100010000000100000000'
const goAwayForError = '000300000000000000000001'

test.each([
  ['another version', 'version', '010000000000000100000000'],
  ['an unknown type', 'type', '000400000000000000000000'],
  ['a frame larger than any window', 'length', `${open1} 000000000000000100100001`],
  [
    'a frame of 4 GiB for a stream that is gone',
    'length',
    `${open1} 000100080000000100000000 0000000000000001ffffffff`,
  ],
  ['more than the window', 'window', `${open1} 000000000000000100040001`],
  ['data for a stream that was never opened', 'unknown stream', '000000000000000700000001 61'],
  ['data for one of ours that was never opened', 'unknown stream', '000000000000000200000001 61'],
  ['credit for stream 0', 'unknown stream', '000100000000000000000001'],
  ['a reset of a stream that was never opened', 'unknown stream', '000100080000000900000000'],
  ['the same stream twice', 'stream opened twice', `${open1} ${open1}`],
  ['a stream with an id of ours', 'parity', '000100010000000200000000'],
  ['a stream with the id 0', 'parity', '000100010000000000000000'],
  ['two ends of one stream', 'finished twice', `${open1} 000100040000000100000000 000100040000000100000000`],
  ['a window larger than windows can be', 'credit', `${open1} 0001000000000001ffffffff`],
])('%s ends the session', async (_, rule, bytes) => {
  const peer = rudePeer({ role: 'server' })
  peer.say(bytes)
  expect(await peer.hear(12)).toBe(goAwayForError)
  expect(await peer.mux.ended).toBeInstanceOf(ProtocolError)
  expect(await peer.mux.ended).toMatchObject({ rule })
  expect((await takeAll(peer.line)).length).toBe(0)
  expect(peer.mux.streams).toBe(0)
})

test.each(['000300000000000000000001', '000300000000000000000002', '000300000000000000000063'])(
  'a peer that goes away because of an error (%s) has ended the session',
  async (bytes) => {
    const peer = rudePeer({ role: 'client' })
    const stream = peer.mux.open()
    peer.say(bytes)
    expect(await peer.mux.ended).toMatchObject({ rule: 'go away' })
    expect(await closed(stream)).toBeInstanceOf(ProtocolError)
  },
)

test('no more than the window is a rule for sums too, read or unread', async () => {
  const peer = rudePeer({ role: 'server', window_bytes: 256 * 1024 })
  peer.say(open1)
  const stream = await accept(peer.mux)
  peer.say(`000000000000000100010000${'00'.repeat(65536)}`.repeat(4))
  await turns()
  expect(stream.errored).toBe(null)
  peer.say('000000000000000100000001 00')
  expect(await peer.mux.ended).toMatchObject({ rule: 'window' })
  expect(await closed(stream)).toBeInstanceOf(ProtocolError)
})

test('data after the end of a stream is passed over, because real peers can overtake themselves', async () => {
  const peer = rudePeer({ role: 'server' })
  peer.say(`${open1} 000000000000000100000001 61 000100040000000100000000 000000000000000100000001 62`)
  expect((await takeAll(await accept(peer.mux))).toString()).toBe('a')
  expect(await Promise.race([peer.mux.ended, turns().then(() => 'goes on')])).toBe('goes on')
})

test('flags may come with data', async () => {
  const peer = rudePeer({ role: 'server' })
  peer.say('000000050000000100000003 616263')
  expect((await takeAll(await accept(peer.mux))).toString()).toBe('abc')
  // And an end without any.
  peer.say('000000050000000300000000')
  expect((await takeAll(await accept(peer.mux))).length).toBe(0)
  peer.say(`000100010000000500000000 000000080000000500000002 6162`)
  peer.say('00020001000000000000002a')
  await peer.hear(24)
  expect(await peer.hear(12)).toBe('00020002000000000000002a')
})

test('streams may be opened in another order than that of their ids', async () => {
  const peer = rudePeer({ role: 'server' })
  peer.say('000100010000000500000000 000100010000000300000000 000000040000000300000001 61')
  await accept(peer.mux)
  expect((await takeAll(await accept(peer.mux))).toString()).toBe('a')
})

test('streams above the limit are reset, until others are gone', async () => {
  const peer = rudePeer({ role: 'server', mostStreams: 3 })
  const opening = (id: number): string => `00010001000000${id.toString(16).padStart(2, '0')}00000000`
  peer.say([1, 3, 5, 7].map(opening).join(''))
  // Frames that are still sent on the refused stream are passed over.
  expect(await peer.hear(12)).toBe('000100080000000700000000')
  peer.say('000000000000000700000001 61')
  peer.say(`000100080000000300000000 ${opening(9)} ${opening(11)}`)
  expect(await peer.hear(12)).toBe('000100080000000b00000000')
  expect(peer.mux.streams).toBe(3)
})

test('a session can be told to take no streams from the peer', async () => {
  const peer = rudePeer({ role: 'client', mostIncoming: 0 })
  peer.say('000100010000000200000000')
  expect(await peer.hear(12)).toBe('000100080000000200000000')
  const stream = peer.mux.open()
  await peer.hear(12)
  peer.say('000100080000000100000000')
  expect(await closed(stream)).toBeInstanceOf(StreamReset)
})

/** A carrier whose other side talks and does not listen. */
function deafPeer(): { carrier: Duplex; say: (hex: string) => void } {
  const carrier = new Duplex({ read: () => undefined, write: () => undefined })
  return { carrier, say: (hex) => void carrier.push(Buffer.from(hex.replaceAll(' ', ''), 'hex')) }
}

test.each([
  ['pings', '00020001000000000000002a'],
  ['openings', ''],
])(
  'a flood of %s from a peer that takes no answers ends the session before they pile up',
  async (_, bytes) => {
    const { carrier, say } = deafPeer()
    const mux = openMux(carrier, { role: 'server', mostStreams: 1 })
    for (let count = 0; count < 20_000 && carrier.writable; count += 100) {
      const opening = (index: number): string =>
        `00010001${(2 * (count + index) + 1).toString(16).padStart(8, '0')}00000000`
      say(Array.from({ length: 100 }, (_, index) => bytes || opening(index)).join(''))
      await turns(1)
    }
    expect(await mux.ended).toMatchObject({ rule: 'flood' })
    expect(carrier.writableLength).toBeLessThan(200 * 1024)
  },
)

test('a flood of pings from a peer that takes the answers is answered', async () => {
  const peer = rudePeer({ role: 'server' })
  const most = 20_000
  const answers = peer.hear(most * 12)
  for (let count = 0; count < most; count += 500) {
    peer.say('00020001000000000000002a'.repeat(500))
    await turns(1)
  }
  expect(await answers).toBe('00020002000000000000002a'.repeat(most))
})

test('answers to pings that nobody sent are nothing', async () => {
  const peer = rudePeer({ role: 'server', onPong: () => expect.unreachable() })
  peer.say('00020002000000000000002a 00020001000000000000002b')
  expect(await peer.hear(12)).toBe('00020002000000000000002b')
})

test('whatever a peer says, the session ends with a named error or goes on', async () => {
  const header = fc
    .record({
      type: fc.nat(4),
      flags: fc.nat(15),
      id: fc.nat(8),
      length: fc.oneof(fc.nat(40), fc.nat(0xffffffff)),
    })
    .map(({ type, flags, id, length }) => {
      const bytes = Buffer.alloc(12)
      bytes[1] = type
      bytes.writeUInt16BE(flags, 2)
      bytes.writeUInt32BE(id, 4)
      bytes.writeUInt32BE(length, 8)
      return bytes
    })
  const piece = fc.oneof(
    { weight: 4, arbitrary: header },
    { weight: 1, arbitrary: fc.uint8Array({ maxLength: 40 }).map((bytes) => Buffer.from(bytes)) },
  )
  await fc.assert(
    fc.asyncProperty(fc.array(piece, { maxLength: 20 }), async (pieces) => {
      const [line, ours] = duplexPair()
      const mux = openMux(ours, { role: 'server', mostStreams: 4 })
      line.resume()
      line.end(Buffer.concat(pieces))
      const reason = await mux.ended
      expect(reason === undefined || reason instanceof ProtocolError).toBe(true)
      expect(mux.streams).toBe(0)
    }),
    { numRuns: 300 },
  )
})

test('a stream of a rude peer that is read to its end is whole', async () => {
  const peer = rudePeer({ role: 'server' })
  const bytes = Buffer.concat([
    Buffer.from(open1, 'hex'),
    ...Array.from({ length: 300 }, (_, index) =>
      Buffer.from(`0000000000000001000000016${index % 10}`, 'hex'),
    ),
    Buffer.from('000100040000000100000000', 'hex'),
  ])
  for (const byte of bytes) peer.line.write(Buffer.of(byte))
  const stream = await accept(peer.mux)
  await turns()
  expect((await takeBytes(stream, 300)).toString()).toBe('`abcdefghi'.repeat(30))
})
