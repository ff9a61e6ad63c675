// The inspector of the SFTP that passes a gateway: with our own client and server behind a pipe, and with
// bytes that no proper peer sends. However the bytes are cut, the passed bytes and the reports stay the same.
import { createHash, randomBytes } from 'node:crypto'
import { existsSync, mkdirSync, mkdtempSync, readFileSync, rmSync, writeFileSync } from 'node:fs'
import { tmpdir } from 'node:os'
import path from 'node:path'
import { buffer } from 'node:stream/consumers'
import fc from 'fast-check'
import { afterAll, beforeAll, describe, expect, test } from 'vitest'
import { ProtocolError } from '../src/errors.ts'
import { localPair } from '../src/local.ts'
import { receiveSession } from '../src/connection/session.ts'
import { pipe } from '../src/pipe.ts'
import { openSftp, type SftpClient } from '../src/sftp/client.ts'
import { localFiles } from '../src/sftp/files.ts'
import { sftpInspector, type SftpOperation, type SftpRestrictions } from '../src/sftp/inspector.ts'
import { Open, Sftp, Status, writeAttributes } from '../src/sftp/protocol.ts'
import { serveSftp } from '../src/sftp/server.ts'
import { Writer } from '../src/wire.ts'

let home: string
beforeAll(() => void (home = mkdtempSync(path.join(tmpdir(), 'hawser-inspector-'))))
afterAll(() => rmSync(home, { recursive: true, force: true }))

const large = randomBytes(3_000_007)
const sha256 = (bytes: Buffer): string => createHash('sha256').update(bytes).digest('hex')

interface Inspected extends AsyncDisposable {
  readonly sftp: SftpClient
  readonly seen: SftpOperation[]
  readonly lost: string[]
}

/** Our client, an inspector in the middle, our server. */
async function inspected(restrictions: SftpRestrictions = {}): Promise<Inspected> {
  const [client, near] = localPair()
  const [far, server] = localPair()
  const seen: SftpOperation[] = []
  const lost: string[] = []
  const inspector = sftpInspector({
    restrictions,
    done: (operation) => void seen.push(operation),
    lost: (why) => void lost.push(why),
  })
  const piped = pipe(near, far, {
    channel: () => ({ allow: true, tap: { filter: (from, { bytes }) => inspector.pass(from, bytes) } }),
  })
  const served = (async () => {
    const session = await receiveSession((await server.channels.next())!.accept(), () => true)
    await serveSftp(session!.channel, localFiles(home))
    await session!.exit(0)
  })()
  const sftp = await openSftp(client)
  return {
    sftp,
    seen,
    lost,
    async [Symbol.asyncDispose]() {
      await sftp[Symbol.asyncDispose]()
      await served
      await client.end()
      await piped
      inspector.end()
    },
  }
}

describe('what passes', () => {
  test('whole files have their hash and size, and changes their paths', async () => {
    await using line = await inspected()
    const { sftp, seen } = line
    await sftp.write('up', [large])
    expect((await buffer(sftp.read('up'))).equals(large)).toBe(true)
    await sftp.makeFolder('box')
    await sftp.rename('up', 'box/up')
    await sftp.link('up', 'box/link')
    await sftp.change('box/up', { mode: 0o600 })
    await sftp.remove('box/link')
    await sftp.remove('box/up')
    await sftp.removeFolder('box')
    await sftp.write('empty', [])
    await buffer(sftp.read('empty'))
    const whole = { path: 'up', bytes: large.length, sha256: sha256(large) }
    const nothing = { path: 'empty', bytes: 0, sha256: sha256(Buffer.alloc(0)) }
    expect(seen).toEqual([
      { kind: 'write', ...whole },
      { kind: 'read', ...whole },
      { kind: 'make-folder', path: 'box', bytes: 0 },
      { kind: 'rename', path: 'up', target: 'box/up', bytes: 0 },
      { kind: 'link', path: 'box/link', target: 'up', bytes: 0 },
      { kind: 'change', path: 'box/up', bytes: 0 },
      { kind: 'remove', path: 'box/link', bytes: 0 },
      { kind: 'remove', path: 'box/up', bytes: 0 },
      { kind: 'remove-folder', path: 'box', bytes: 0 },
      { kind: 'write', ...nothing },
      { kind: 'read', ...nothing },
    ])
    expect(line.lost).toEqual([])
  })

  test('what the server refuses is no change', async () => {
    await using line = await inspected()
    await expect(line.sftp.remove('missing')).rejects.toMatchObject({ code: Status.noSuchFile })
    await expect(line.sftp.makeFolder('missing/box')).rejects.toMatchObject({ code: Status.noSuchFile })
    expect(line.seen).toEqual([])
  })
})

