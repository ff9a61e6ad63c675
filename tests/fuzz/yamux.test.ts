// Frames of yamux from a peer that keeps to no rule: the session goes on or ends with the name of the rule
// that was broken.
import { duplexPair, type Duplex } from 'node:stream'
import { expect, test, vi } from 'vitest'
import { openMux, ProtocolError } from '../../mux/src/index.ts'
import { fuzz } from './fuzz.ts'

vi.setConfig({ testTimeout: 1_800_000 })

const hex = (text: string): Buffer => Buffer.from(text.replaceAll(' ', ''), 'hex')
const open = '000100010000000100000000'

const seeds = [
  hex(`${open} 000000000000000100000003 616263 000100040000000100000000`),
  hex('000000050000000100000003 616263'),
  hex(`00020001000000000000002a ${open} 000100000000000100010000 000100080000000100000000`),
  hex(`${open} 000100010000000300000000 000000000000000300000001 61 000300000000000000000000`),
  hex('000100020000000200000000 000000000000000200000002 6869 000100040000000200000000'),
]

test('any frames', async () => {
  const { inputs, endings } = await fuzz({
    name: 'yamux',
    seeds,
    async feed(input) {
      const [line, ours] = duplexPair()
      line.on('error', () => undefined).resume()
      const mux = openMux(ours, { role: 'server', mostStreams: 8, window_bytes: 256 * 1024 })
      const reader = readAll(mux.incoming)
      const stream = mux.open(Buffer.from('hello'))
      stream.on('error', () => undefined).resume()
      let how: Error | undefined | 'goes on' = 'goes on'
      void mux.ended.then((reason) => (how = reason))
      line.write(input)
      await new Promise((resolve) => setImmediate(resolve))
      const ended = how as Error | undefined | 'goes on'
      const open = mux.streams
      expect(open).toBeLessThanOrEqual(8)
      mux.close()
      await reader
      // Otherwise the line stays for some seconds, to let the last frame leave.
      line.end()
      if (ended === 'goes on' || ended === undefined) return `${String(ended)} with ${open} streams`
      expect(ended).toBeInstanceOf(ProtocolError)
      return (ended as ProtocolError).rule
    },
  })
  expect(endings.size).toBeGreaterThan(6)
  console.log(`yamux: ${inputs} inputs, ${endings.size} endings`)
})

async function readAll(incoming: AsyncIterable<Duplex>): Promise<void> {
  for await (const stream of incoming) stream.on('error', () => undefined).resume()
}
