// Members on the command line: their help and their list, what each role may do, leaving a namespace, handing one over, and
// one's own sign-ins.
import os from 'node:os'
import { afterAll, beforeAll, expect, test } from 'vitest'
import { sample } from '@hawser/contract/examples'
import type { SignIn } from '@hawser/contract/sign-ins'
import { openDesk, type Desk } from '../../cli/test/program.ts'
import { startPlace, type Place } from '../harness/place.ts'

let place: Place
const desks: Desk[] = []
beforeAll(async () => {
  place = await startPlace()
})
afterAll(async () => {
  for (const desk of desks) desk[Symbol.dispose]()
  await place[Symbol.asyncDispose]()
})

async function deskOf({ username, password }: { username: string; password: string }): Promise<Desk> {
  const desk = openDesk({ HAWSER_SERVER: place.url })
  desks.push(desk)
  const { code, stderr } = await desk.hawser(['login', '-u', username, '--password-stdin'], {
    input: password,
  })
  expect(code, stderr).toBe(0)
  return desk
}

test('roles are shown as a table, of one thing, and as JSON', async () => {
  const desk = openDesk()
  desks.push(desk)
  const { code, stdout } = await desk.hawser(['roles', 'namespaces'])
  expect(code).toBe(0)
  expect(stdout).toMatch(/^THING +WHAT +OBSERVER +OPERATOR +ADMINISTRATOR +OWNER +API KEYS/)
  expect(stdout).toMatch(/Delete namespace +- +- +- +yes +-/)
  const { stdout: json } = await desk.hawser(['roles', '-o', 'json'])
  expect((JSON.parse(json) as unknown[]).length).toBeGreaterThan(50)
  expect((await desk.hawser(['roles', 'ropes'])).code).toBe(2)
})

