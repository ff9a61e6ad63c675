// The first start: the server makes a one-time code, prints it for the person at the terminal, and whoever
// has it makes the first user and namespace. After that there is no such door any more.
import { spawn } from 'node:child_process'
import { once } from 'node:events'
import path from 'node:path'
import { createInterface } from 'node:readline'
import { fileURLToPath } from 'node:url'
import { describe, expect, test } from 'vitest'
import { call, client } from '@hawser/contract/client'
import { sample } from '@hawser/contract/examples'
import { system } from '@hawser/contract/system'
import { minute_ms } from '../../server/src/kit/clock.ts'
import { startService, type Service } from '../harness/service.ts'
import { buildWorld } from '../harness/world.ts'
import { from, foundIn, ownFolder, refused, statusesOf, statusOf } from './people.ts'

const sam = {
  name: 'Sam',
  email: 'Sam@Example.com',
  username: 'Sam',
  password: 'lighthouse',
  namespace: 'Lagoon',
}
const root = fileURLToPath(new URL('../..', import.meta.url))

async function codeOf(service: Service): Promise<string> {
  const code = await service.rooms.setupCode()
  if (code === undefined) throw new Error('the server gave no code')
  return code
}

const setup = (service: Service, code: string, change: object = {}) =>
  service.api().system.setup({ body: { code, ...sam, ...change } })

describe('the first set-up', () => {
  test('makes a confirmed user who owns a namespace, and signs in', async () => {
    await using service = await startService()
    expect((await service.api().system.info({})).body.setup).toBe(false)
    const { status, body } = await setup(service, await codeOf(service))
    expect(status).toBe(200)
    expect(body).toMatchObject({
      user: 'sam',
      name: 'Sam',
      email: 'sam@example.com',
      role: 'owner',
      mfa: false,
    })
    const api = service.api({ token: body.token })
    const namespace = (await api.namespaces.get({ params: { tenant: body.tenant } })).body
    expect(namespace).toMatchObject({
      name: 'lagoon',
      owner: body.id,
      max_devices: -1,
      settings: { session_record: true },
    })
    expect(namespace.members).toEqual([{ id: body.id, username: 'sam', role: 'owner' }])
    expect((await service.api().system.info({})).body.setup).toBe(true)
    expect(
      await statusOf(service.api().users.login({ body: { username: 'SAM', password: sam.password } })),
    ).toBe(200)
    // No e-mail is needed, and none is sent.
    expect(await service.emails()).toEqual([])
  })

  test('names the namespace after the user where no name is given', async () => {
    await using service = await startService()
    const { namespace: _, ...unnamed } = sam
    const body = { code: await codeOf(service), ...unnamed, username: 'Sam.of_Sea' }
    const session = (await service.api().system.setup({ body })).body
    const { body: namespace } = await service
      .api({ token: session.token })
      .namespaces.get({ params: { tenant: session.tenant } })
    expect(namespace.name).toBe('sam-of-sea')
  })

  test('works once', async () => {
    await using service = await startService()
    const code = await codeOf(service)
    await setup(service, code)
    const again = await refused(
      setup(service, code, { username: 'tom', email: 'tom@example.com', namespace: 'cove' }),
    )
    expect([again.status, again.body]).toEqual([401, { message: expect.any(String) as string }])
    expect(await service.rooms.stores.users.list()).toHaveLength(1)
  })

  test('works once even when it is sent several times at once', async () => {
    await using service = await startService()
    const code = await codeOf(service)
    const names = ['sam', 'tom', 'uma']
    const statuses = await statusesOf(
      names.map((name) =>
        setup(service, code, { username: name, email: `${name}@example.com`, namespace: name }),
      ),
    )
    expect(statuses).toEqual([200, 401, 401])
    expect(await service.rooms.stores.users.list()).toHaveLength(1)
  })
})

