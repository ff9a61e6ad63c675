// Somebody who wants to type in, or only to see, a session that is not theirs: by a role that is too low, by
// asking until a key is pressed by accident, by text that is pasted, after their role was lowered or their
// sign-in ended, by more messages than anybody needs. Nothing that they send reaches the device, and the
// session does not notice.
import { afterEach, expect, test, vi } from 'vitest'
import { sample } from '@hawser/contract/examples'
import { sessionLimits } from '@hawser/contract/limits'
import { openGuest, type Guest } from '../clients/shared.ts'
import { apiOf, sharedQuarters, terminal, type Dialled } from '../clients/web.ts'
import { eventually } from '../harness/eventually.ts'

const quarters = sharedQuarters()
type Who = Parameters<ReturnType<typeof quarters>['world']['token']>[0]

const bearer = async (who: Who) => ({ authorization: `Bearer ${await quarters().world.token(who)}` })
const join = async (uid: string, who: Who, query = '?join'): Promise<Guest> =>
  openGuest(quarters().service.url, uid, { headers: await bearer(who), query })
const refusal = async (uid: string, headers: Record<string, string>, query: string) =>
  openGuest(quarters().service.url, uid, { headers, query }).then(
    (guest) => {
      guest[Symbol.dispose]()
      return 101
    },
    (error: { status?: number }) => error.status,
  )
/** A shell of vera, an observer, that is recorded. */
async function begin(): Promise<{ shell: Dialled; uid: string }> {
  const [shell, uid] = await terminal(quarters())
  shell.type('PS1="> "; stty -echo; echo rea$((1+1))dy\r')
  await shell.until('rea2dy')
  const { recordings } = quarters().service.rooms
  await eventually(() => expect(recordings.live(sample.tenant, uid)).toHaveLength(1))
  return { shell, uid }
}

afterEach(async () => {
  const owner = await apiOf(quarters(), 'owner')
  for (const [uid, role] of [
    [sample.operator.id, 'operator'],
    [sample.administrator.id, 'administrator'],
  ] as const)
    await owner.namespaces
      .updateMember({ params: { tenant: sample.tenant, uid }, body: { role } })
      .catch(() => undefined)
  await consent(true)
})

/** Whether administrators need the consent of the person. */
const consent = async (isNeeded: boolean) =>
  (await apiOf(quarters(), 'owner')).namespaces.edit({
    params: { tenant: sample.tenant },
    body: { settings: { join_without_consent: !isNeeded } },
  })

test('nobody below an operator, no stranger and no API key comes in, and operators see nothing uninvited', async () => {
  const { shell, uid } = await begin()
  using _ = shell
  expect(await refusal(uid, {}, '?join')).toBe(401)
  expect(await refusal(uid, await bearer('observer'), '?join')).toBe(403)
  expect(await refusal(uid, await bearer('stranger'), '?join')).toBe(404)
  expect(await refusal(uid, await bearer('operator'), '')).toBe(403)
  expect(await refusal(uid, { 'x-api-key': sample.apiKey }, '?join')).toBe(403)
  for (const who of ['observer', 'stranger'] as const)
    await expect((await apiOf(quarters(), who)).sessions.join({ params: { uid } })).rejects.toMatchObject({
      status: who === 'observer' ? 403 : 404,
    })
  // A ticket to join is none to watch without being asked.
  const { token } = (await (await apiOf(quarters(), 'operator')).sessions.join({ params: { uid } })).body
  using guest = await openGuest(quarters().service.url, uid, { query: `?ticket=${token}` })
  await shell.until('oskar asks to type here')
  guest.type('echo in$((1+1))truder\r')
  guest.say({ kind: 'take' })
  guest.say({ kind: 'share' })
  guest.say({ kind: 'resize', width: 20, height: 5 })
  guest.say({ kind: 'size', follow: 'driver' })
  await guest.present({ people: [{ id: 0 }, { state: 'asking' }], driver: null, size: 'smallest' })
  shell.type('\u001d')
  shell.type('n')
  expect(await guest.ended).toMatch(/refused/)
  shell.type('echo "at $(stty size)"\r')
  await shell.until('at 24 80')
  expect(guest.shown()).toBe('')
  expect(shell.text()).not.toContain('in2truder')
  // The name of an API key that watches is known, but it types nothing.
  using key = await openGuest(quarters().service.url, uid, { headers: { 'x-api-key': sample.apiKey } })
  await key.until(/rea2dy/)
  key.say({ kind: 'ask' })
  await eventually(() => expect(key.said).toContainEqual(expect.objectContaining({ kind: 'note' })))
  expect(shell.text()).not.toContain(`${sample.apiKey} asks`)
})

