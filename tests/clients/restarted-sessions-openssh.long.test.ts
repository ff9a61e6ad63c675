// What becomes of sessions when the server is away for a while: editors, people and keys that are removed
// meanwhile, clients that were lost before, a time that is over, and what is recorded of it.
import { existsSync } from 'node:fs'
import path from 'node:path'
import { DatabaseSync } from 'node:sqlite'
import { afterAll, afterEach, beforeAll, expect, test, vi } from 'vitest'
import { Closing } from '@hawser/contract/terminals'
import { admin } from '../failures/program.ts'
import { begin, openRestarts, question, restored, screenOf, type Restarts } from './restarts.ts'
import { eventually } from './way.ts'
import { dial } from './web.ts'

vi.setConfig({ testTimeout: 240_000, hookTimeout: 120_000 })

let restarts: Restarts
beforeAll(async () => {
  restarts = await openRestarts()
})
afterAll(async () => restarts[Symbol.asyncDispose]())
afterEach(async () => {
  for (const { uid, device_uid } of await restarts.list())
    await restarts.api().sessions.close({ params: { uid }, body: { device: device_uid } })
  await restarts.settings({ hold_sessions: 1_800, hold_unknown: false })
})

const isGone = (pid: string): void => expect(existsSync(`/proc/${pid}`)).toBe(false)

test('vim is as it was, with wide characters, and nothing typed arrives twice', async () => {
  using terminal = restarts.sit()
  await begin(terminal)
  const file = restarts.there('text')
  terminal.type(`vim -u NONE -N -i NONE ${file}\n`)
  await terminal.until(/\[New\]/)
  terminal.type('ione\r漢字と仮名\r三\u001b')
  await eventually(async () =>
    expect(await screenOf(terminal)).toMatchObject({ rows: { 1: '漢字と仮名', 2: '三', 23: '' } }),
  )
  const before = await screenOf(terminal)
  await restarts.stop('SIGKILL')
  expect(await terminal.ended).toBe(255)
  await restarts.start()
  await restored(restarts)
  using back = restarts.sit()
  await back.until(question)
  back.type('\r')
  await eventually(async () => expect(await screenOf(back)).toEqual(before))
  back.type('ofour\u001b:wq\r')
  await back.until(/written/)
  back.type(`cat ${file}; exit\n`)
  await back.until(/one\r\n漢字と仮名\r\n三\r\nfour\r\n/)
  expect(await back.ended).toBe(0)
})

test('who was lost before, and whose server starts twice, comes back; all of it is recorded, in parts', async () => {
  await restarts.settings({ session_record: true })
  using terminal = restarts.sit()
  const pid = await begin(terminal)
  const go = restarts.there('go')
  terminal.type(
    `echo be""fore; until [ -e ${go} ]; do sleep 0.1; done; echo mean""while; echo done > ${go}\n`,
  )
  await terminal.until(/before\r\n/)
  terminal.kill('SIGKILL')
  await eventually(async () => expect(await restarts.held()).toHaveLength(1))
  const { uid, held_until } = (await restarts.held())[0]!
  await restarts.stop('SIGTERM')
  // While no server is there the program goes on.
  restarts.write('go', '')
  await eventually(() => expect(restarts.read('go')).toBe('done\n'))
  await restarts.start()
  await restored(restarts)
  await restarts.stop('SIGKILL')
  await restarts.start()
  await restored(restarts)
  // Its time is still the one that began when the client was lost.
  const [now] = await restarts.held()
  expect(now).toMatchObject({ uid })
  expect(Math.abs(Date.parse(now!.held_until!) - Date.parse(held_until!))).toBeLessThan(3_000)
  using back = restarts.sit(['hawser-attach', uid.slice(0, 8)])
  await back.until(/before\r\n[^]*meanwhile\r\n/)
  back.type('echo "now $$"; exit\n')
  await back.until(new RegExp(`now ${pid}\r\n`))
  await eventually(async () => expect(await restarts.list()).toEqual([]))
  const { body } = await restarts.api().sessions.play({ params: { uid } })
  const shown = body.map(({ message }) => message).join('')
  for (const text of ['before', 'meanwhile', `now ${pid}`]) expect(shown).toContain(text)
  const { body: log } = await restarts.api().audit.list({ query: {} })
  const about = log.entries.filter(({ target }) => target.id === uid).map(({ action }) => action)
  expect(about).toEqual(
    expect.arrayContaining(['session.opened', 'session.held', 'session.resumed', 'session.closed']),
  )
})

