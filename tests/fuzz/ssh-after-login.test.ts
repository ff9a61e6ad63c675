// Messages of somebody who is logged in, changed at random, through the pipe and the rules of the gateway to
// a device: the connection goes on or ends with a named reason. Whatever the bytes: no variable reaches the
// device that the rules do not let through, no terminal starts there that the recorder does not know of, and
// no channel opens that was not asked for.
import { expect, test, vi } from 'vitest'
import {
  announcementFor,
  clientChannels,
  clientRequests,
  channelPolicy,
} from '../../server/src/gateway/channels/channels.ts'
import { openConnection, type ConnectionOptions } from '../../ssh/src/connection/connection.ts'
import {
  localPair,
  pipe,
  readRequest,
  SshError,
  writeRequest,
  writeTcpForward,
  type ConnectionEnd,
} from '../../ssh/src/index.ts'
import { Message } from '../../ssh/src/messages.ts'
import { defaults } from '../../ssh/src/options.ts'
import { message, type Writer } from '../../ssh/src/wire.ts'
import { bareTransport, inputOf } from './bare-transport.ts'
import { fuzz } from './fuzz.ts'
import { openPolicy } from '@hawser/contract/policies'
import { sessionPolicy } from '../../server/src/domain/access/session-policy.ts'
import { livePolicy } from '../../server/src/gateway/channels/live-policy.ts'

vi.setConfig({ testTimeout: 3_600_000 })

const open = (type: string, payload: Uint8Array = Buffer.alloc(0), id = 0): Writer =>
  message(Message.channelOpen, 256).string(type).uint32(id).uint32(65_536).uint32(32_768).raw(payload)
const ask = (request: Parameters<typeof writeRequest>[0], id = 0): Writer => {
  const { name, payload } = writeRequest(request)
  return message(Message.channelRequest, 256).uint32(id).string(name).boolean(true).raw(payload)
}
const data = (text: string, id = 0): Writer => message(Message.channelData, 256).uint32(id).string(text)
const bare = (type: number, id = 0): Writer => message(type).uint32(id)
const pty = { terminal: 'xterm', columns: 80, rows: 24, width: 0, height: 0, modes: new Map([[3, 127]]) }
const forward = { host: 'localhost', port: 80, origin: '127.0.0.1', originPort: 4_711 }

const seeds = [
  inputOf(
    open('session'),
    ask({ type: 'pty-req', pty }),
    ask({ type: 'shell' }),
    data('ls\r'),
    bare(Message.channelClose),
  ),
  inputOf(
    open('session'),
    ask({ type: 'env', name: 'LANG', value: 'C' }),
    ask({ type: 'env', name: 'LD_PRELOAD', value: '/x' }),
  ),
  inputOf(
    open('session'),
    ask({ type: 'exec', command: 'true' }),
    bare(Message.channelEof),
    bare(Message.channelClose),
  ),
  inputOf(open('session'), ask({ type: 'subsystem', name: 'sftp' }), data('\0\0\0\x05\x01\0\0\0\x03')),
  inputOf(
    open('session'),
    open('session', undefined, 1),
    ask({ type: 'signal', signal: 'INT' }, 1),
    ask({ type: 'window-change', size: pty }),
  ),
  inputOf(open('direct-tcpip', writeTcpForward(forward)), data('GET /'), bare(Message.channelEof)),
  inputOf(
    message(Message.globalRequest, 128).string('tcpip-forward').boolean(true).string('').uint32(0),
    bare(Message.channelWindowAdjust),
  ),
  inputOf(
    message(Message.globalRequest, 128).string('hostkeys-prove-00@openssh.com').boolean(true).string('key'),
  ),
]

const options: ConnectionOptions = {
  ...defaults,
  channelTypes: clientChannels,
  globalRequests: clientRequests,
  keepalive_ms: 0,
}

test('any messages', async () => {
  const { inputs, endings } = await fuzz({
    name: 'ssh-after-login',
    seeds,
    async feed(input) {
      const { transport, feed } = bareTransport()
      const near = openConnection(transport, options)
      const [far, device] = localPair()
      const seen = new Set<string>()
      let terminals = 0
      const recorder = {
        terminal: () => void (terminals += 1),
        program: (type: string) => void seen.add(type),
        output: () => undefined,
        interrupted: () => undefined,
        announcement: () => undefined,
        channel: undefined,
        typist: () => undefined,
        resize: () => void seen.add('resize'),
        exit: () => undefined,
        close: () => Promise.resolve(),
      }
      const passing = pipe(
        near,
        far,
        channelPolicy({
          record: {
            note: () => undefined,
            events: { add: () => () => undefined },
          } as unknown as Parameters<typeof channelPolicy>[0]['record'],
          limits: undefined,
          announcement: announcementFor('Welcome'),
          person: '',
          client: { address: '127.0.0.1', port: 4_711 },
          agentIsOurs: false,
          acceptEnv: [],
          closesAtEof: false,
          lostMessage: () => 'gone',
          recorder: () => recorder,
          mask: (text) => text,
          policy: livePolicy(sessionPolicy(openPolicy)),
          active: () => undefined,
        }),
      )
      const served = serveDevice(device, {
        asked(type, payload) {
          const request = readRequest(type, payload)
          seen.add(request.type)
          if (type === 'env')
            expect(request.type === 'env' && /^(LANG|LC_|COLORTERM|TERM_PROGRAM)/.test(request.name)).toBe(
              true,
            )
          if (type === 'pty-req') expect(terminals).toBeGreaterThan(0)
          expect(request.type === 'other' && knownNames.has(type)).toBe(false)
        },
        opened: (type) => void seen.add(type),
      })
      const how = await feed(input)
      await far.end()
      await passing
      await served
      if (how) expect(how).toBeInstanceOf(SshError)
      return `${how?.message ?? 'goes on'}: ${[...seen].toSorted().join(' ')}`
    },
  })
  expect(endings.size).toBeGreaterThan(20)
  console.log(`ssh-after-login: ${inputs} inputs, ${endings.size} endings`)
})

const knownNames = new Set([
  'pty-req',
  'x11-req',
  'env',
  'shell',
  'exec',
  'subsystem',
  'window-change',
  'signal',
  'break',
])

interface Watcher {
  asked(type: string, payload: Buffer): void
  opened(type: string): void
}

/**
 * A device that opens every channel, grants every request and reads everything; what a watcher finds wrong is
 * thrown at the end.
 */
async function serveDevice(device: ConnectionEnd, watcher: Watcher): Promise<void> {
  const wrong: unknown[] = []
  const watch = (look: () => void): void => {
    try {
      look()
    } catch (error) {
      wrong.push(error)
    }
  }
  const requests = (async () => {
    for await (const request of device.requests) request.refuse()
  })()
  for await (const opening of device.channels) {
    watch(() => watcher.opened(opening.type))
    const channel = opening.accept()
    void (async () => {
      for await (const asked of channel.requests) {
        watch(() => watcher.asked(asked.type, asked.payload))
        asked.reply(true)
      }
    })().catch(() => undefined)
    void (async () => {
      for await (const chunk of channel) void chunk
    })().catch(() => undefined)
  }
  await requests
  if (wrong.length > 0) throw wrong[0]
}