describe('the code', () => {
  test('must be right: a wrong one is 401, five times, and then whoever sends them waits for fifteen minutes', async () => {
    await using service = await startService()
    const code = await codeOf(service)
    const guess = (value: string) =>
      statusOf(service.api(from('198.51.100.1')).system.setup({ body: { code: value, ...sam } }))
    for (const i of [1, 2, 3, 4, 5]) expect(await guess(`guess-${i}`)).toBe(401)
    expect(await guess('guess-6')).toBe(429)
    service.clock.forward(15 * minute_ms)
    expect(await guess('guess-7')).toBe(401)
    expect(await guess(code)).toBe(200)
  })

  test('is a fresh one at each start, and ends the one before', async () => {
    using folder = ownFolder()
    let old: string
    {
      await using service = await startService({ folder: folder.path })
      old = await codeOf(service)
    }
    await using service = await startService({ folder: folder.path })
    const fresh = await codeOf(service)
    expect(fresh).not.toBe(old)
    expect(await statusOf(setup(service, old))).toBe(401)
    expect(await statusOf(setup(service, fresh))).toBe(200)
  })

  test('is worth nothing once there is a user, however the user came', async () => {
    await using service = await startService()
    const code = await codeOf(service)
    await service.rooms.users.create(
      { name: 'Nora', username: 'nora', email: 'nora@example.com', password: 'lighthouse' },
      true,
    )
    expect(await statusOf(setup(service, code))).toBe(401)
    expect(await service.rooms.setupCode()).toBeUndefined()
    expect(await service.rooms.stores.users.list()).toHaveLength(1)
  })

  test('is worth nothing in a world with people in it, though one lies there', async () => {
    await using service = await startService()
    await buildWorld(service)
    expect(await statusOf(setup(service, sample.setupCode))).toBe(401)
  })

  test('stands in clear nowhere', async () => {
    await using service = await startService()
    const code = await codeOf(service)
    await statusOf(setup(service, code))
    expect(foundIn(service.folder, [code, sam.password])).toEqual([])
    expect(service.log()).not.toContain(code)
    expect(service.log()).not.toContain(sam.password)
  })
})

test('bad fields are refused with their names, all of them, and the code is not used up', async () => {
  await using service = await startService()
  const code = await codeOf(service)
  for (const [body, names] of [
    [{}, ['code', 'email', 'name', 'password', 'username']],
    [{ code, ...sam, name: '' }, ['name']],
    [{ code, ...sam, username: 'sa' }, ['username']],
    [{ code, ...sam, email: 'sam' }, ['email']],
    [{ code, ...sam, password: 'abcd' }, ['password']],
    [{ code, ...sam, password: 'x'.repeat(31) }, ['password']],
    [{ code, ...sam, namespace: 'la goon' }, ['namespace']],
    [{ code, ...sam, email: '', username: '', namespace: '.' }, ['email', 'namespace', 'username']],
  ] as const) {
    const answer = await call(system.setup, { body }, { url: service.url })
    expect([answer.status, (answer.body as string[]).toSorted()], JSON.stringify(body)).toEqual([400, names])
  }
  expect(await statusOf(setup(service, code))).toBe(200)
})

describe('the program', () => {
  /** Runs the server as people start it; resolves when it is ready, with what it has printed. */
  async function start(folder: string) {
    const child = spawn(process.execPath, [path.join(root, 'hawser.ts'), 'serve'], {
      cwd: folder,
      env: {
        PATH: process.env['PATH'],
        HAWSER_HTTP: '127.0.0.1:0',
        HAWSER_SSH: '127.0.0.1:0',
        HAWSER_DATA: folder,
      },
      stdio: ['ignore', 'pipe', 'pipe'],
    })
    const lines: Record<string, unknown>[] = []
    let complaints = ''
    const welcomed = Promise.withResolvers<void>()
    child.stderr.setEncoding('utf8').on('data', (text: string) => {
      complaints += text
      if (complaints.includes('/setup?code=')) welcomed.resolve()
    })
    const ended = once(child, 'exit')
    const ready = Promise.withResolvers<void>()
    createInterface({ input: child.stdout }).on('line', (line) => {
      const read = JSON.parse(line) as Record<string, unknown>
      lines.push(read)
      if (read['event'] === 'server.ready') ready.resolve()
    })
    await Promise.race([
      ready.promise,
      ended.then(() => Promise.reject(new Error(`it ended: ${complaints}`))),
    ])
    const port = lines.find((line) => line['event'] === 'http.listening')?.['port'] as number
    return {
      api: client({ url: `http://127.0.0.1:${port}` }),
      welcomed: welcomed.promise,
      complaints: () => complaints,
      stdout: () => JSON.stringify(lines),
      async [Symbol.asyncDispose]() {
        child.kill('SIGTERM')
        await ended
      },
    }
  }

  test('prints a link with the code at its first start, which works, and none once there is a user', async () => {
    using folder = ownFolder()
    {
      await using server = await start(folder.path)
      await server.welcomed
      const code = /\/setup\?code=(\S+)/.exec(server.complaints())?.[1] ?? ''
      expect(code).toMatch(/^[0-9a-f-]{36}$/)
      // For the person at the terminal, not for whoever reads the logs.
      expect(server.stdout()).not.toContain(code)
      expect((await server.api.system.setup({ body: { code, ...sam } })).status).toBe(200)
    }
    await using server = await start(folder.path)
    expect(
      (await server.api.users.login({ body: { username: 'sam', password: sam.password } })).body.role,
    ).toBe('owner')
    expect(server.complaints()).not.toContain('code')
    // Two real programs are started, which takes as long as it takes on a busy machine.
  }, 120_000)
})