test('what is typed or pasted by the way is no consent', async () => {
  const { shell, uid } = await begin()
  using _ = shell
  using guest = await join(uid, 'operator')
  await shell.until('oskar asks to type here')
  for (const typed of ['y', 'Y\r', 'YES\r', '\r', '\u001dyes\r', 'x\u001dy', 'cat <<E\r\u001dy\rE\r'])
    shell.type(typed)
  // The device writes the very bytes; that is what is shown, not what is typed.
  shell.type('\u0003')
  shell.type('printf "\\035y"; echo wri$((1+1))ten\r')
  await shell.until('wri2ten')
  // The last piece of a long paste.
  shell.type('#'.repeat(1_000))
  shell.type('\u001dy')
  shell.type('\r')
  shell.type('echo pas$((1+1))ted\r')
  await shell.until('pas2ted')
  expect(guest.presence()?.people[1]).toMatchObject({ state: 'asking' })
  expect(guest.shown()).toBe('')
})

test('an answer is for the one who was asked about, and a user asks once', async () => {
  const { shell, uid } = await begin()
  using _ = shell
  using oskar = await join(uid, 'operator')
  await shell.until('oskar asks to type here')
  using again = await join(uid, 'operator')
  expect(await again.ended).toBe('You ask here already.')
  using adam = await join(uid, 'administrator')
  await adam.present({ you: 3 })
  adam.say({ kind: 'ask' })
  await adam.present({ people: [{ id: 0 }, { state: 'asking' }, { state: 'asking' }] })
  shell.type('\u001d')
  await (await apiOf(quarters(), 'owner')).sessions.get({ params: { uid } })
  oskar[Symbol.dispose]()
  await shell.until('adam asks to type here')
  shell.type('y')
  shell.type('echo an$((1+1))swer\r')
  await shell.until('an2swer')
  expect(adam.presence()?.people[1]).toMatchObject({ name: 'adam', state: 'asking' })
  shell.type('\u001d')
  shell.type('y')
  await adam.present({ people: [{ id: 0 }, { name: 'adam', state: 'typing' }] })
})

test('those who watch take no place of those who come to type, and the other way round', async () => {
  const { shell, uid } = await begin()
  using _ = shell
  using open = new DisposableStack()
  for (let count = 0; count < 16; count++) {
    const viewer = open.use(await join(uid, 'owner', ''))
    await viewer.until(/rea2dy/)
  }
  using late = await join(uid, 'owner', '')
  expect(await late.ended).toBe('This session has too many viewers already.')
  using oskar = await join(uid, 'operator')
  await shell.until('oskar asks to type here')
  shell.type('\u001dy')
  await oskar.until(/rea2dy/)
  // One person has few of the places for guests.
  for (let count = 1; count < sessionLimits.guestOf.max; count++) open.use(await join(uid, 'administrator'))
  open.use(await join(uid, 'administrator'))
  expect(await refusal(uid, await bearer('administrator'), '?join')).toBe(429)
  expect(await refusal(uid, await bearer('administrator'), '')).toBe(101)
})

