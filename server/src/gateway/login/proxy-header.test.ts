import { expect, test } from 'vitest'
import { BadHeader, parse } from './proxy-header.ts'

const signature = Buffer.from('\r\n\r\n\0\r\nQUIT\n', 'latin1')
const v2 = (command: number, family: number, body: Buffer) => {
  const length = Buffer.alloc(2)
  length.writeUInt16BE(body.length)
  return Buffer.concat([signature, Buffer.of(command, family), length, body])
}
const ident = Buffer.from('SSH-2.0-OpenSSH_9.2p1\r\n')

test.each([
  ['TCP4', 'PROXY TCP4 192.0.2.7 198.51.100.1 56324 22\r\n', { address: '192.0.2.7', port: 56_324 }],
  ['TCP6', 'PROXY TCP6 2001:db8::7 2001:db8::1 56324 22\r\n', { address: '2001:db8::7', port: 56_324 }],
  ['UNKNOWN', 'PROXY UNKNOWN\r\n', undefined],
])('version 1 of %s is read, whatever follows it', (_, line, origin) => {
  const bytes = Buffer.concat([Buffer.from(line), ident])
  expect(parse(bytes)).toEqual({ origin, used: line.length })
  for (let cut = 1; cut < line.length; cut += 1) expect(parse(bytes.subarray(0, cut))).toBeUndefined()
})

test('version 2 is read for both families, and extras after the addresses are passed over', () => {
  const four = v2(0x21, 0x11, Buffer.from([192, 0, 2, 7, 198, 51, 100, 1, 0xdc, 0x04, 0, 22, 3, 0, 1, 0]))
  expect(parse(Buffer.concat([four, ident]))).toEqual({
    origin: { address: '192.0.2.7', port: 56_324 },
    used: four.length,
  })
  const six = v2(
    0x21,
    0x21,
    Buffer.concat([
      Buffer.from('20010db8000000000000000000000007', 'hex'),
      Buffer.alloc(16),
      Buffer.from([0xdc, 0x04, 0, 22]),
    ]),
  )
  expect(parse(six)).toEqual({ origin: { address: '2001:db8::7', port: 56_324 }, used: six.length })
  for (let cut = 1; cut < six.length; cut += 1) expect(parse(six.subarray(0, cut))).toBeUndefined()
})

test('a health check of the proxy itself names nobody', () => {
  expect(parse(v2(0x20, 0, Buffer.alloc(0)))).toEqual({ origin: undefined, used: 16 })
})

test('a client without a header is a client', () => {
  expect(parse(ident)).toEqual({ origin: undefined, used: 0 })
  expect(parse(Buffer.from('P'))).toBeUndefined()
})

test.each([
  ['an address that is none', 'PROXY TCP4 nowhere 198.51.100.1 1 22\r\n'],
  ['an address of the other family', 'PROXY TCP4 2001:db8::7 198.51.100.1 1 22\r\n'],
  ['a port that is none', 'PROXY TCP4 192.0.2.7 198.51.100.1 x 22\r\n'],
  ['an unknown protocol', 'PROXY UDP4 192.0.2.7 198.51.100.1 1 22\r\n'],
  ['a line without an end', `PROXY ${'x'.repeat(200)}`],
])('%s is refused', (_, line) => {
  expect(() => parse(Buffer.from(line))).toThrow(BadHeader)
})

test('a version 2 header of absurd length, unknown version or useless family is refused', () => {
  expect(() => parse(Buffer.concat([signature, Buffer.from([0x21, 0x11, 0xff, 0xff])]))).toThrow(BadHeader)
  expect(() => parse(v2(0x11, 0x11, Buffer.alloc(12)))).toThrow(BadHeader)
  expect(() => parse(v2(0x21, 0x31, Buffer.alloc(216)))).toThrow(BadHeader)
})