test('the overview has a sentence of its own for each thing, and a thing with a list is listed alone', async () => {
  const desk = await deskOf(sample.owner)
  const { stdout } = await desk.hawser(['--help'])
  const [, things = ''] = /^Things \(.*:\n((?: {2}.*\n)+)/m.exec(stdout) ?? []
  const sentences = things
    .trim()
    .split('\n')
    .map((line) => line.trim().split(/ {2,}/))
  expect(sentences.length).toBeGreaterThan(20)
  expect(sentences.filter(([, sentence]) => !sentence)).toEqual([])
  expect(new Set(sentences.map(([, sentence]) => sentence)).size).toBe(sentences.length)
  expect(sentences).toContainEqual(['members', 'People in the namespace, their roles and invitations.'])

  const { code, stdout: listed } = await desk.hawser(['members'])
  expect(code).toBe(0)
  expect(listed).toMatch(/^USERNAME +ROLE +ID\n/)
  expect(listed).toMatch(new RegExp(`^${sample.owner.username} +owner +${sample.owner.id}$`, 'm'))
})

test('the help of members names commands that exist', async () => {
  const desk = await deskOf(sample.owner)
  const { stdout } = await desk.hawser(['members', '--help'])
  expect(stdout).toMatch(/^People in the namespace.*\n\nUsage: hawser members /)
  expect(stdout).toMatch(/^ {2}list +Lists the people in the namespace/m)
  expect(stdout).toMatch(/^ {2}invite +Invites/m)
  const named = [...stdout.matchAll(/`hawser ([a-z -]+)`/g)].map(([, words = '']) => words.split(' '))
  expect(named).toContainEqual(['namespaces', 'add-member'])
  for (const words of named) expect((await desk.hawser([...words, '--help'])).code, words.join(' ')).toBe(0)
  const { stdout: adding } = await desk.hawser(['namespaces', 'add-member', '--help'])
  expect(adding).not.toMatch(/ {2}string$/m)
  expect(adding).toContain('only a hand-over changes the owner')
})

test('leaving asks first, and goes on in another namespace', async () => {
  const { namespaces } = place.rooms
  await namespaces.create(sample.operator.id, 'dinghy')
  const desk = await deskOf(sample.operator)
  await desk.hawser(['namespaces', 'switch', 'harbour'])
  const undecided = await desk.hawser(['namespaces', 'leave', 'harbour'])
  expect([undecided.code, undecided.stderr]).toEqual([2, expect.stringContaining('add --yes')])
  const left = await desk.hawser(['namespaces', 'leave', 'harbour', '--yes'])
  expect([left.code, left.stderr]).toEqual([0, 'You have left harbour. You are now in dinghy.\n'])
  expect((await desk.hawser(['namespaces'])).stdout).not.toContain('harbour')
  const own = await desk.hawser(['namespaces', 'leave', 'dinghy', '--yes'])
  expect([own.code, own.stderr]).toEqual([
    expect.any(Number),
    expect.stringContaining('The owner cannot leave'),
  ])
  expect(own.code).not.toBe(0)
})

test('who is in no other namespace is told to sign in again, and then to choose one', async () => {
  const desk = await deskOf(sample.observer)
  const { code, stderr } = await desk.hawser(['namespaces', 'leave', 'harbour', '--yes'])
  expect([code, stderr]).toEqual([0, expect.stringContaining('You have no other namespace')])
  expect((await desk.hawser(['devices'])).code).not.toBe(0)

  const again = await deskOf(sample.observer)
  await place.rooms.namespaces.create(sample.observer.id, 'skiff')
  const unchosen = await again.hawser(['members'])
  expect([unchosen.code, unchosen.stdout]).toEqual([4, ''])
  expect(unchosen.stderr).toMatch(
    /^hawser: No namespace is selected\.\nChoose one with `hawser namespaces switch`/,
  )
  await again.hawser(['namespaces', 'switch', 'skiff'])
  const { stdout } = await again.hawser(['members'])
  expect(stdout).toMatch(new RegExp(`^${sample.observer.username} +owner`, 'm'))
})

test('an API key lists the members of its namespace', async () => {
  const { body } = await place.administrator.apiKeys.create({ body: { name: 'rota', expires_at: 30 } })
  const script = openDesk({ HAWSER_SERVER: place.url, HAWSER_API_KEY: body.id })
  desks.push(script)
  const { stdout } = await script.hawser(['members'])
  expect(stdout).toMatch(new RegExp(`^${sample.owner.username} +owner`, 'm'))
})

test('an owner hands over with the password, and works on as an administrator', async () => {
  const desk = await deskOf(sample.owner)
  const wrong = await desk.hawser(['namespaces', 'hand-over', 'harbour', 'adam', '--password', 'guess'])
  expect(wrong.code).not.toBe(0)
  expect(wrong.stderr).toContain('This is not your password.')
  using asked = desk.terminal(['namespaces', 'hand-over', 'harbour', 'adam'])
  await asked.until(/Password: /)
  asked.type(`${sample.owner.password}\r`)
  expect(await asked.ended).toBe(0)
  expect(asked.shown()).toContain('adam now owns harbour; you are an administrator.')
  const { stdout } = await desk.hawser(['status', '-o', 'json'])
  expect(JSON.parse(stdout)).toMatchObject({ namespace: 'harbour', role: 'administrator' })
})

test('sign-ins are listed with their machine, ended by id, and end with a logout', async () => {
  const desk = await deskOf(sample.administrator)
  const other = await deskOf(sample.administrator)
  const { stdout } = await desk.hawser(['sign-ins'])
  expect(stdout).toMatch(/^CLIENT +SOURCE/)
  expect(stdout).toContain(`hawser on ${os.hostname()}`)
  const list = async (one: Desk) =>
    JSON.parse((await one.hawser(['sign-ins', '-o', 'json'])).stdout) as SignIn[]
  const [mine] = (await list(other)).filter(({ current }) => current)
  expect((await desk.hawser(['sign-ins', 'end', mine!.id])).code).toBe(0)
  const out = await other.hawser(['devices'])
  expect([out.code, out.stderr]).toEqual([3, expect.stringContaining('hawser login')])
  const third = await deskOf(sample.administrator)
  const ended = await desk.hawser(['sign-ins', 'end-others', '-o', 'json'])
  expect(ended.code).toBe(0)
  expect((JSON.parse(ended.stdout) as { ended: number }).ended).toBeGreaterThan(0)
  expect((await third.hawser(['devices'])).code).toBe(3)
  const before = (await place.rooms.stores.signIns.of(sample.administrator.id, '')).length
  expect((await desk.hawser(['logout'])).code).toBe(0)
  expect(await place.rooms.stores.signIns.of(sample.administrator.id, '')).toHaveLength(before - 1)
})

test('an administrator invites, lists and withdraws; the invited person accepts with the link', async () => {
  const owner = await deskOf(sample.owner)
  const made = await owner.hawser([
    'members',
    'invite',
    sample.stranger.email,
    '--role',
    'operator',
    '--days',
    '3',
  ])
  expect([made.code, made.stderr]).toEqual([
    0,
    expect.stringContaining('Pass this link on to stan@example.com'),
  ])
  const link = made.stdout.trim()
  expect(link).toMatch(new RegExp(`^${place.url}/invitation#hwn_[a-z2-7]{32}$`))
  expect((await owner.hawser(['invitations'])).stdout).toMatch(/stan@example\.com +operator +olga/)
  expect((await owner.hawser(['members', 'invite', 'x@example.com', '--role', 'owner'])).code).toBe(2)
  expect(
    (await owner.hawser(['members', 'invite', 'x@example.com', '--role', 'observer', '--days', '31'])).code,
  ).toBe(2)
  const wrong = await owner.hawser(['invitations', 'accept', link])
  expect(wrong.code).not.toBe(0)
  expect(wrong.stderr).toContain('for another e-mail address')
  const invited = await deskOf(sample.stranger)
  const cut = await invited.hawser(['invitations', 'accept', link.slice(0, -3)])
  expect([cut.code, cut.stderr]).toEqual([2, expect.stringContaining('not a complete invitation link')])
  const done = await invited.hawser(['invitations', 'accept', link])
  expect([done.code, done.stderr]).toEqual([
    0,
    expect.stringContaining('You are now a member of harbour, as operator'),
  ])
  expect((await invited.hawser(['namespaces', 'switch', 'harbour'])).code).toBe(0)

  const other = await owner.hawser(['-o', 'json', 'members', 'invite', 'y@example.com', '--role', 'observer'])
  const { id } = JSON.parse(other.stdout) as { id: string }
  expect((await owner.hawser(['invitations', 'resend', id])).stdout).toContain('hwn_')
  expect((await owner.hawser(['invitations', 'remove', id])).code).toBe(0)
  expect((await owner.hawser(['invitations'])).stdout).not.toContain('y@example.com')
})
