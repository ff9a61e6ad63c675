// Two connections joined: a client's and a device's. A tap sees what passes and may refuse it. The client has
// no socket here: its end is within the process, as that of a terminal in a browser would be.
import assert from 'node:assert/strict'
import {
  localPair,
  pipe,
  queue,
  readRequest,
  receiveSession,
  sendableSignals,
  startSession,
  writeRequest,
} from '@hawser/ssh'
import { connected } from './loopback.ts'

await using both = await connected()
const { client: device, server } = both
const [near, browser] = localPair()

// The device: runs whatever it is asked to.
void (async (): Promise<void> => {
  for await (const opening of server.channels) {
    const session = await receiveSession(opening.accept(), () => true)
    if (session?.program.type !== 'exec') continue
    await session.channel.write(Buffer.from(`ran ${session.program.command}`))
    await session.exit(0)
  }
})()

// The gateway: passes sessions and nothing else, copies the output for a viewer, rewrites
// commands and lets no unknown signal through. A viewer who
// is too slow loses output instead of slowing the session down.
const viewer = queue<string>(1_000)
const piped = pipe(near, device, {
  channel: (_, opening) => ({
    allow: opening.type === 'session',
    tap: {
      data(from, { bytes }) {
        if (from === 'far') viewer.push(bytes.toString())
      },
      request(from, { type, payload }) {
        const request = readRequest(type, payload)
        if (request.type === 'signal' && !sendableSignals.has(request.signal)) return 'refuse'
        if (from === 'far' || request.type !== 'exec') return undefined
        const rewritten = writeRequest({ ...request, command: `${request.command} --dry-run` })
        return { type: rewritten.name, payload: rewritten.payload }
      },
    },
  }),
  request: () => false,
})

const session = await startSession(browser, { program: { type: 'exec', command: 'reboot' } })
let output = ''
for await (const { bytes } of session.channel) output += bytes.toString()
assert.equal(output, 'ran reboot --dry-run')
viewer.end()
let seen = ''
for await (const text of viewer) seen += text
assert.equal(seen, output)
await browser.end()
assert.equal((await piped).side, 'near')
