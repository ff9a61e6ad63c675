// The server is told to stop while it is at work: requests under way are answered, new ones are refused, what
// waits in memory is written, and then it ends, in bounded time, whoever holds a connection open. Told a
// second time, it ends at once.
import { existsSync, readdirSync, writeFileSync } from 'node:fs'
import net from 'node:net'
import path from 'node:path'
import { DatabaseSync } from 'node:sqlite'
import { setTimeout as pause } from 'node:timers/promises'
import { expect, test } from 'vitest'
import { hawser, root, setUp, startProgram, temporaryFolder, type Program } from './program.ts'
import { openRaw } from './raw.ts'

const clean = { code: 0, signal: null }

/** Sign-ins take a while each, two at a time: enough of them are sure to be under way. */
function manySignIns(program: Program, user: { username: string; password: string }) {
  return Array.from({ length: 8 }, () =>
    program.api().users.login({ body: { username: user.username, password: user.password } }),
  )
}

test(
  'requests under way are answered, and the process ends without an error',
  { timeout: 120_000 },
  async () => {
    using folder = temporaryFolder()
    await using program = await startProgram({ folder: folder.path })
    const user = await setUp(program)
    const asked = manySignIns(program, user)
    await Promise.race(asked)
    program.child.kill('SIGTERM')
    await program.logged('server.stopping')
    const answers = await Promise.all(asked)
    expect(answers.map((answer) => answer.status)).toEqual(asked.map(() => 200))
    expect(await program.ended).toEqual(clean)
    expect(program.printed.at(-1)).toContain('"event":"server.stopped"')
    expect(program.printed.join('\n')).not.toContain('request.abandoned')
    expect(existsSync(path.join(folder.path, 'control.sock'))).toBe(false)
    await expect(fetch(`${program.url}/healthcheck`)).rejects.toThrow()
  },
)

