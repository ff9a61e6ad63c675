// Somebody has the password of an account and wants the terminal of whoever is in it. The setting of now
// decides who may continue a session, not the one of its beginning; and where nobody knows who is who, a
// terminal that has a client is its client's alone.
import { afterEach, expect, test } from 'vitest'
import { sample } from '@hawser/contract/examples'
import type { Session } from '@hawser/contract/sessions'
import { keygen } from '../../ssh/test/programs.ts'
import { openTerminal, type Terminal } from '../clients/terminal.ts'
import { eventually, sharedWay } from '../clients/way.ts'
import { dial } from '../clients/web.ts'

const way = sharedWay({ HAWSER_SSH_KEEPALIVE: '1' })
const settings = async (change: { hold_sessions?: number; hold_unknown?: boolean }) =>
  way.owner.namespaces.edit({ params: { tenant: sample.tenant }, body: { settings: change } })
const list = async (): Promise<Session[]> =>
  (await way.owner.sessions.list({ query: { active: true, device_uid: way.agent.uid } })).body

/** Somebody with the password of the account, of whom nothing else is known; or with a key. */
const sit = (command: string[] = [], key: string | null = null): Terminal => {
  const { env } = way.saying(way.user.password)
  const args = way.args({ key, flags: ['-t'] })
  return openTerminal('ssh', [...args, `${way.sshid()}@127.0.0.1`, ...command], { env })
}
const refused = /You have no such session to continue here/
async function ready(terminal: Terminal): Promise<void> {
  terminal.type('unset HISTFILE; stty -echo; PS1="> "; echo rea""dy\n')
  await terminal.until(/ready\r\n/)
}
/** Checks that the person at the terminal still has it. */
async function stillHas(terminal: Terminal, word: string): Promise<void> {
  terminal.type(`echo "${word.slice(0, 2)}""${word.slice(2)}"\n`)
  await terminal.until(new RegExp(`${word}\r\n`))
}

afterEach(async () => {
  for (const { uid, device_uid } of await list())
    await way.owner.sessions.close({ params: { uid }, body: { device: device_uid } })
  // oxlint-disable-next-line vitest/no-standalone-expect -- nothing of one test may be there in the next
  await eventually(async () => expect(await list()).toEqual([]))
  await settings({ hold_sessions: 1_800, hold_unknown: false })
})

test('hold_unknown off: nobody takes a terminal that was opened while it was on', async () => {
  await settings({ hold_unknown: true })
  using victim = sit()
  await ready(victim)
  await settings({ hold_unknown: false })
  using attacker = sit(['hawser-attach'])
  await attacker.until(refused)
  await stillHas(victim, 'mine')
})

test('hold_unknown on: a terminal with a client is its client’s; without one it may be continued', async () => {
  await settings({ hold_unknown: true })
  using victim = sit()
  await ready(victim)
  using attacker = sit(['hawser-attach'])
  await attacker.until(refused)
  await stillHas(victim, 'mine')
  victim.kill('SIGKILL')
  await eventually(async () => expect((await list()).some(({ held }) => held)).toBe(true))
  using back = sit(['hawser-attach'])
  await stillHas(back, 'back')
})

test('hold_sessions at 0: a terminal that is open is not continued, also not by its own key', async () => {
  using first = sit([], 'olga')
  await ready(first)
  await settings({ hold_sessions: 0 })
  using second = sit(['hawser-attach'], 'olga')
  await second.until(refused)
  await stillHas(first, 'mine')
})

test('hold_sessions at 0: no browser continues the terminal of another', async () => {
  const proof = { username: way.user.name, password: way.user.password }
  const ticket = await way.owner.terminals.open({ body: { device: way.agent.uid, ...proof } })
  using first = await dial(way.service, ticket.body.token)
  const session = await first.hear('session')
  const { body } = await way.owner.terminals.attach({ body: { session } })
  await settings({ hold_sessions: 0 })
  using second = await dial(way.service, body.token)
  expect(await second.hear('end')).toMatch(/session/)
  expect((await list()).map(({ uid }) => uid)).toContain(session)
})

test.each([
  ['another user', { username: '^nobody$' }],
  ['another device', { filter: { hostname: '^other$' } }],
  ['another person', { owner: sample.operator.id }],
])('a key that is changed to let in %s keeps no terminal and brings nobody back', async (what, change) => {
  const name = `narrowed-${what.replace(' ', '-')}`
  await keygen(way.where, name, '-t', 'ed25519')
  await way.register(name, { owner: sample.owner.id })
  const { body: keys } = await way.owner.publicKeys.list({ query: {} })
  const { fingerprint } = keys.find((one) => one.name === name)!
  using victim = sit([], name)
  await ready(victim)
  const [session] = await list()
  const ticket = await way.owner.terminals.attach({ body: { session: session!.uid } })
  const body = { name, username: '.*', filter: { hostname: '.*' }, ...change }
  await way.owner.publicKeys.update({ params: { fingerprint }, body })
  // A session that has its client goes on with it, as after the removal of the key.
  await stillHas(victim, 'mine')
  using browser = await dial(way.service, ticket.body.token)
  expect(await browser.hear('end')).toMatch(/session/)
  victim.kill('SIGKILL')
  await eventually(async () => expect(await list()).toEqual([]))
})
