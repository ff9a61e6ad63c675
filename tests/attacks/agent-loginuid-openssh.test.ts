// `loginuid` is what audit logs call somebody, whatever they become by sudo or su. The agent left it unset,
// so that what people did was nobody's. Where the kernel lets it be set, it is the account's, for each way to
// start a program.
import { execFileSync } from 'node:child_process'
import { describe, expect, test, vi } from 'vitest'
import { startDevice, usersOfSystem } from '../../agent/test/device.ts'
import { makePerson } from '../../agent/test/person.ts'

vi.setConfig({ testTimeout: 60_000 })

/** Whether it can be set on this machine at all, and only there is something to see. */
const permitted = (): boolean =>
  execFileSync(
    '/bin/sh',
    ['-c', '{ echo 4711 >/proc/self/loginuid; } 2>/dev/null; cat /proc/self/loginuid'],
    { encoding: 'utf8' },
  ) === '4711'

describe.skipIf(process.getuid?.() !== 0)('a session of a user', () => {
  test('is the user’s, on pipes, on a terminal and for files; root’s is root’s', async () => {
    await using person = await makePerson()
    await using device = await startDevice({ user: person.name, users: usersOfSystem() })
    const expected = permitted() ? String(person.uid) : '4294967295'
    const uid = async (...options: string[]): Promise<string> =>
      (await device.ssh('cat /proc/self/loginuid', { options })).stdout.toString().trim()
    expect([await uid(), await uid('-tt')]).toEqual([expected, expected])
    const own = (await device.ssh('cat /proc/self/loginuid', { user: 'root' })).stdout.toString().trim()
    expect(own).toBe(permitted() ? '0' : '4294967295')
  })
})