test.each([
  ['SIGTERM', Closing.leaving],
  ['SIGKILL', 1006],
] as const)('a browser is told by %s to come back, and does so with a ticket', async (signal, code) => {
  const { name: username, password } = restarts.user
  const body = { device: restarts.agent.uid, username, password }
  using page = await dial(restarts.program(), (await restarts.api().terminals.open({ body })).body.token)
  const uid = await page.hear('session')
  page.type('stty -echo; echo "sh""ell $$"\r')
  await page.until(/shell \d+\r\n/)
  const [, pid] = /shell (\d+)\r\n/.exec(page.text())!
  // The record says so before the server is gone.
  await restarts.isKept(uid)
  await restarts.stop(signal)
  expect(await page.closed).toBe(code)
  expect(page.news.map(({ kind }) => kind)).not.toContain('end')
  await restarts.start()
  // As the page does: it tries again while it is told that the session waits for its device.
  const ask = async () => restarts.api().terminals.attach({ body: { session: uid, scrollback: true } })
  const refused = await ask().then(
    () => undefined,
    (error: { status: number }) => error.status,
  )
  expect([undefined, 503]).toContain(refused)
  const { token } = (await eventually(ask)).body
  using back = await dial(restarts.program(), token)
  await back.until(/shell \d+\r\n/)
  back.type('echo "still $$"; exit\r')
  await back.until(`still ${pid}\r\n`)
  expect(await back.closed).toBe(Closing.done)
})

test('a person whose password is changed meanwhile, or whose membership ends, loses the shell', async () => {
  await restarts.employ('paul')
  await restarts.register('paul', { owner: 'paul' })
  using first = restarts.sit([], { key: 'paul' })
  const before = await begin(first)
  await eventually(async () => expect((await restarts.list())[0]?.person.name).toBe('paul'))
  await restarts.stop('SIGTERM')
  expect(await admin(restarts.data, ['user', 'password', 'paul', 'anchor-and-rope'])).toMatchObject({
    code: 0,
  })
  await restarts.start()
  await eventually(() => isGone(before))
  await eventually(async () => expect(await restarts.list()).toEqual([]))
  using terminal = restarts.sit([], { key: 'paul' })
  const pid = await begin(terminal)
  await eventually(async () => expect((await restarts.list())[0]?.person.name).toBe('paul'))
  await restarts.stop('SIGKILL')
  const removed = await admin(restarts.data, ['namespace', 'member', 'remove', 'paul', 'harbour'])
  expect(removed).toMatchObject({ code: 0 })
  await restarts.start()
  await eventually(() => isGone(pid))
  await eventually(async () => expect(await restarts.list()).toEqual([]))
  using back = restarts.sit([], { key: 'paul' })
  expect(await back.ended).toBe(255)
})

test('a key that is gone meanwhile takes its shell along', async () => {
  const fingerprint = await restarts.register('lost')
  using terminal = restarts.sit([], { key: 'lost' })
  const pid = await begin(terminal)
  await eventually(async () => expect(await restarts.list()).toHaveLength(1))
  await restarts.stop('SIGKILL')
  {
    const database = new DatabaseSync(path.join(restarts.data, 'hawser.db'))
    expect(database.prepare('delete from public_keys where fingerprint = ?').run(fingerprint).changes).toBe(1)
    database.close()
  }
  await restarts.start()
  await eventually(() => isGone(pid))
  await eventually(async () => expect(await restarts.list()).toEqual([]))
})

test('when the time is over and no server is there, programs are hung up and the record is closed', async () => {
  await restarts.settings({ hold_sessions: 3 })
  await restarts.settings({ reconnect_grace_s: 1 })
  using terminal = restarts.sit()
  const file = restarts.there('hung-up')
  await begin(terminal)
  terminal.type(`trap 'echo hung up > ${file}; exit' HUP; echo wai""ting; while :; do sleep 0.1; done\n`)
  await terminal.until(/waiting\r\n/)
  await restarts.stop('SIGKILL')
  await eventually(() => expect(existsSync(file)).toBe(true))
  await restarts.start()
  await eventually(async () => expect(await restarts.list()).toEqual([]))
  await restarts.settings({ reconnect_grace_s: 300 })
})

test('when the agent has started again, too, the record is closed as soon as the device is back', async () => {
  using terminal = restarts.sit()
  await begin(terminal)
  await eventually(async () => expect(await restarts.list()).toHaveLength(1))
  await restarts.stop('SIGTERM')
  restarts.agent.kill('SIGKILL')
  await restarts.agent.ended
  await restarts.start('away')
  expect(await restarts.held()).toHaveLength(1)
  await restarts.startAgent()
  await eventually(async () => expect(await restarts.list()).toEqual([]))
})

test('what a namespace does not hold is not kept', async () => {
  await restarts.settings({ hold_sessions: 0 })
  using terminal = restarts.sit()
  const pid = await begin(terminal)
  await restarts.stop('SIGTERM')
  await eventually(() => isGone(pid))
  await restarts.start()
  expect(await restarts.list()).toEqual([])
})
