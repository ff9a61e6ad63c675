// Sessions that outlive several stops of the server, and clients that had reattached to one when it stopped.
import net from 'node:net'
import { connect, parsePrivateKey, startSession } from '@hawser/ssh'
import { afterAll, beforeAll, expect, test, vi } from 'vitest'
import { begin, openRestarts, question, restored, type Restarts } from './restarts.ts'
import { eventually } from './way.ts'

vi.setConfig({ testTimeout: 240_000, hookTimeout: 120_000 })

let restarts: Restarts
beforeAll(async () => {
  restarts = await openRestarts()
})
afterAll(async () => restarts[Symbol.asyncDispose]())

test('whoever has come back to a session reads that it goes on, when the server stops again', async () => {
  using terminal = restarts.sit()
  const pid = await begin(terminal)
  const [session] = await restarts.list()
  await restarts.isKept(session!.uid)
  await restarts.stop('SIGKILL')
  await terminal.ended
  await restarts.start()
  await restored(restarts)
  using back = restarts.sit()
  await back.until(question)
  back.type('\r')
  await back.until(/shell \d+\r\n/)
  await restarts.stop('SIGTERM')
  // As of an ssh whose connection is lost: what was asked for is not done.
  expect(await back.ended).toBe(255)
  expect(back.shown()).toContain('Your session goes on')
  expect(back.shown()).toContain('to continue it')
  await restarts.start()
  await restored(restarts)
  using again = restarts.sit(['hawser-attach'])
  await again.until(/shell \d+\r\n/)
  again.type('echo "still $$"\n')
  await again.until(new RegExp(`still ${pid}\r\n`))
  again.type('exit 3\n')
  expect(await again.ended).toBe(3)
})

// As with a ControlMaster: the agent keeps one terminal of a connection.
test.each([
  { over: 'a command beside', goesOn: true },
  { over: 'the one before', goesOn: false },
])('when $over the terminal is over, a client reads that it goes on: $goesOn', async ({ goesOn }) => {
  const connection = await connect(net.connect(restarts.sshPort, '127.0.0.1'), {
    user: `${restarts.user.name}@harbour.${restarts.agent.name}`,
    proofs: [{ method: 'publickey', key: parsePrivateKey(restarts.where.read('olga')) }],
    checkHostKey: () => true,
  })
  const program = { type: 'exec', command: 'read -r line' } as const
  const pty = { terminal: 'xterm', columns: 80, rows: 24, width: 0, height: 0, modes: new Map() }
  const { channel: first } = await startSession(connection, goesOn ? { program } : { program, pty })
  const [session, ...others] = await restarts.list()
  expect(others).toEqual([])
  if (!goesOn) await restarts.isKept(session!.uid)
  await startSession(connection, { program, pty })
  await restarts.isKept(session!.uid)
  await first.write(Buffer.from('\n'))
  while (await first.read());
  await first.close()
  await restarts.stop('SIGTERM')
  const { message } = await connection.ended
  expect(message).toContain('The server is stopping.')
  expect(message.includes('Your session goes on')).toBe(goesOn)
  await restarts.start()
  if (goesOn) {
    await restored(restarts)
    const { uid, device_uid } = (await restarts.held())[0]!
    await restarts.api().sessions.close({ params: { uid }, body: { device: device_uid } })
  }
  await eventually(async () => expect(await restarts.list()).toEqual([]))
})

test('whoever has taken a session from another client reads it, too', async () => {
  using terminal = restarts.sit()
  await begin(terminal)
  using taken = restarts.sit(['hawser-attach'])
  await taken.until(/shell \d+\r\n/)
  await terminal.ended
  await restarts.stop('SIGTERM')
  expect(await taken.ended).toBe(255)
  expect(taken.shown()).toContain('Your session goes on')
  expect(taken.shown()).not.toContain('was lost')
  await restarts.start()
  await restored(restarts)
  using again = restarts.sit(['hawser-attach'])
  await again.until(/shell \d+\r\n/)
  again.type('exit 3\n')
  expect(await again.ended).toBe(3)
})