describe('what is refused', () => {
  const no = { reads: 'No downloads.', writes: 'No uploads.' }
  const denied = (message: string) => ({ code: Status.permissionDenied, message })

  test('without writes nothing changes, and reading goes on', async () => {
    writeFileSync(path.join(home, 'there'), 'x')
    mkdirSync(path.join(home, 'folder'))
    await using line = await inspected({ writes: no.writes })
    const { sftp } = line
    const tries = [
      () => sftp.write('new', [large]),
      () => sftp.remove('there'),
      () => sftp.makeFolder('made'),
      () => sftp.removeFolder('folder'),
      () => sftp.rename('there', 'gone'),
      () => sftp.link('there', 'link'),
      () => sftp.change('there', { mode: 0o777 }),
    ]
    for (const attempt of tries) await expect(attempt()).rejects.toMatchObject(denied(no.writes))
    expect(['new', 'made', 'gone', 'link'].filter((name) => existsSync(path.join(home, name)))).toEqual([])
    expect(readFileSync(path.join(home, 'there'), 'utf8')).toBe('x')
    expect((await buffer(sftp.read('there'))).toString()).toBe('x')
    expect(line.seen.filter(({ refused }) => refused === no.writes)).toHaveLength(tries.length)
  })

  test('without reads no file is read, and folders are', async () => {
    await using line = await inspected({ reads: no.reads })
    await expect(buffer(line.sftp.read('there'))).rejects.toMatchObject(denied(no.reads))
    await line.sftp.write('written', [large])
    expect((await Array.fromAsync(line.sftp.list('.'))).map(({ name }) => name)).toContain('written')
    expect(line.seen).toEqual([
      { kind: 'read', path: 'there', bytes: 0, refused: no.reads },
      { kind: 'write', path: 'written', bytes: large.length, sha256: sha256(large) },
    ])
  })
})

/** A packet with its length before it. */
function packet(type: number, id: number, write: (writer: Writer) => Writer = (writer) => writer): Buffer {
  const body = write(new Writer().byte(type).uint32(id)).bytes()
  return Buffer.from(new Writer().string(body).bytes())
}
const opens = (id: number, name: string, flags: number): Buffer =>
  packet(Sftp.open, id, (writer) => writeAttributes(writer.string(name).uint32(flags), {}))
const handle = (id: number, name: string): Buffer => packet(Sftp.handle, id, (writer) => writer.string(name))
const status = (id: number, code: number): Buffer =>
  packet(Sftp.status, id, (writer) => writer.uint32(code).string('').string(''))
const reads = (id: number, name: string, offset: number): Buffer =>
  packet(Sftp.read, id, (writer) => writer.string(name).uint64(BigInt(offset)).uint32(32_768))
const gives = (id: number, bytes: Buffer): Buffer => packet(Sftp.data, id, (writer) => writer.string(bytes))
const writes = (id: number, name: string, offset: number, bytes: Buffer): Buffer =>
  packet(Sftp.write, id, (writer) => writer.string(name).uint64(BigInt(offset)).string(bytes))
const closes = (id: number, name: string): Buffer => packet(Sftp.close, id, (writer) => writer.string(name))

function watched(restrictions: SftpRestrictions = {}) {
  const seen: SftpOperation[] = []
  const lost: string[] = []
  const inspector = sftpInspector({
    restrictions,
    done: (operation) => void seen.push(operation),
    lost: (why) => void lost.push(why),
  })
  return {
    seen,
    lost,
    near: (...packets: Buffer[]) => Buffer.concat(packets.flatMap((one) => inspector.pass('near', one))),
    far: (...packets: Buffer[]) => Buffer.concat(packets.flatMap((one) => inspector.pass('far', one))),
    end: () => inspector.end(),
  }
}

