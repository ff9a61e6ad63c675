// Getting files past the record of a session or the policy of its namespace, by bytes that no proper client
// or device sends: requests ahead of their answers, guessed handles, numbers used twice, requests of other
// versions and of extensions, packets of impossible sizes, a second program on a channel, subsystems by other
// names. What the device gets and what the record says is looked at.
import { lookup } from 'node:dns/promises'
import { afterEach, expect, test } from 'vitest'
import { openPolicy, type Policy } from '@hawser/contract/policies'
import {
  localPair,
  pipe,
  readRequest,
  writeDirectPath,
  writeRequest,
  writeTcpForward,
  type Channel,
  type ConnectionEnd,
} from '@hawser/ssh'
import type { SessionHappening } from '../../server/src/domain/sessions/session-events.ts'
import { sessionPolicy } from '../../server/src/domain/access/session-policy.ts'
import { channelPolicy } from '../../server/src/gateway/channels/channels.ts'
import { livePolicy } from '../../server/src/gateway/channels/live-policy.ts'

const nothing = (): undefined => undefined
const noUploads: Partial<Policy> = { uploads: false }
const neither: Partial<Policy> = { uploads: false, downloads: false }

interface Door {
  readonly client: ConnectionEnd
  readonly device: ConnectionEnd
  readonly events: SessionHappening[]
}

const opened: ConnectionEnd[] = []
afterEach(async () => {
  await Promise.all(opened.splice(0).map((end) => end.end()))
})

/** A client and a device, with the gateway's rules between them. */
function door(policy: Partial<Policy> = {}): Door {
  const [client, near] = localPair()
  const [far, device] = localPair()
  opened.push(client, device)
  const events: SessionHappening[] = []
  const add = (event: SessionHappening) => {
    events.push(event)
    return nothing
  }
  const recorder = {
    terminal: nothing,
    program: nothing,
    output: nothing,
    announcement: nothing,
    resize: nothing,
    exit: nothing,
    interrupted: nothing,
    channel: undefined,
    typist: () => undefined,
    close: () => Promise.resolve(),
  }
  void pipe(
    near,
    far,
    channelPolicy({
      record: {
        uid: 'f'.repeat(64),
        events: { add, end: nothing },
        note: nothing,
        held: nothing,
        resumed: nothing,
        released: nothing,
        shared: () => undefined,
        leave: nothing,
        finish: nothing,
      },
      limits: undefined,
      announcement: '',
      person: '',
      client: { address: '192.0.2.7', port: 40_000 },
      agentIsOurs: false,
      acceptEnv: [],
      closesAtEof: false,
      lostMessage: () => 'lost',
      recorder: () => recorder,
      mask: (text) => text,
      policy: livePolicy(sessionPolicy({ ...openPolicy, ...policy })),
      active: nothing,
    }),
  )
  return { client, device, events }
}

/** Both ends of a session in which the client has asked for these programs, one after the other. */
async function session(
  { client, device }: Door,
  ...programs: readonly Parameters<typeof writeRequest>[0][]
): Promise<{ near: Channel; far: Channel; asked: string[] }> {
  const opening = client.open('session')
  const far = (await device.channels.next())!.accept()
  const near = await opening
  const asked: string[] = []
  void (async () => {
    for await (const request of far.requests) {
      const read = readRequest(request.type, request.payload)
      asked.push(
        [read.type, 'command' in read ? read.command : 'name' in read ? read.name : ''].join(' ').trim(),
      )
      request.reply(true)
    }
  })().catch(nothing)
  for (const program of programs) {
    const { name, payload } = writeRequest(program)
    await near.request(name, payload, true)
  }
  return { near, far, asked }
}
const sftp = { type: 'subsystem', name: 'sftp' } as const

const u32 = (value: number): Buffer => {
  const bytes = Buffer.alloc(4)
  bytes.writeUInt32BE(value)
  return bytes
}
const text = (value: string | Buffer): Buffer =>
  Buffer.concat([u32(Buffer.byteLength(value)), Buffer.from(value)])
const packet = (type: number, id: number, ...fields: readonly Buffer[]): Buffer =>
  text(Buffer.concat([Buffer.of(type), u32(id), ...fields]))
const init = (version: number): Buffer => packet(1, version)
const open = (id: number, path: string, flags: number): Buffer =>
  packet(3, id, text(path), u32(flags), u32(0))
const write = (id: number, handle: string): Buffer =>
  packet(6, id, text(handle), u32(0), u32(0), text('evil'))
const read = (id: number, handle: string): Buffer => packet(5, id, text(handle), u32(0), u32(0), u32(32_768))
const lstat = (id: number): Buffer => packet(7, id, text('/'))

