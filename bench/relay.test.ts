// The relay passes everything on unchanged and counts it, with the headers that TCP would have added.
import { once } from 'node:events'
import net, { type AddressInfo } from 'node:net'
import { buffer } from 'node:stream/consumers'
import { expect, test } from 'vitest'
import { startRelay } from './relay.ts'

test('a relay counts the bytes of both sides and passes them on', async () => {
  const echo = net
    .createServer({ allowHalfOpen: true }, (socket) => void socket.pipe(socket))
    .listen(0, '127.0.0.1')
  await once(echo, 'listening')
  try {
    using relay = await startRelay((echo.address() as AddressInfo).port)
    const near = net.connect({ port: relay.port, host: '127.0.0.1' })
    near.write('anchor')
    const [answer] = (await once(near, 'data')) as [Buffer]
    expect(answer.toString()).toBe('anchor')
    const { bytes, line_bytes } = relay.passed()
    expect(bytes).toBe(12)
    // Two pieces and, as the second carries it, at least one acknowledgement and at most two.
    expect([bytes + 3 * 52, bytes + 4 * 52]).toContain(line_bytes)
    near.end()
    expect((await buffer(near)).length).toBe(0)
  } finally {
    echo.close()
  }
})