test('however the bytes are cut, the same passes and the same is said', () => {
  const [one, two] = [Buffer.alloc(40_000, 1), randomBytes(50_001)]
  const near = Buffer.concat([
    packet(Sftp.init, 3),
    opens(1, 'up', Open.write | Open.create | Open.truncate),
    writes(2, 'h', 0, one),
    writes(3, 'h', one.length, two),
    packet(Sftp.remove, 4, (writer) => writer.string('old')),
    closes(5, 'h'),
  ])
  const far = [handle(1, 'h'), ...[2, 3, 4, 5].map((id) => status(id, Status.ok))]
  const whole = sha256(Buffer.concat([one, two]))
  fc.assert(
    fc.property(fc.array(fc.integer({ min: 1, max: 9_000 }), { minLength: 1, maxLength: 40 }), (sizes) => {
      for (const restrictions of [{}, { reads: 'No.' }]) {
        const line = watched(restrictions)
        const [init, open, ...rest] = [near.subarray(0, 9), opens(1, 'up', 26), near] as const
        expect(line.near(init, open)).toEqual(Buffer.concat([init, open]))
        line.far(handle(1, 'h'))
        const behind = rest[0].subarray(init.length + open.length)
        const passed: Buffer[] = []
        for (let at = 0, turn = 0; at < behind.length; turn += 1) {
          const size = sizes[turn % sizes.length] ?? 1
          passed.push(line.near(behind.subarray(at, at + size)))
          at += size
        }
        expect(Buffer.concat(passed).equals(behind)).toBe(true)
        const answers = Buffer.concat(far.slice(1))
        for (const byte of answers) line.far(Buffer.of(byte))
        expect(line.seen).toEqual([
          { kind: 'remove', path: 'old', bytes: 0 },
          { kind: 'write', path: 'up', bytes: 90_001, sha256: whole },
        ])
      }
    }),
    { numRuns: 50 },
  )
})

describe('files that did not pass whole have no hash', () => {
  const piece = Buffer.alloc(100, 7)
  const opened = (flags: number) => {
    const line = watched()
    line.near(opens(1, 'f', flags))
    line.far(handle(1, 'h'))
    return line
  }
  const fresh = Open.write | Open.create | Open.truncate
  const closed = (line: ReturnType<typeof watched>) => {
    line.near(closes(9, 'h'))
    line.far(status(9, Status.ok))
    return line.seen
  }

  test('a write with a gap, out of order, into an old file, refused by the server, or appended', () => {
    const gap = opened(fresh)
    gap.near(writes(2, 'h', 50, piece))
    gap.far(status(2, Status.ok))
    const old = opened(Open.write)
    old.near(writes(2, 'h', 0, piece))
    old.far(status(2, Status.ok))
    const failed = opened(fresh)
    failed.near(writes(2, 'h', 0, piece))
    failed.far(status(2, Status.failure))
    const appended = opened(fresh | Open.append)
    appended.near(writes(2, 'h', 0, piece))
    appended.far(status(2, Status.ok))
    for (const line of [gap, old, failed, appended])
      expect(closed(line)).toEqual([{ kind: 'write', path: 'f', bytes: 100 }])
  })

  test('an old file that was cut behind what was written has one', () => {
    const line = opened(Open.write)
    line.near(writes(2, 'h', 0, piece))
    line.near(packet(Sftp.fsetstat, 3, (writer) => writeAttributes(writer.string('h'), { size: 100 })))
    line.far(status(2, Status.ok), status(3, Status.ok))
    expect(closed(line)).toEqual([{ kind: 'write', path: 'f', bytes: 100, sha256: sha256(piece) }])
  })

  test('a read that stopped before the end, or that nobody closed', () => {
    const early = opened(Open.read)
    early.near(reads(2, 'h', 0))
    early.far(gives(2, piece))
    expect(closed(early)).toEqual([{ kind: 'read', path: 'f', bytes: 100 }])
    const left = opened(Open.read)
    left.near(reads(2, 'h', 0), reads(3, 'h', 100))
    left.far(gives(2, piece), status(3, Status.eof))
    left.end()
    expect(left.seen).toEqual([{ kind: 'read', path: 'f', bytes: 100 }])
  })

  test('a read that went on to the end has one', () => {
    const line = opened(Open.read)
    line.near(reads(2, 'h', 0), reads(3, 'h', 100))
    line.far(gives(2, piece), status(3, Status.eof))
    expect(closed(line)).toEqual([{ kind: 'read', path: 'f', bytes: 100, sha256: sha256(piece) }])
  })
})