/** The next bytes of a channel, so many of them. */
async function take(channel: Channel, count: number): Promise<Buffer> {
  const parts: Buffer[] = []
  for (let got = 0; got < count;) {
    const chunk = await channel.read()
    if (!chunk) break
    parts.push(Buffer.from(chunk.bytes))
    got += chunk.bytes.length
  }
  return Buffer.concat(parts)
}
const rest = async (channel: Channel): Promise<Buffer> => take(channel, Number.MAX_SAFE_INTEGER)

test('requests that come ahead of their answers, with guessed handles, do not reach the device', async () => {
  const { near, far } = await session(door(noUploads), sftp)
  const evil = [open(1, '/etc/cron.d/evil', 0x1a), write(2, '\0\0\0\0'), packet(4, 3, text('\0\0\0\0'))]
  await near.write(Buffer.concat([init(3), ...evil, open(4, '/etc/motd', 1)]))
  const expected = Buffer.concat([init(3), lstat(1), lstat(2), evil[2]!, open(4, '/etc/motd', 1)])
  expect(await take(far, expected.length)).toEqual(expected)
})

test.each([
  ['posix-rename', packet(200, 9, text('posix-rename@openssh.com'), text('/a'), text('/b'))],
  ['hardlink', packet(200, 9, text('hardlink@openssh.com'), text('/etc/shadow'), text('/tmp/x'))],
  ['lsetstat', packet(200, 9, text('lsetstat@openssh.com'), text('/a'), u32(4), u32(0o777))],
  [
    'copy-data',
    packet(200, 9, text('copy-data'), text('a'), u32(0), u32(0), u32(0), u32(0), text('b'), u32(0), u32(0)),
  ],
  ['an extension that is not known', packet(200, 9, text('write-it@evil'), text('/a'))],
  ['version-select', packet(200, 9, text('version-select'), text('6'))],
  ['symlink', packet(20, 9, text('/etc/shadow'), text('/tmp/x'))],
  ['a request of SFTP 6', packet(21, 9, text('/a'), text('/b'), Buffer.of(0))],
  ['a type that nobody has', packet(99, 9)],
  ['OPEN with CREATE alone', open(9, '/a', 8)],
  ['OPEN with APPEND alone', open(9, '/a', 4)],
])('%s changes nothing where uploads are forbidden', async (_, request) => {
  const { near, far } = await session(door(noUploads), sftp)
  await near.write(request)
  expect(await take(far, lstat(9).length)).toEqual(lstat(9))
  await far.write(packet(105, 9, u32(0)))
  const answer = await take(near, 20)
  // STATUS, the same number, permission denied.
  expect(answer.subarray(4, 13)).toEqual(Buffer.concat([Buffer.of(101), u32(9), u32(3)]))
  expect(answer.toString()).toContain('does not allow uploads')
})

test('a client of SFTP 6, whose OPEN has its flags elsewhere, speaks version 3', async () => {
  const { near, far } = await session(door(noUploads), sftp)
  await near.write(init(6))
  expect(await take(far, 9)).toEqual(init(3))
})

test('a device that speaks SFTP 6 all the same, and one that speaks none, are cut off', async () => {
  for (const answer of [
    packet(2, 6),
    Buffer.from('Welcome to this device\n'),
    u32(0xffff_ffff),
    packet(103, 1),
  ]) {
    const gate = door(neither)
    const { near, far } = await session(gate, sftp)
    await near.write(init(3))
    await take(far, 9)
    await far.write(Buffer.concat([answer, Buffer.alloc(100)])).catch(nothing)
    expect((await rest(near)).toString().trim()).toBe(
      'The policy of the namespace restricts transfers, and the SFTP traffic could not be parsed.',
    )
    expect(gate.events.map(({ kind }) => kind)).toContain('unread')
  }
})

test('where nothing is forbidden such a device is passed on as it is, and the record says so', async () => {
  const gate = door()
  const { near, far } = await session(gate, sftp)
  const answer = Buffer.concat([u32(0xffff_ffff), Buffer.alloc(300_000, 7)])
  void far.write(answer).catch(nothing)
  expect((await take(near, answer.length)).equals(answer)).toBe(true)
  expect(gate.events.filter(({ kind }) => kind === 'unread')).toHaveLength(1)
})

test('a download is not hidden by a handle that was guessed, or a number that was used twice', async () => {
  const guessed = door()
  const one = await session(guessed, sftp)
  const ahead = Buffer.concat([init(3), open(1, '/etc/shadow', 1), read(2, '\0\0\0\0')])
  await one.near.write(ahead)
  expect((await take(one.far, ahead.length)).equals(ahead)).toBe(true)
  expect(guessed.events.at(-1)).toMatchObject({ kind: 'unread', why: 'a file was used that is not open' })
  const twice = door()
  const other = await session(twice, sftp)
  await other.near.write(open(1, '/etc/shadow', 1))
  await take(other.far, open(1, '/etc/shadow', 1).length)
  await other.far.write(packet(102, 1, text('h')))
  await take(other.near, 14)
  await other.near.write(Buffer.concat([read(2, 'h'), packet(17, 2, text('/'))]))
  await take(other.far, read(2, 'h').length)
  expect(twice.events.at(-1)).toMatchObject({ kind: 'unread', why: 'two requests have the same number' })
})