test('the buttons of a browser decide about whoever asks, and about nobody whom the firewall has not let in', async () => {
  const { shell, uid } = await begin()
  using _ = shell
  const people = () => shell.news.findLast((one) => one.kind === 'present')
  const who = async (expected: object[]) =>
    eventually(() => expect(people()?.people).toMatchObject([{ id: 0 }, ...expected]))
  const decide = (decision: object) => shell.say({ channel: 0, ...decision })
  {
    // Whoever did not ask to hear of it is told nothing.
    using adam = await join(uid, 'administrator', '')
    await adam.until(/rea2dy/)
    expect(people()).toBeUndefined()
    decide({ kind: 'hear' })
    await who([{ id: 1, name: 'adam', state: 'watching' }])
    // Who did not ask is not allowed to.
    for (const kind of ['allow', 'dismiss', 'refuse']) decide({ kind, who: 1 })
    decide({ kind: 'hand', to: 1 })
    decide({ kind: 'allow', who: 99 })
  }
  await who([])
  const { logins } = quarters().service.rooms
  const { firewall } = logins
  const verdict = Promise.withResolvers<void>()
  const asked = vi.spyOn(logins, 'firewall').mockImplementation(async (...question) => {
    await verdict.promise
    return firewall(...question)
  })
  using oskar = await join(uid, 'operator')
  await eventually(() => expect(asked).toHaveBeenCalled())
  decide({ kind: 'allow', who: 2 })
  decide({ kind: 'size', follow: 'driver' })
  await eventually(() => expect(people()).toMatchObject({ size: 'driver' }))
  expect(people()?.people[1]).toMatchObject({ state: 'watching' })
  oskar.type('echo in$((1+1))truder\r')
  verdict.resolve()
  asked.mockRestore()
  await who([{ id: 2, name: 'oskar', state: 'asking' }])
  decide({ kind: 'allow', who: 2 })
  await oskar.until(/rea2dy/)
  oskar.type('echo wel$((1+1))come\r')
  await shell.until('wel2come')
  decide({ kind: 'hand', to: 2 })
  await oskar.present({ driver: 2 })
  decide({ kind: 'take' })
  await oskar.present({ driver: 0 })
  decide({ kind: 'share' })
  await oskar.present({ driver: null })
  decide({ kind: 'dismiss', who: 2 })
  expect(await oskar.ended).toBe('vera sent you back to watching.')
  expect(shell.text()).not.toContain('in2truder')
  // Nobody decides so often.
  for (let count = 0; count < 100; count++) decide({ kind: 'share' })
  expect(await shell.hear('end')).toBe('You sent too many messages.')
  for (const wrong of [
    null,
    { kind: 'allow' },
    { kind: 'allow', channel: 0, who: 0 },
    { kind: 'nothing', channel: 0 },
  ]) {
    const other = await begin()
    using shellOf = other.shell
    shellOf.say(wrong)
    expect(await shellOf.hear('end')).toBe('A message of the browser was not understood.')
  }
})

test('a lowered role and an ended sign-in end the typing at once', async () => {
  const { shell, uid } = await begin()
  using _ = shell
  const owner = await apiOf(quarters(), 'owner')
  const params = { tenant: sample.tenant, uid: sample.operator.id }
  const allowed = async (): Promise<Guest> => {
    const guest = await join(uid, 'operator')
    const before = shell.text().split('oskar asks').length
    await eventually(() => expect(guest.presence()?.people[1]).toMatchObject({ state: 'asking' }))
    await eventually(() => expect(shell.text().split('oskar asks').length).toBeGreaterThanOrEqual(before))
    shell.type('\u001dy')
    await guest.until(/rea2dy/)
    return guest
  }
  {
    using guest = await allowed()
    await quarters()
      .service.rooms.database.db.updateTable('users')
      .set({ epoch: 2 })
      .where('id', '=', sample.operator.id)
      .execute()
    quarters().service.rooms.bus.tell('user.changed', { user_id: sample.operator.id })
    expect(await guest.ended).toBe('You may no longer watch this session.')
    await quarters()
      .service.rooms.database.db.updateTable('users')
      .set({ epoch: 1 })
      .where('id', '=', sample.operator.id)
      .execute()
  }
  {
    using guest = await allowed()
    guest.type('echo fi$((1+1))rst\r')
    await shell.until('fi2rst')
    // One that does not listen when it is shown out.
    guest.pause()
    await owner.namespaces.updateMember({ params, body: { role: 'observer' } })
    await eventually(async () =>
      expect((await owner.sessions.get({ params: { uid } })).body.participants).toBeUndefined(),
    )
    guest.type('echo la$((1+1))te\r')
    guest.say({ kind: 'ask' })
    guest.type('echo la$((1+1))ter\r')
  }
  // What the other one sent is there before this question is answered.
  await owner.sessions.get({ params: { uid } })
  shell.type('echo af$((1+1))ter\r')
  await shell.until('af2ter')
  expect(shell.text()).not.toContain('la2te')
})

test('a flood of messages, of unreadable ones and of questions ends with the one who sends it', async () => {
  const { shell, uid } = await begin()
  using _ = shell
  {
    using guest = await join(uid, 'administrator', '')
    await guest.present({ you: 1 })
    for (const text of ['', 'null', '[]', '{"kind":"nothing"}', '{"kind":"hand"}', '{"kind":"hand","to":-1}'])
      guest.sayRaw(text)
    guest.sayRaw(`{"kind":"ask","more":"${'x'.repeat(2_000)}"}`)
    guest.sayRaw('{"kind":"__proto__"}')
    await eventually(() => expect(guest.said.filter(({ kind }) => kind === 'note')).toHaveLength(8))
    for (let count = 0; count < 200; count++) guest.say({ kind: count % 2 === 0 ? 'ask' : 'watch' })
    expect(await guest.ended).toBe('You sent too many messages.')
  }
  await eventually(async () => {
    const { body } = await (await apiOf(quarters(), 'owner')).sessions.get({ params: { uid } })
    expect(body.participants).toBeUndefined()
  })
  shell.type('echo af$((1+1))ter\r')
  await shell.until('af2ter')
  // Each question is a line in somebody's terminal: one user has few of them.
  expect(shell.text().split('adam asks').length).toBeLessThanOrEqual(2)
})