describe('rude peers', () => {
  const no = { reads: 'No downloads.', writes: 'No uploads.' }

  test('bytes that are no SFTP are an error, and never anything else', () => {
    fc.assert(
      fc.property(
        fc.array(fc.tuple(fc.boolean(), fc.uint8Array({ maxLength: 300 })), { maxLength: 20 }),
        fc.boolean(),
        (chunks, isRestricted) => {
          const line = watched(isRestricted ? no : {})
          try {
            for (const [isNear, bytes] of chunks) line[isNear ? 'near' : 'far'](Buffer.from(bytes))
          } catch (error) {
            expect(error).toBeInstanceOf(ProtocolError)
          }
        },
      ),
      { numRuns: 2_000 },
    )
  })

  test('a number that is used twice, and a handle that was guessed, end the account of files', () => {
    const twice = watched()
    twice.near(opens(1, 'f', Open.read))
    twice.far(handle(1, 'h'))
    twice.near(
      reads(2, 'h', 0),
      packet(Sftp.stat, 2, (writer) => writer.string('/')),
    )
    expect(twice.lost).toEqual(['two requests have the same number'])
    const guessed = watched()
    guessed.near(opens(1, 'f', Open.read), reads(2, 'h', 0))
    expect(guessed.lost).toEqual(['a file was used that is not open'])
  })

  test('a million open files, or requests, hold a bounded memory', () => {
    const files = watched()
    for (let id = 0; id < 1_000_000 && files.lost.length === 0; id += 1) {
      files.near(opens(id, `/${'a'.repeat(4_000)}`, Open.read))
      files.far(handle(id, `h${id}`))
    }
    expect(files.lost).toHaveLength(1)
    // Each that was open is said to be so, and no file was read.
    expect(files.seen).toEqual([])
    const requests = watched()
    for (let id = 0; id < 1_000_000 && requests.lost.length === 0; id += 1)
      requests.near(packet(Sftp.remove, id, (writer) => writer.string('x')))
    expect(requests.lost).toHaveLength(1)
  })

  test('refused requests without an answer are bounded, too', () => {
    const line = watched(no)
    expect(() => {
      for (let id = 0; id < 1_000_000; id += 1) line.near(opens(id, 'x', Open.write))
    }).toThrow(ProtocolError)
  })

  test('a client of another version is made to speak the one that is understood', () => {
    expect(watched(no).near(packet(Sftp.init, 6, (writer) => writer.string('ext').string('1')))).toEqual(
      packet(Sftp.init, 3),
    )
    expect(watched().near(packet(Sftp.init, 6))).toEqual(packet(Sftp.init, 6))
    expect(() => watched(no).far(packet(Sftp.version, 6))).toThrow(ProtocolError)
  })

  test.each<readonly [string, Buffer]>([
    ['WRITE with a guessed handle', writes(7, 'h', 0, Buffer.from('x'))],
    ['OPEN with CREATE alone', opens(7, 'f', Open.create)],
    ['OPEN with READ and TRUNCATE', opens(7, 'f', Open.read | Open.truncate)],
    ['FSETSTAT', packet(Sftp.fsetstat, 7, (writer) => writeAttributes(writer.string('h'), { size: 0 }))],
    ...[
      'posix-rename@openssh.com',
      'hardlink@openssh.com',
      'lsetstat@openssh.com',
      'copy-data',
      'unknown@x',
    ].map(
      (name) =>
        [name, packet(Sftp.extended, 7, (writer) => writer.string(name).string('a').string('b'))] as const,
    ),
    ['a request that SFTP 6 has (LINK)', packet(21, 7, (writer) => writer.string('a').string('b'))],
  ])('without writes %s does not reach the server', (_, request) => {
    const line = watched({ writes: no.writes })
    const harmless = packet(Sftp.lstat, 7, (writer) => writer.string('/'))
    expect(line.near(request)).toEqual(harmless)
    const answer = line.far(packet(Sftp.attrs, 7, (writer) => writeAttributes(writer, { size: 1 })))
    expect(answer).toEqual(
      packet(Sftp.status, 7, (writer) =>
        writer.uint32(Status.permissionDenied).string(no.writes).string('en'),
      ),
    )
    // The next one is not touched.
    expect(line.far(status(8, Status.ok))).toEqual(status(8, Status.ok))
  })

  test.each<readonly [string, Buffer]>([
    ['OPEN without flags', opens(7, 'f', 0)],
    ['OPEN with READ and WRITE', opens(7, 'f', Open.read | Open.write)],
    ['READ with a guessed handle', reads(7, 'h', 0)],
    ['an unknown extended request', packet(Sftp.extended, 7, (writer) => writer.string('check-file'))],
  ])('without reads %s does not reach the server', (_, request) => {
    expect(watched({ reads: no.reads }).near(request)).toEqual(
      packet(Sftp.lstat, 7, (writer) => writer.string('/')),
    )
  })

  test('a huge answer to a refused request is swallowed', () => {
    const line = watched(no)
    line.near(opens(7, 'f', Open.read))
    const answer = gives(7, Buffer.alloc(200_000))
    const passed = [answer.subarray(0, 5), answer.subarray(5, 100_000), answer.subarray(100_000)]
    expect(line.far(...passed, status(8, Status.ok)).length).toBeLessThan(100)
  })
})
