// Requests are written as they are read; what has no name is kept as it came, and what cannot be read is
// called malformed.
import fc from 'fast-check'
import { describe, expect, test } from 'vitest'
import { readRequest, writeRequest, type SessionRequest } from './requests.ts'

const size = { columns: 80, rows: 24, width: 640, height: 480 }
const examples: SessionRequest[] = [
  { type: 'shell' },
  { type: 'exec', command: 'echo ü' },
  { type: 'subsystem', name: 'sftp' },
  {
    type: 'pty-req',
    pty: {
      terminal: 'xterm',
      ...size,
      modes: new Map([
        [1, 3],
        [128, 38_400],
      ]),
    },
  },
  { type: 'x11-req', single: false, protocol: 'MIT-MAGIC-COOKIE-1', cookie: 'ab', screen: 0 },
  { type: 'env', name: 'LANG', value: 'C.UTF-8' },
  { type: 'window-change', size },
  { type: 'signal', signal: 'INT' },
  { type: 'break', duration_ms: 500 },
  { type: 'exit-status', status: 4_294_967_295 },
  { type: 'exit-signal', signal: 'KILL', coreDumped: true, message: 'out of memory' },
  { type: 'auth-agent-req@openssh.com' },
  { type: 'other', name: 'eow@openssh.com', payload: Buffer.alloc(0) },
]

describe('what is written is read', () => {
  test.each(examples.map((example) => [example.type, example] as const))('%s', (_, example) => {
    const { name, payload } = writeRequest(example)
    expect(readRequest(name, payload)).toEqual(example)
  })
})

test('whatever arrives is a request', () => {
  const names = examples.map((example) => writeRequest(example).name)
  fc.assert(
    fc.property(fc.constantFrom(...names), fc.uint8Array({ maxLength: 60 }), (name, bytes) => {
      const request = readRequest(name, Buffer.from(bytes))
      expect([name, name === 'eow@openssh.com' ? 'other' : 'malformed']).toContain(request.type)
    }),
  )
})

test('nothing may follow what is known', () => {
  for (const example of examples.filter(({ type }) => type !== 'other')) {
    const { name, payload } = writeRequest(example)
    expect(readRequest(name, Buffer.concat([payload, Buffer.of(0)])).type).toBe('malformed')
  }
})
