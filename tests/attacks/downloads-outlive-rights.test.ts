// An administrator who knows that they will lose the right begins to download the recording of a session that goes
// on, and reads slowly. The download followed the session, so it had what was typed and shown after the membership had
// ended. A download ends where the recording was when it began, and soon after its caller has lost the right to it.
import { randomBytes } from 'node:crypto'
import net from 'node:net'
import { expect, test } from 'vitest'
import { sample } from '@hawser/contract/examples'
import { sharedPlace } from '../harness/place.ts'
import { recordSession } from '../harness/recorded.ts'

const place = sharedPlace()

const mebibyte = 1024 * 1024

async function restOf(iterator: AsyncIterator<unknown>): Promise<string> {
  let all = ''
  for (let next = await iterator.next(); !next.done; next = await iterator.next())
    all += JSON.stringify(next.value)
  return all
}

test.each(['cast', 'frames'] as const)('the %s of a session that goes on ends where it was', async (form) => {
  const { recordings } = place.rooms
  const about = { tenant_id: sample.tenant, device_uid: sample.device, username: 'root', term: 'xterm' }
  const session_uid = randomBytes(32).toString('hex')
  const recording = await recordings.begin({ ...about, session_uid, width: 80, height: 24 })
  await recording.output(Buffer.from('before the call\r\n'))
  const reading = recordings[form](recording.name)[Symbol.asyncIterator]()
  const first = await reading.next()
  await recording.output(Buffer.from('after the call\r\n'))
  // Everything is in the file.
  await (await recordings.read(recording.name))[Symbol.asyncDispose]()
  const text = JSON.stringify(first.value) + (await restOf(reading))
  expect(text).toContain('before the call')
  expect(text).not.toContain('after the call')
  expect(await restOf(recordings[form](recording.name)[Symbol.asyncIterator]())).toContain('after the call')
  await recording.finish()
})

test('a download ends when its caller is no longer a member', async () => {
  const line = randomBytes(48 * 1024).toString('base64')
  const uid = await recordSession(place.rooms, { lines: Array<string>(512).fill(line) })
  const token = await place.world.token('administrator')
  const socket = net.connect(Number(new URL(place.url).port), '127.0.0.1').on('error', () => undefined)
  socket.write(
    `GET /api/sessions/${uid}/cast HTTP/1.1\r\nhost: x\r\nauthorization: Bearer ${token}\r\nconnection: close\r\n\r\n`,
  )
  const first = await new Promise<Buffer>((resolve) => socket.once('data', resolve))
  expect(first.toString()).toContain(' 200 ')
  socket.pause()
  const params = { tenant: sample.tenant, uid: sample.administrator.id }
  await place.owner.namespaces.removeMember({ params })
  let bytes = 0
  socket.on('data', (chunk: Buffer) => (bytes += chunk.length))
  socket.resume()
  await new Promise((resolve) => socket.once('close', resolve))
  // What the system holds for a connection, and not the rest of the 32 MiB.
  expect(bytes).toBeLessThan(24 * mebibyte)
})
