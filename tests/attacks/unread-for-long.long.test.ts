// Somebody asks for a download and reads nothing of it, for as long as the server lets them: each held a place and its
// memory. After one or two minutes without a byte the connection is closed. A download that is read slowly goes on.
import net from 'node:net'
import { expect, test } from 'vitest'
import { sample } from '@hawser/contract/examples'
import { theServer } from '../../server/src/domain/audit/audit.ts'
import { eventually } from '../harness/eventually.ts'
import { sharedPlace } from '../harness/place.ts'

const place = sharedPlace()
const unread_ms = 60_000

/** A download of which nothing is read beyond its first bytes, and the status of its answer. */
async function download() {
  const { hostname, port } = new URL(place.url)
  const socket = net.connect({ host: hostname, port: Number(port) }).on('error', () => undefined)
  const token = await place.world.token('owner')
  socket.write(`GET /api/audit/export HTTP/1.1\r\nhost: x\r\nauthorization: Bearer ${token}\r\n\r\n`)
  const first = await new Promise<Buffer>((resolve) => socket.once('data', resolve))
  socket.pause()
  return { status: first.toString().split(' ')[1], socket }
}

test(
  'a download that nobody reads is given up, one that is read slowly is not',
  { timeout: 240_000 },
  async () => {
    const detail = { filler: Array<string>(75).fill('x'.repeat(200)) }
    const target = { kind: 'audit log', id: 'x', name: '' }
    for (let entry = 0; entry < 2_000; entry += 1)
      await place.rooms.audit.event(
        { ...theServer, tenant_id: sample.tenant },
        { action: 'audit.exported', target, detail },
      )
    const slow = await download()
    const reading = setInterval(() => void slow.socket.read(32 * 1024), 1_000)
    const begun = performance.now()
    // Seven unread downloads and the slow one take all places of the namespace.
    const unread = await Promise.all(Array.from({ length: 7 }, download))
    expect(new Set(unread.map(({ status }) => status))).toEqual(new Set(['200']))
    const again = async () => {
      const { status, socket } = await download()
      socket.destroy()
      return status
    }
    expect(await again()).toBe('429')
    await expect.poll(again, { timeout: 180_000, interval: 1_000 }).toBe('200')
    expect(performance.now() - begun).toBeGreaterThan(unread_ms - 5_000)
    clearInterval(reading)
    // All of the slow one is still to be had.
    let rest_bytes = 0
    slow.socket.on('data', (chunk: Buffer) => (rest_bytes += chunk.length))
    slow.socket.resume()
    await eventually(() => expect(rest_bytes).toBeGreaterThan(2_000 * 12_000))
    for (const { socket } of [...unread, slow]) socket.destroy()
  },
)
