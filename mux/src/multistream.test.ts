// How a stream is named, from both sides, and that nothing that follows is lost.
import { duplexPair, type Duplex } from 'node:stream'
import { expect, test } from 'vitest'
import { accept, muxPair, takeAll, takeBytes } from '../test/pairs.ts'
import { NegotiationFailed } from './errors.ts'
import { agreement, negotiate, propose, readLine, readReply, token } from './multistream.ts'

const ssh = '/ssh/open/1.0.0'
const hello = '\x13/multistream/1.0.0\n'

test('the tokens of a proposal have the bytes that agents expect', () => {
  expect(propose(ssh).toString('latin1')).toBe(`${hello}\x10/ssh/open/1.0.0\n`)
  expect(token('na').toString('latin1')).toBe('\x03na\n')
  expect(token('x'.repeat(199)).subarray(0, 3).toString('hex')).toBe('c80178')
  expect(() => token('x'.repeat(1024))).toThrow(RangeError)
})

test('an accepted proposal leaves what came after it on the stream', async () => {
  const [near, far] = duplexPair()
  far.write(`${hello}\x10${ssh}\nSSH-2.0-Go\r\n`)
  expect(await readReply(near, ssh)).toBe(true)
  expect((await takeBytes(near, 12)).toString()).toBe('SSH-2.0-Go\r\n')
})

test('a reply is read however it is cut, and the rest can be read in any way', async () => {
  const bytes = Buffer.from(`${hello}\x10${ssh}\nrest`)
  for (let at = 1; at < bytes.length; at++) {
    const [near, far] = duplexPair()
    const reply = readReply(near, ssh)
    far.write(bytes.subarray(0, at))
    await new Promise((resolve) => setImmediate(resolve))
    far.end(bytes.subarray(at))
    expect(await reply).toBe(true)
    let rest = ''
    near.on('data', (chunk: Buffer) => (rest += chunk.toString()))
    await new Promise((resolve) => near.once('end', resolve))
    expect(rest).toBe('rest')
  }
})

test('a refused proposal is false, and another one can follow', async () => {
  const [near, far] = duplexPair()
  const served = negotiate(far, ['/known/1'], AbortSignal.timeout(5_000))
  near.write(propose('/unknown/1'))
  expect(await readReply(near, '/unknown/1')).toBe(false)
  near.write(token('/known/1'))
  expect(await served).toEqual({ protocol: '/known/1' })
  expect(await takeBytes(near, 10)).toEqual(token('/known/1'))
})

test.each([
  ['is no multistream', '\x05http\n'],
  ['is longer than 1024 bytes', `\x81\x08${'x'.repeat(1024)}\n`],
  ['has a length that does not end', '\x80\x80\x01'],
  ['has a length with needless bytes', '\x80\x00'],
  ['is empty', '\x00'],
  ['has no newline', '\x13/multistream/1.0.0 '],
  ['is another protocol than was proposed', `${hello}\x05/ls1\n`],
  ['breaks off', '\x13/multi'],
])('a reply that %s is an error', async (_, bytes) => {
  const [near, far] = duplexPair()
  far.end(Buffer.from(bytes, 'latin1'))
  await expect(readReply(near, ssh)).rejects.toThrow(NegotiationFailed)
})

test('the header is sent before anything was read', async () => {
  const [near, far] = duplexPair()
  const served = negotiate(far, [ssh], AbortSignal.timeout(5_000))
  expect((await takeBytes(near, hello.length)).toString('latin1')).toBe(hello)
  near.write(propose(ssh))
  await served
})

test('somebody who only proposes nonsense is not listened to for ever', async () => {
  const [near, far] = duplexPair()
  const served = negotiate(far, [ssh], AbortSignal.timeout(5_000))
  near.resume()
  near.write(Buffer.concat([propose('/a'), ...Array.from({ length: 40 }, () => token('/a'))]))
  await expect(served).rejects.toThrow(NegotiationFailed)
})

test('negotiation ends when it is told to', async () => {
  const [, far] = duplexPair()
  const stop = new AbortController()
  const served = negotiate(far, [ssh], stop.signal)
  stop.abort(new Error('enough'))
  await expect(served).rejects.toThrow('enough')
})

test('a line is taken and the bytes after it stay', async () => {
  const [near, far] = duplexPair()
  far.end('{"id":"1"}\nSSH')
  expect(await readLine(near, 4096)).toBe('{"id":"1"}')
  expect((await takeAll(near)).toString()).toBe('SSH')
})

test('a line may be as long as its limit and no longer', async () => {
  const [near, far] = duplexPair()
  far.write(`${'x'.repeat(10)}\n${'y'.repeat(11)}\n`)
  expect(await readLine(near, 10)).toBe('x'.repeat(10))
  await expect(readLine(near, 10)).rejects.toThrow(NegotiationFailed)
})

test('opening, proposing and the first line need no round trip', async () => {
  const { client, server } = muxPair()
  const opened = client.open(Buffer.concat([propose(ssh), Buffer.from('{"id":"7"}\n')]))
  const accepted = await accept(server)
  expect(await negotiate(accepted, ['/other', ssh], AbortSignal.timeout(5_000))).toEqual({ protocol: ssh })
  expect(await readLine(accepted, 4096, AbortSignal.timeout(5_000))).toBe('{"id":"7"}')
  accepted.end('SSH-2.0-Test\r\n')
  expect(await readReply(opened, ssh)).toBe(true)
  expect((await takeAll(opened)).toString()).toBe('SSH-2.0-Test\r\n')
})

test.each([
  ['in one piece', (stream: Duplex, text: string) => stream.write(text)],
  ['byte by byte', (stream: Duplex, text: string) => [...text].forEach((byte) => stream.write(byte))],
])('a reply that is expected is taken off the stream, %s', async (_, say) => {
  const { client, server } = muxPair()
  const opened = client.open(propose(ssh), agreement(ssh))
  opened.write('the client speaks at once')
  const accepted = await accept(server)
  say(accepted, `${agreement(ssh).toString('latin1')}SSH`)
  accepted.end()
  expect((await takeAll(opened)).toString()).toBe('SSH')
})

test.each([token('na').toString('latin1'), 'something else entirely, longer than the reply would be'])(
  'a peer that replies otherwise gets the stream reset: %j',
  async (reply) => {
    const { client, server } = muxPair()
    const opened = client.open(propose(ssh), agreement(ssh))
    const accepted = await accept(server)
    accepted.on('error', () => undefined)
    accepted.write(token('/multistream/1.0.0'))
    accepted.write(reply)
    await expect(takeAll(opened)).rejects.toThrow(NegotiationFailed)
    expect(client.streams).toBe(0)
  },
)

test('whoever waits for a reply learns that the stream is gone', async () => {
  const { client, server } = muxPair()
  const opened = client.open(propose(ssh))
  const accepted = await accept(server)
  const reply = readReply(opened, ssh)
  accepted.destroy()
  await expect(reply).rejects.toThrow('reset')
  await expect(readReply(opened, ssh)).rejects.toThrow('reset')
})
