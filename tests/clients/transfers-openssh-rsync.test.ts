// What the record of a session says of files, commands and forwarded connections, with the real sftp, scp,
// rsync and ssh through the gateway: what passed, how much of it, and the hash of whole files.
import { createHash, randomBytes } from 'node:crypto'
import { once } from 'node:events'
import net from 'node:net'
import { mkdirSync, readFileSync } from 'node:fs'
import { afterAll, beforeAll, describe, expect, test, vi } from 'vitest'
import type { SessionEvent } from '@hawser/contract/session-events'
import { roundTrip, startEcho, whenListening } from '../../ssh/test/peers.ts'
import { freePort, run, type Outcome } from '../../ssh/test/programs.ts'
import { oneDatabase } from '../harness/tier.ts'
import { eventually, openWay, type How, type Way } from './way.ts'

const large = randomBytes(5_000_003)
const sha256 = (bytes: Buffer): string => createHash('sha256').update(bytes).digest('hex')

vi.setConfig({ testTimeout: 300_000, hookTimeout: 120_000 })

describe.each(oneDatabase)('%s', (_, options) => {
  let way: Way
  beforeAll(async () => {
    way = await openWay({}, await options())
    way.where.write('large', large)
    mkdirSync(way.where.file('tree/deep'), { recursive: true })
    way.where.write('tree/deep/a name with ünïcode', 'x')
  })
  afterAll(() => way[Symbol.asyncDispose]())

  const args = (how?: How): string[] => way.args(how).map((word) => (word === '-p' ? '-P' : word))
  const at = (name: string): string => `${way.sshid()}@127.0.0.1:${name}`
  const fine = ({ status, stderr }: Outcome): void => expect([status, stderr]).toEqual([0, ''])
  const sftp = async (...lines: string[]): Promise<Outcome> =>
    run('sftp', [...args(), '-q', '-b', '-', `${way.sshid()}@127.0.0.1`], `${lines.join('\n')}\n`)

  /** Waits until the newest session is over and what happened in it is as it should be. */
  const events = async (check: (seen: SessionEvent[]) => void): Promise<void> =>
    eventually(async () => {
      const { uid, active } = await way.newest()
      expect(active).toBe(false)
      check((await way.owner.sessions.events({ params: { uid } })).body.events)
    })
  const short = ({ kind, subject, outcome }: SessionEvent): string[] => [kind, subject, outcome]
  const upload = (subject: string) => ({
    kind: 'upload',
    subject,
    outcome: 'done',
    received: large.length,
    sent: 0,
    sha256: sha256(large),
  })
  const download = (subject: string) => ({
    ...upload(subject),
    kind: 'download',
    received: 0,
    sent: large.length,
  })

  test('sftp: files with their hashes, and what changed', async () => {
    const there = way.there('box')
    const { status } = await sftp(
      `mkdir ${there}`,
      `put ${way.where.file('large')} ${there}/one`,
      `chmod 640 ${there}/one`,
      `rename ${there}/one ${there}/two`,
      `ln -s two ${there}/three`,
      `ln ${there}/two ${there}/hard`,
      `get ${there}/three ${way.where.file('three')}`,
      `rm ${there}/three`,
      `rm ${there}/hard`,
      `rm ${there}/two`,
      `rmdir ${there}`,
    )
    expect(status).toBe(0)
    expect(readFileSync(way.where.file('three')).equals(large)).toBe(true)
    let seen: SessionEvent[] = []
    await events((all) =>
      expect((seen = all).map(short)).toEqual([
        ['subsystem', 'sftp', 'done'],
        ['make-folder', there, 'done'],
        ['upload', `${there}/one`, 'done'],
        ['change', `${there}/one`, 'done'],
        ['rename', `${there}/one`, 'done'],
        ['link', `${there}/three`, 'done'],
        ['link', `${there}/two`, 'done'],
        ['download', `${there}/three`, 'done'],
        ['remove', `${there}/three`, 'done'],
        ['remove', `${there}/hard`, 'done'],
        ['remove', `${there}/two`, 'done'],
        ['remove-folder', there, 'done'],
      ]),
    )
    expect(seen[2]).toMatchObject(upload(`${there}/one`))
    expect(seen[4]).toMatchObject({ target: `${there}/two` })
    expect(seen[5]).toMatchObject({ target: 'two' })
    expect(seen[7]).toMatchObject(download(`${there}/three`))
    const { body } = await way.owner.audit.list({ query: { action: 'file.transferred' } })
    expect(body.entries[0]).toMatchObject({
      target: { kind: 'session', id: (await way.newest()).uid },
      detail: { kind: 'download', path: `${there}/three`, bytes: large.length, sha256: sha256(large) },
    })
  })

  test('pages', async () => {
    const { uid } = await way.newest()
    const page = async (after?: number) =>
      (await way.owner.sessions.events({ params: { uid }, query: { after, limit: 5 } })).body
    const [first, second] = [await page(), await page(5)]
    expect(first.events.map(({ seq }) => seq)).toEqual([1, 2, 3, 4, 5])
    expect([first.next, second.next, (await page(10)).next]).toEqual([5, 10, null])
  })

  test('a part of a file, and one that grows, have no hash', async () => {
    way.where.write('part', large.subarray(0, 1_000_000))
    fine(await run('scp', [...args(), '-q', way.where.file('large'), at(way.there('whole'))]))
    expect((await sftp(`reget ${way.there('whole')} ${way.where.file('part')}`)).status).toBe(0)
    await events(([, got]) => {
      expect(got).toMatchObject({ kind: 'download', outcome: 'partial', sent: large.length - 1_000_000 })
      expect(got).not.toHaveProperty('sha256')
    })
  })

  test('scp as it is now: files of a tree, there and back', async () => {
    fine(await run('scp', [...args(), '-q', '-p', way.where.file('large'), at(way.there('new'))]))
    await events((seen) => expect(seen).toContainEqual(expect.objectContaining(upload(way.there('new')))))
    fine(await run('scp', [...args(), '-q', at(way.there('new')), way.where.file('back')]))
    await events((seen) => expect(seen).toContainEqual(expect.objectContaining(download(way.there('new')))))
    // Over a file that is there, and larger.
    way.where.write('small', 'small')
    fine(await run('scp', [...args(), '-q', way.where.file('small'), at(way.there('new'))]))
    await events((seen) =>
      expect(seen.at(-1)).toMatchObject({ outcome: 'done', sha256: sha256(Buffer.from('small')) }),
    )
    fine(await run('scp', [...args(), '-q', '-r', way.where.file('tree'), at(way.there('tree'))]))
    await events((seen) =>
      expect(seen.filter(({ kind }) => kind === 'upload')).toEqual([
        expect.objectContaining({
          subject: way.there('tree/deep/a name with ünïcode'),
          sha256: sha256(Buffer.from('x')),
        }),
      ]),
    )
  })

  test('scp as it was, and rsync, are the commands that they run', async () => {
    fine(await run('scp', [...args(), '-O', '-q', way.where.file('large'), at(way.there('old'))]))
    await events((seen) => expect(seen.map(short)).toEqual([['exec', `scp -t ${way.there('old')}`, 'done']]))
    const rsync = await run('rsync', [
      '-e',
      ['ssh', ...way.args()].join(' '),
      '-r',
      `${way.where.file('tree')}/`,
      at(way.there('rsync')),
    ])
    fine(rsync)
    await events(([command]) => {
      expect(command).toMatchObject({ kind: 'exec' })
      expect(command?.subject).toMatch(/^rsync --server /)
    })
  })

  test('secrets in paths and commands are masked', async () => {
    await way.ssh('echo password=tide-and-moon')
    await events((seen) => expect(seen.map(short)).toEqual([['exec', 'echo password=*************', 'done']]))
    const name = way.there('password=tide-and-moon')
    fine(await run('scp', [...args(), '-q', way.where.file('tree/deep/a name with ünïcode'), at(name)]))
    await events((seen) => {
      expect(JSON.stringify(seen)).toContain('password=*************')
      expect(JSON.stringify(seen)).not.toContain('tide-and-moon')
    })
    const { body } = await way.owner.audit.list({ query: { action: 'file.transferred' } })
    expect(JSON.stringify(body)).not.toContain('tide-and-moon')
  })

  test('forwarded connections have a destination and their bytes', async () => {
    using echo = await startEcho()
    const port = await freePort()
    {
      await using client = way.start(undefined, {
        flags: ['-N', '-L', `127.0.0.1:${port}:localhost:${echo.port}`],
      })
      await eventually(async () => whenListening({ port, host: '127.0.0.1' }))
      for (const bytes of [large, large.subarray(0, 7)])
        expect((await roundTrip(port, bytes)).equals(bytes)).toBe(true)
      const { uid } = await way.newest()
      await eventually(async () => {
        const { body } = await way.owner.sessions.events({ params: { uid } })
        // The one without bytes asked whether somebody listens.
        const used = body.events.filter(({ sent }) => sent > 0)
        expect(used.map(({ received, sent }) => [received, sent])).toEqual([
          [large.length, large.length],
          [7, 7],
        ])
      })
      expect(client.child.exitCode).toBe(null)
    }
    const destination = `localhost:${echo.port}`
    await events((seen) => {
      for (const event of seen) expect(short(event)).toEqual(['forward', destination, 'done'])
    })
    const { uid } = await way.newest()
    const { body } = await way.owner.audit.list({ query: { action: 'forward.opened', target: uid } })
    expect(body.entries.map(({ detail }) => detail)).toEqual([
      expect.objectContaining({ kind: 'forward', destination }),
    ])
  })

  test('connections from the device are told, too', async () => {
    using echo = await startEcho()
    const port = await freePort()
    {
      await using client = way.start(undefined, {
        flags: ['-N', '-R', `127.0.0.1:${port}:127.0.0.1:${echo.port}`],
      })
      await eventually(async () => whenListening({ port, host: '127.0.0.1' }))
      expect((await roundTrip(port, large)).equals(large)).toBe(true)
      const socket = net.connect(port, '127.0.0.1')
      await once(socket, 'connect')
      socket.destroy()
      expect(client.child.exitCode).toBe(null)
    }
    await events(([listen, ...others]) => {
      expect(listen).toMatchObject({ kind: 'listen', subject: `127.0.0.1:${port}` })
      expect(others).toContainEqual(
        expect.objectContaining({
          kind: 'remote-forward',
          subject: `127.0.0.1:${port}`,
          received: large.length,
          sent: large.length,
        }),
      )
    })
  })

  test('only administrators read them', async () => {
    const { uid } = await way.newest()
    for (const role of ['operator', 'observer'] as const) {
      const api = way.service.api({ token: await way.world.token(role) })
      await expect(api.sessions.events({ params: { uid } })).rejects.toMatchObject({ status: 403 })
    }
  })
})