test('a client that opens files without end is followed up to a bound, and then not at all', async () => {
  const gate = door()
  const { near, far } = await session(gate, sftp)
  void rest(far).catch(nothing)
  for (let id = 0; id < 20_000 && gate.events.length < 2; id += 1)
    await near.write(open(id, '/x'.repeat(500), 1))
  expect(gate.events.map(({ kind }) => kind)).toEqual(['subsystem', 'unread'])
})

test('a second program on a channel, and another channel, are looked at as the first', async () => {
  const gate = door(noUploads)
  for (let turn = 0; turn < 2; turn += 1) {
    const { near, far, asked } = await session(gate, { type: 'exec', command: 'true' }, sftp)
    expect(asked).toEqual(['exec true', 'subsystem sftp'])
    await near.write(open(1, '/x', 2))
    expect(await take(far, lstat(1).length)).toEqual(lstat(1))
  }
})

test.each([
  [{ type: 'subsystem', name: 'SFTP' }],
  [{ type: 'subsystem', name: 'sftp ' }],
  [{ type: 'subsystem', name: 'backdoor' }],
  [{ type: 'exec', command: '/usr/lib/openssh/sftp-server -e' }],
  [{ type: 'exec', command: 'env X=1 scp -qt /etc' }],
  [{ type: 'exec', command: 'sc""p -t /etc' }],
] as const)(
  '%o does not reach the device where transfers are forbidden, and the client reads why',
  async (program) => {
    const gate = door(neither)
    const { near, asked } = await session(gate, program)
    expect((await rest(near)).toString()).toContain('The policy of the namespace does not allow')
    expect(asked).toEqual([])
    expect(gate.events).toEqual([expect.objectContaining({ outcome: 'refused' })])
  },
)

test('another spelling of an address is the same address', async () => {
  const gate = door({ forward_exceptions: ['127.0.0.1:5432'] })
  for (const host of ['127.0.0.1', '127.1', '0x7f.1', '2130706433', '::ffff:7f00:1', 'LOCALHOST.', '0', '']) {
    const payload = writeTcpForward({ host, port: 5432, origin: '', originPort: 0 })
    await expect(gate.client.open('direct-tcpip', payload)).rejects.toThrow('does not allow connections')
  }
  expect(gate.events).toHaveLength(8)
})

test('what the agent would look up as another name is no way around a forbidden address', async () => {
  const disguised = [
    '\uFF11\uFF12\uFF17.0.0.1',
    '127\u30020\u30020\u30021',
    '\u24DBocalhost',
    'local\u00ADhost',
  ]
  for (const host of disguised)
    expect([host, (await lookup(host, { family: 4 })).address]).toEqual([host, '127.0.0.1'])
  // For others a name ends at a NUL.
  for (const host of [...disguised, '127.0.0.1\0', 'localhost\0.example.com']) {
    const gate = door({ forward_exceptions: ['127.0.0.1:5432'] })
    const payload = writeTcpForward({ host, port: 5432, origin: '', originPort: 0 })
    await expect(gate.client.open('direct-tcpip', payload)).rejects.toThrow('does not allow connections')
    expect(gate.events).toHaveLength(1)
  }
})

test.each([
  ['*.internal:*', '127.0.0.1\0.internal'],
  ['10.0.*:*', '10.0.example.com'],
  ['10.0.*:*', '10.0.0.1.example.com'],
  ['db.internal:*', 'db.internal%x.example.com'],
  ['*:80', 'x\0'],
])('an exception for %s allows no connection to %j', async (exception, host) => {
  const gate = door({ forwards: 'forbid', forward_exceptions: [exception] })
  const payload = writeTcpForward({ host, port: 80, origin: '', originPort: 0 })
  await expect(gate.client.open('direct-tcpip', payload)).rejects.toThrow('does not allow connections')
})

test('a path to a socket is looked at as the device takes it', async () => {
  const refused = async (policy: Partial<Policy>, path: string) => {
    const payload = writeDirectPath(path)
    const opening = door(policy).client.open('direct-streamlocal@openssh.com', payload)
    await expect(opening, path).rejects.toThrow('does not allow connections')
  }
  for (const path of ['/run/app/../docker.sock', '/run/docker.sock\0/run/app/x.sock', '/run/app/\0.sock'])
    await refused({ forwards: 'forbid', forward_exceptions: ['unix:/run/app/*.sock'] }, path)
  for (const path of [
    '/run//docker.sock',
    '/./run/x/../docker.sock',
    '/run/docker.sock\0',
    'run/docker.sock',
  ])
    await refused({ forward_exceptions: ['unix:/run/docker.sock'] }, path)
})