test('a participant who does not read slows nobody down, and loses the seat', async () => {
  const { shell, uid } = await begin()
  using _ = shell
  using guest = await join(uid, 'administrator', '')
  await guest.present({ you: 1 })
  guest.say({ kind: 'ask' })
  await shell.until('adam asks to type here')
  shell.type('\u001dy')
  await shell.until('adam can now type here')
  guest.pause()
  shell.type('head -c 20000000 /dev/zero | tr "\\0" x | fold -w 200; echo do$((1+1))ne\r')
  // Looking at so much text takes its time: not every few milliseconds.
  await eventually(() => expect(shell.text().slice(-4_000)).toContain('do2ne'), 50_000, 1_000)
  const owner = await apiOf(quarters(), 'owner')
  await eventually(async () =>
    expect((await owner.sessions.get({ params: { uid } })).body.participants).toBeUndefined(),
  )
  expect(shell.text().includes('adam has left')).toBe(true)
})

test('whom the firewall does not let in to the device does not type in a session there', async () => {
  await consent(false)
  const { shell, uid } = await begin()
  using _ = shell
  const owner = await apiOf(quarters(), 'owner')
  const deny = { action: 'deny', active: true, priority: 0, source_ip: '.*', username: '.*' } as const
  const { body: rule } = await owner.firewall.create({ body: { ...deny, filter: { hostname: '.*' } } })
  try {
    using adam = await join(uid, 'administrator', '')
    await adam.present({ you: 1 })
    adam.say({ kind: 'ask' })
    await eventually(() =>
      expect(adam.said).toContainEqual({
        kind: 'note',
        message: 'A firewall rule of the namespace does not allow this.',
      }),
    )
    adam.type('echo in$((1+1))truder\r')
    shell.type('echo on$((1+1))ward\r')
    await shell.until('on2ward')
    expect(shell.text()).not.toContain('in2truder')
  } finally {
    await owner.firewall.remove({ params: { id: rule.id } })
  }
})

test('when the namespace asks for consent again, nobody goes on typing without it', async () => {
  await consent(false)
  const { shell, uid } = await begin()
  using _ = shell
  using adam = await join(uid, 'administrator', '')
  using olga = await join(uid, 'owner', '')
  for (const [guest, name] of [
    [adam, 'adam'],
    [olga, sample.owner.username],
  ] as const) {
    await guest.until(/rea2dy/)
    guest.say({ kind: 'ask' })
    await shell.until(`${name} can now type here`)
  }
  olga.say({ kind: 'watch' })
  await shell.until(`${sample.owner.username} only watches now`)
  await consent(true)
  await shell.until('adam only watches now')
  adam.type('echo in$((1+1))truder\r')
  expect(adam.said).toContainEqual({
    kind: 'note',
    message: 'You have to ask whether you may type, from now on.',
  })
  // Who was allowed to by the person stays, whatever the setting.
  olga.say({ kind: 'ask' })
  await shell.until(`${sample.owner.username} asks to type here`)
  shell.type('\u001dy')
  await olga.present({ people: [{ id: 0 }, { state: 'watching' }, { state: 'typing' }] })
  await consent(false)
  await consent(true)
  olga.type('echo wel$((1+1))come\r')
  await shell.until('wel2come')
  expect(shell.text()).not.toContain('in2truder')
})

test('whoever typed without consent as an administrator does not go on as an operator', async () => {
  await consent(false)
  const { shell, uid } = await begin()
  using _ = shell
  // A ticket does not end with the token that a changed role ends.
  const { token } = (await (await apiOf(quarters(), 'administrator')).sessions.join({ params: { uid } })).body
  using adam = await openGuest(quarters().service.url, uid, { query: `?ticket=${token}` })
  await adam.present({ you: 1 })
  adam.say({ kind: 'ask' })
  await shell.until('adam can now type here')
  const params = { tenant: sample.tenant, uid: sample.administrator.id }
  const owner = await apiOf(quarters(), 'owner')
  await owner.namespaces.updateMember({ params, body: { role: 'operator' } })
  expect(await adam.ended).toBe('You may no longer watch this session.')
  await shell.until('adam has left')
})
