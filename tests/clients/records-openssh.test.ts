// What the namespace's records say about sessions of the real OpenSSH client: what kind they are, from where,
// with which terminal, and that they are over when they are over, however they ended.
import { describe, expect, test } from 'vitest'
import type { Session } from '@hawser/contract/sessions'
import { run } from '../../ssh/test/programs.ts'
import { openTerminal } from './terminal.ts'
import { eventually, sharedWay } from './way.ts'

const way = sharedWay()

const session = async (uid: string): Promise<Session> =>
  (await way.owner.sessions.get({ params: { uid } })).body
/** The newest, when it is over. */
const over = async (): Promise<Session> => {
  const { uid } = await way.newest()
  return eventually(async () => {
    const now = await session(uid)
    expect(now.active).toBe(false)
    return now
  })
}
/** The newest, when it says this while it goes on; `before` is an older one. */
const going = async (says: Partial<Session>, before: string): Promise<Session> =>
  eventually(async () => {
    const now = await way.newest()
    expect(now.uid).not.toBe(before)
    expect(now).toMatchObject({ active: true, ...says })
    return now
  })
const everybody = (): Partial<Session> => ({
  device_uid: way.agent.uid,
  username: way.user.name,
  ip_address: '127.0.0.1',
  authenticated: true,
  recorded: false,
})

describe('what kind it is', () => {
  test('a command is exec, without a terminal', async () => {
    await way.ssh('true')
    expect(await over()).toMatchObject({ ...everybody(), type: 'exec', term: 'none' })
  })

  test('a command on a terminal is exec, with it', async () => {
    await way.ssh('true', { flags: ['-tt'], env: { TERM: 'vt220' } })
    expect(await over()).toMatchObject({ ...everybody(), type: 'exec', term: 'vt220', recorded: true })
  })

  test('a shell on a terminal is shell, with it', async () => {
    const { uid } = await way.newest()
    using terminal = openTerminal('ssh', [...way.args(), `${way.sshid()}@127.0.0.1`], {
      name: 'screen-256color',
    })
    await going({ ...everybody(), type: 'shell', term: 'screen-256color', recorded: true }, uid)
    terminal.type('unset HISTFILE; exit\n')
    await terminal.ended
    expect(await over()).toMatchObject({ type: 'shell', term: 'screen-256color' })
  })

  test('a shell without a terminal is shell', async () => {
    await way.ssh(undefined, { flags: ['-T'], input: 'exit\n' })
    expect(await over()).toMatchObject({ ...everybody(), type: 'shell', term: 'none' })
  })

  test('files are a subsystem', async () => {
    const args = way.args().map((word) => (word === '-p' ? '-P' : word))
    const { status } = await run('sftp', [...args, '-b', '-', `${way.sshid()}@127.0.0.1`], 'pwd\n')
    expect(status).toBe(0)
    expect(await over()).toMatchObject({ ...everybody(), type: 'subsystem', term: 'none' })
  })

  test('forwards alone are none', async () => {
    const { uid } = await way.newest()
    await using client = way.start(undefined, { flags: ['-N'] })
    await going({ ...everybody(), type: 'none', term: 'none' }, uid)
    client.child.kill('SIGTERM')
    await client.status
    expect(await over()).toMatchObject({ type: 'none' })
  })
})

describe('when it is over', () => {
  test('it goes on as long as the command does', async () => {
    const { uid } = await way.newest()
    await using client = way.start('echo begun; exec cat')
    await client.until(/begun/)
    const { started_at } = await going({ type: 'exec' }, uid)
    client.child.stdin.end()
    expect(await client.status).toBe(0)
    const { last_seen } = await over()
    expect(last_seen >= started_at).toBe(true)
  })

  test('a client that is killed ends it, too, and what it ran', async () => {
    const { uid } = await way.newest()
    await using client = way.start('echo "I am $$"; exec sleep 600')
    const pid = await client.until(/I am (\d+)/)
    await going({ type: 'exec' }, uid)
    client.child.kill('SIGKILL')
    expect(await over()).toMatchObject({ type: 'exec' })
    const { stdout } = await way.ssh(`while kill -0 ${pid} 2>/dev/null; do sleep 0.05; done; echo gone`)
    expect(stdout.toString()).toBe('gone\n')
  })

  test('a client that is killed while it types a password leaves no record', async () => {
    const { uid } = await way.newest()
    using terminal = openTerminal('ssh', [...way.args({ key: null }), `${way.sshid()}@127.0.0.1`])
    await terminal.until(/Password: $/)
    terminal[Symbol.dispose]()
    await terminal.ended
    expect((await way.newest()).uid).toBe(uid)
  })
})
