// Sessions that outlive the server: it is stopped or killed while somebody works in a terminal, and started again. The
// agent keeps the terminal, and its person comes back to the same shell. More: restarted-again-openssh.long.test.ts.
import { afterAll, beforeAll, expect, test, vi } from 'vitest'
import { begin, openRestarts, question, restored, type Restarts } from './restarts.ts'
import { eventually } from './way.ts'

vi.setConfig({ testTimeout: 240_000, hookTimeout: 120_000 })

let restarts: Restarts
beforeAll(async () => {
  restarts = await openRestarts()
})
afterAll(async () => restarts[Symbol.asyncDispose]())

test.each(['SIGTERM', 'SIGKILL'] as const)(
  'after %s the shell is the same one, and so is its screen',
  async (signal) => {
    using terminal = restarts.sit()
    const pid = await begin(terminal)
    terminal.type(`VALUE=漢字; echo "set $VALUE"\n`)
    await terminal.until(/set 漢字\r\n[^]*> $/)
    await restarts.stop(signal)
    expect(await terminal.ended).toBe(255)
    if (signal === 'SIGTERM') expect(terminal.shown()).toContain('Your session goes on')
    await restarts.start()
    await restored(restarts)
    const [session, ...others] = await restarts.held()
    expect([session !== undefined, others]).toEqual([true, []])
    using back = restarts.sit()
    await back.until(question)
    back.type('\r')
    await back.until(/shell \d+\r\n[^]*set 漢字\r\n/)
    back.type('echo "still $$ $VALUE"\n')
    await back.until(new RegExp(`still ${pid} 漢字\r\n`))
    back.type('exit 7\n')
    expect(await back.ended).toBe(7)
    await eventually(async () => expect(await restarts.list()).toEqual([]))
    // The second part of the recording begins without anybody.
    const { body } = await restarts.api().recordings.list({ params: { uid: session!.uid } })
    expect(body.map(({ interruptions }) => interruptions)).toMatchObject([
      [],
      [{ why: 'client lost', via: 'ssh' }],
    ])
  },
)