test(
  'while it stops, who asks on an open connection is told to come back, and who comes new is not let in',
  { timeout: 120_000 },
  async () => {
    using folder = temporaryFolder()
    await using program = await startProgram({ folder: folder.path })
    using busy = await openRaw(program.port)
    const body = JSON.stringify({ username: 'nobody', password: 'wrong-password' })
    const head = `Host: hawser\r\nContent-Type: application/json\r\nContent-Length: ${body.length}\r\n`
    // Half of a request keeps its connection, and with it the server, for the moment.
    busy.send(`POST /api/login HTTP/1.1\r\n${head}\r\n${body.slice(0, -1)}`)
    using open = await openRaw(program.port)
    open.send(`POST /api/login HTTP/1.1\r\n${head}\r\n${body.slice(0, -1)}`)
    // Both requests have arrived when an answer to a later one is there.
    expect((await fetch(`${program.url}/healthcheck`)).status).toBe(200)
    program.child.kill('SIGTERM')
    await program.logged('server.stopping')
    await expect
      .poll(() =>
        fetch(`${program.url}/healthcheck`).then(
          (answer) => answer.status,
          () => 'refused',
        ),
      )
      .toBe('refused')
    // The rest of the one that was under way, and at once another.
    open.send(`${body.slice(-1)}GET /healthcheck HTTP/1.1\r\nHost: hawser\r\n\r\n`)
    const [, first, second, ...more] = (await open.closed).split('HTTP/1.1 ')
    expect(first).toMatch(/^401 /)
    expect(second).toMatch(/^503 /)
    expect(second).toMatch(/\r\nretry-after: \d+\r\n/i)
    expect(second).toMatch(/\r\nconnection: close\r\n/i)
    expect(second).toMatch(/\r\n\r\n\{"message":"[^"]+"\}$/)
    expect(more).toEqual([])
    busy.send(body.slice(-1))
    expect(await busy.closed).toMatch(/^HTTP\/1\.1 401 /)
    expect(await program.ended).toEqual(clean)
  },
)

test('presence and e-mails that wait in memory are written', { timeout: 120_000 }, async () => {
  using folder = temporaryFolder()
  await using program = await startProgram({ folder: folder.path })
  const { tenant } = await setUp(program)
  const agent = { info: { id: 'debian' }, public_key: 'key', tenant_id: tenant, hostname: 'crane' }
  const { body: device } = await program.api().devices.auth({ body: agent })
  const started = Date.now()
  const user = { name: 'Una', username: 'una', email: 'una@example.com', password: 'lighthouse' }
  await Promise.all([
    program.api().users.register({ body: user }),
    // A second sign of life: its time is known in memory only.
    program.api().devices.auth({ body: agent }),
  ])
  program.child.kill('SIGTERM')
  expect(await program.ended).toEqual(clean)
  expect(readdirSync(path.join(folder.path, 'outbox')).filter((file) => file.endsWith('.eml'))).toHaveLength(
    1,
  )
  using database = new DatabaseSync(path.join(folder.path, 'hawser.db'))
  const row = database.prepare('select online, last_seen from devices where uid = ?').get(device.uid)
  expect(row?.online).toBe(1)
  expect(Date.parse(String(row?.last_seen))).toBeGreaterThanOrEqual(started)
})

test('connections that never say what they want do not hold it', { timeout: 120_000 }, async () => {
  using folder = temporaryFolder()
  await using program = await startProgram({ folder: folder.path })
  using half = await openRaw(program.port)
  half.send('GET /healthcheck HTTP/1.1\r\nHost: haw')
  using idle = await openRaw(program.port)
  const control = net.connect(path.join(folder.path, 'control.sock'))
  await new Promise((resolve) => control.once('connect', resolve))
  control.on('error', () => undefined)
  expect((await fetch(`${program.url}/healthcheck`)).status).toBe(200)
  program.child.kill('SIGTERM')
  expect(await program.ended).toEqual(clean)
  await Promise.all([half.closed, idle.closed])
  control.destroy()
})

test('told a second time, it ends at once', { timeout: 120_000 }, async () => {
  using folder = temporaryFolder()
  await using program = await startProgram({ folder: folder.path })
  using half = await openRaw(program.port)
  half.send('GET /healthcheck HTTP/1.1\r\nHost: haw')
  expect((await fetch(`${program.url}/healthcheck`)).status).toBe(200)
  program.child.kill('SIGTERM')
  await program.logged('server.stopping')
  // A second signal counts as one only when it does not come together with the first; see the next test.
  await pause(600)
  program.child.kill('SIGTERM')
  expect(await program.ended).toEqual({ code: 1, signal: null })
  expect(program.printed.join('\n')).not.toContain('server.stopped')
})

test(
  'one Ctrl-C, which reaches the starter and the server and is passed on besides, is one wish to stop',
  { timeout: 120_000 },
  async () => {
    using folder = temporaryFolder()
    // As run.mjs does, without what it may install.
    const starter = path.join(folder.path, 'starter.mjs')
    writeFileSync(
      starter,
      `import { spawn } from 'node:child_process'
     const child = spawn(process.execPath, [${JSON.stringify(hawser)}, 'serve'], { stdio: 'inherit', cwd: ${JSON.stringify(root)} })
     process.on('SIGINT', () => child.kill('SIGINT'))
     child.on('exit', (code) => process.exit(code ?? 99))`,
    )
    await using program = await startProgram({
      folder: folder.path,
      command: [process.execPath, starter],
      detached: true,
    })
    const user = await setUp(program)
    const asked = manySignIns(program, user)
    await Promise.race(asked)
    // The terminal signals the whole group.
    process.kill(-program.child.pid!, 'SIGINT')
    const answers = await Promise.all(asked)
    expect(answers.map((answer) => answer.status)).toEqual(asked.map(() => 200))
    expect(await program.ended).toEqual(clean)
    expect(program.printed.at(-1)).toContain('"event":"server.stopped"')
  },
)
