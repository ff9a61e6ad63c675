// An invitation to a live session is a link, and links are copied, forwarded, guessed and stolen. It lets one person in
// to one session, for a while, and only as long as whoever made it may watch that session. It is no way around the
// consent of the person of the session, around the firewall, or into anything else of the namespace.
import { afterEach, beforeEach, describe, expect, test } from 'vitest'
import { client, type ApiError } from '@hawser/contract/client'
import { sample } from '@hawser/contract/examples'
import { mostInvitations } from '@hawser/contract/session-invitations'
import { openGuest, type Guest } from '../clients/shared.ts'
import { apiOf, sharedQuarters, terminal, type Dialled } from '../clients/web.ts'
import { eventually } from '../harness/eventually.ts'

const quarters = sharedQuarters()
type Who = Parameters<ReturnType<typeof quarters>['world']['token']>[0]

const api = async (who: Who) => apiOf(quarters(), who)
const outsiders = async (are: boolean) =>
  (await api('owner')).namespaces.edit({
    params: { tenant: sample.tenant },
    body: { settings: { invite_outsiders: are } },
  })
/** The status of a refused call. */
const status = async (call: Promise<unknown>): Promise<number> =>
  call.then(
    () => 200,
    (error: ApiError) => error.status,
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
const invite = async (
  uid: string,
  body: { mode?: 'watch' | 'join'; to?: string; valid_minutes?: number } = {},
  who: Who = 'observer',
) => (await (await api(who)).sessions.invite({ params: { uid }, body: { mode: 'watch', ...body } })).body
const accept = async (who: Who, token: string) =>
  (await (await api(who)).sessions.acceptInvitation({ body: { token } })).body
const enter = async (who: Who, token: string): Promise<Guest> => {
  const { token: ticket, session_uid } = await accept(who, token)
  return openGuest(quarters().service.url, session_uid, { query: `?ticket=${ticket}` })
}

const over = 'You may no longer watch this session.'
beforeEach(async () => {
  // What a person may do in ten minutes is counted.
  quarters().service.clock.forward(11 * 60_000)
  await outsiders(true)
})
afterEach(() => outsiders(false))

test('a token that was guessed, that is none or that is of nothing lets nobody in', async () => {
  const stan = await api('stranger')
  for (const token of ['', 'hwi_', `hwi_${'a'.repeat(31)}`, `hwi_${'A'.repeat(32)}`, `hwe_${'a'.repeat(32)}`])
    expect(await status(stan.sessions.acceptInvitation({ body: { token } }))).toBe(400)
  const guesses = Array.from(
    { length: 40 },
    (_, n) =>
      `hwi_${'abcdefgh'.repeat(3)}${String(n + 10_000).replaceAll(/\d/g, (digit) => 'abcdefghij'[Number(digit)]!)}aaa`,
  )
  const answers = new Map<number, number>()
  for (const token of guesses) {
    const answer = await status(stan.sessions.acceptInvitation({ body: { token } }))
    answers.set(answer, (answers.get(answer) ?? 0) + 1)
  }
  expect([...answers]).toEqual([
    [404, 30],
    [429, 10],
  ])
  // Whoever guesses stands in nobody else's way.
  const { shell, uid } = await begin()
  using _ = shell
  const { token } = await invite(uid)
  expect(await status(accept('stranger', token))).toBe(429)
  expect((await accept('operator', token)).session_uid).toBe(uid)
})

test('a link is for one person, and shows them one session and nothing else', async () => {
  const { shell, uid } = await begin()
  using _ = shell
  const { token, id } = await invite(uid)
  // Many at once: one of them has it.
  const tried = await Promise.all(
    (['stranger', 'operator', 'stranger', 'operator', 'careful', 'administrator'] as const).map(
      async (who) => ({
        who,
        status: await status(accept(who, token)),
      }),
    ),
  )
  const winners = new Set(tried.filter((one) => one.status === 200).map(({ who }) => who))
  expect(winners.size).toBe(1)
  const [winner = 'stranger'] = winners
  for (const one of tried) expect(one.status).toBe(one.who === winner ? 200 : 403)
  const used_by = sample[winner as 'stranger'].username
  const mine = { params: { uid } }
  expect((await (await api('observer')).sessions.invitations(mine)).body).toMatchObject([{ id, used_by }])

  const other = await invite(uid)
  using stan = await enter('stranger', other.token)
  await stan.until(/rea2dy/)
  await shell.until('[stan, invited by vera, watches]')
  expect(stan.presence()?.people[1]).toMatchObject({ name: 'stan', state: 'watching', invited_by: 'vera' })
  stan.type('echo in$((1+1))truder\r')
  for (const kind of ['ask', 'take', 'share'] as const) stan.say({ kind })
  await eventually(() =>
    expect(stan.said).toContainEqual({ kind: 'note', message: 'Your invitation is for watching only.' }),
  )
  // Of the namespace there is nothing for them, nor another session.
  const stranger = await api('stranger')
  const second = await begin()
  using secondShell = second.shell
  void secondShell
  expect(await status(stranger.sessions.get(mine))).toBe(404)
  expect(await status(stranger.sessions.ticket(mine))).toBe(404)
  expect(await status(stranger.sessions.join(mine))).toBe(404)
  expect(await status(stranger.sessions.invitations(mine))).toBe(404)
  expect(await status(stranger.sessions.invite({ ...mine, body: { mode: 'join' } }))).toBe(404)
  expect(await status(stranger.sessions.uninvite({ params: { uid, id: other.id } }))).toBe(404)
  const { token: ticket } = await accept('stranger', other.token)
  const { url } = quarters().service
  await expect(openGuest(url, second.uid, { query: `?ticket=${ticket}` })).rejects.toMatchObject({
    status: 401,
  })
  // Again, after a connection that was lost, and a ticket is good once.
  using again = await openGuest(url, uid, { query: `?ticket=${ticket}` })
  await again.until(/rea2dy/)
  await expect(openGuest(url, uid, { query: `?ticket=${ticket}` })).rejects.toMatchObject({ status: 401 })
  shell.type('echo on$((1+1))ward\r')
  await stan.until(/on2ward/)
  expect(shell.text()).not.toContain('in2truder')
  // However often they come, the person of the session reads it once.
  expect(shell.text().split('stan, invited by vera, watches')).toHaveLength(2)
})

test('whoever watches is in the log when they come and when they go, and of a guest there is a line', async () => {
  const { shell, uid } = await begin()
  using _ = shell
  const { token } = await invite(uid)
  const said = (what: string) => shell.text().split(`[stan, invited by vera, ${what}]`).length - 1
  const log = async () => {
    const { body } = await (await api('owner')).audit.list({ query: { target: uid, limit: 100 } })
    return body.entries
      .toReversed()
      .map(({ action, actor }) => `${action} ${actor.name}`)
      .filter((text) => text.includes('watched'))
  }
  const stan = await enter('stranger', token)
  const twice = await enter('stranger', token)
  for (const guest of [stan, twice]) await guest.until(/rea2dy/)
  stan[Symbol.dispose]()
  await twice.present({ people: [{ id: 0 }, { id: 2 }] })
  twice[Symbol.dispose]()
  await shell.until('[stan, invited by vera, has left]')
  const pair = ['session.watched stan', 'session.unwatched stan']
  await eventually(async () => expect(await log()).toEqual(pair))
  const back = await enter('stranger', token)
  await back.until(/rea2dy/)
  back[Symbol.dispose]()
  await eventually(() => expect([said('watches'), said('has left')]).toEqual([2, 2]))
  await eventually(async () => expect(await log()).toEqual([...pair, ...pair]))
  // Those who supervise come and go without a word.
  const headers = { authorization: `Bearer ${await quarters().world.token('administrator')}` }
  const adam = await openGuest(quarters().service.url, uid, { headers })
  await adam.until(/rea2dy/)
  adam[Symbol.dispose]()
  const whole = [...pair, ...pair, 'session.watched adam', 'session.unwatched adam']
  await eventually(async () => expect(await log()).toEqual(whole))
  expect(shell.text()).not.toContain('adam')
})

test('whoever may type by an invitation asks like anybody, and the firewall is asked, too', async () => {
  const { shell, uid } = await begin()
  using _ = shell
  const { token } = await invite(uid, { mode: 'join', to: sample.stranger.email }, 'administrator')
  const owner = await api('owner')
  const settings = async (join_without_consent: boolean) =>
    owner.namespaces.edit({ params: { tenant: sample.tenant }, body: { settings: { join_without_consent } } })
  // It waives the question for administrators, and not for those whom they invite.
  await settings(true)
  using stan = await enter('stranger', token)
  await stan.until(/rea2dy/)
  stan.type('echo in$((1+1))truder\r')
  stan.say({ kind: 'ask' })
  await shell.until('[stan, invited by adam, asks to type here')
  shell.type('\u001dy')
  await stan.present({ people: [{ id: 0 }, { state: 'typing' }] })
  stan.type('echo wel$((1+1))come\r')
  await shell.until('wel2come')
  await settings(false)
  stan.say({ kind: 'watch' })
  await shell.until('only watches now')
  const deny = { action: 'deny', active: true, priority: 0, source_ip: '.*', username: '.*' } as const
  const { body: rule } = await owner.firewall.create({ body: { ...deny, filter: { hostname: '.*' } } })
  try {
    stan.say({ kind: 'ask' })
    const message = 'A firewall rule of the namespace does not allow this.'
    await eventually(() => expect(stan.said).toContainEqual({ kind: 'note', message }))
  } finally {
    await owner.firewall.remove({ params: { id: rule.id } })
  }
  expect(shell.text()).not.toContain('in2truder')
  const { body } = await owner.audit.list({ query: { target: uid, limit: 100 } })
  const told = body.entries.toReversed().map(({ action, actor }) => `${action} ${actor.name}`)
  expect(told).toEqual(
    expect.arrayContaining([
      'session.invitation.created adam',
      'session.invitation.used stan',
      'session.watched stan',
      'session.joined stan',
    ]),
  )
  expect(JSON.stringify(body)).not.toContain(token)
})

describe('an invitation is refused to', () => {
  test('those who are no members, unless the namespace wants them; and who is there is shown out', async () => {
    const { shell, uid } = await begin()
    using _ = shell
    await outsiders(false)
    // Who is a user of the server is nobody's business.
    for (const to of ['stan', sample.stranger.email, 'nobody-at-all'])
      expect(await status(invite(uid, { to }))).toBe(403)
    const { token } = await invite(uid)
    expect(await status(accept('stranger', token))).toBe(403)
    await outsiders(true)
    expect(await status(invite(uid, { to: 'nobody-at-all' }))).toBe(200)
    using stan = await enter('stranger', token)
    await stan.until(/rea2dy/)
    await outsiders(false)
    expect(await stan.ended).toBe(over)
    expect(await status(accept('stranger', token))).toBe(403)
  })

  test('everybody but the one who is named', async () => {
    const { shell, uid } = await begin()
    using _ = shell
    for (const to of ['OSKAR', sample.operator.email]) {
      const { token } = await invite(uid, { to })
      for (const who of ['stranger', 'administrator', 'careful'] as const)
        expect(await status(accept(who, token))).toBe(403)
      expect((await accept('operator', token)).created_by).toBe('vera')
    }
  })

  test('whoever calls themself by the address of the one who is named', async () => {
    const { shell, uid } = await begin()
    using _ = shell
    const stan = await api('stranger')
    // She has no account yet, so that nobody has taken it.
    const email = 'victoria@corp.example'
    expect(await status(stan.users.update({ body: { username: email } }))).toBe(400)
    const { users } = quarters().service.rooms.stores
    // As accounts may have it from before.
    await users.save(sample.stranger.id, { username: email })
    try {
      const { token } = await invite(uid, { to: email })
      expect(await status(accept('stranger', token))).toBe(403)
    } finally {
      await users.save(sample.stranger.id, { username: sample.stranger.username })
    }
  })

  test('everybody, once it is revoked, has expired or the session is over', async () => {
    const { shell, uid } = await begin()
    using _ = shell
    const vera = await api('observer')
    const [revoked, short, last] = [
      await invite(uid),
      await invite(uid, { valid_minutes: 2 }),
      await invite(uid),
    ]
    const guests = [await enter('stranger', revoked.token), await enter('stranger', short.token)] as const
    for (const guest of guests) await guest.until(/rea2dy/)
    await vera.sessions.uninvite({ params: { uid, id: revoked.id } })
    expect(await guests[0].ended).toBe(over)
    expect(await status(accept('stranger', revoked.token))).toBe(404)
    expect(await status(vera.sessions.uninvite({ params: { uid, id: revoked.id } }))).toBe(404)
    quarters().service.clock.forward(121_000)
    expect(await status(accept('stranger', short.token))).toBe(404)
    quarters().service.rooms.bus.tell('user.changed', { user_id: sample.stranger.id })
    expect(await guests[1].ended).toBe(over)
    // What was given before the end opens nothing after it.
    const { token: ticket } = await accept('stranger', last.token)
    shell.type('exit\r')
    await eventually(async () =>
      expect((await vera.sessions.get({ params: { uid } })).body.active).toBe(false),
    )
    const way = { query: `?ticket=${ticket}` }
    await expect(openGuest(quarters().service.url, uid, way)).rejects.toMatchObject({ status: 403 })
    expect(await status(accept('stranger', last.token))).toBe(404)
    expect(await status(invite(uid))).toBe(409)
    expect((await vera.sessions.invitations({ params: { uid } })).body).toEqual([])
  })
})

test('only the person of a session and those who may watch it invite, and they do not flood it', async () => {
  const { shell, uid } = await begin()
  using _ = shell
  const mine = { params: { uid } }
  const oskar = await api('operator')
  expect(await status(oskar.sessions.invite({ ...mine, body: { mode: 'watch' } }))).toBe(403)
  expect(await status(oskar.sessions.invitations(mine))).toBe(403)
  const { id } = await invite(uid, {}, 'administrator')
  expect(await status(oskar.sessions.uninvite({ params: { uid, id } }))).toBe(403)
  // By the address of another session it is none.
  const second = await begin()
  using secondShell = second.shell
  void secondShell
  const vera = await api('observer')
  expect(await status(vera.sessions.uninvite({ params: { uid: second.uid, id } }))).toBe(404)
  await vera.sessions.uninvite({ params: { uid, id } })
  for (const valid_minutes of [0, 24 * 60 + 1, 1.5])
    expect(await status(invite(uid, { valid_minutes }))).toBe(400)
  const many = await Promise.all(Array.from({ length: 15 }, () => status(invite(uid))))
  expect(many.filter((one) => one === 200)).toHaveLength(mostInvitations)
  expect(many.filter((one) => one === 409)).toHaveLength(15 - mostInvitations)
  const answers: number[] = []
  for (let count = 0; count < 40; count++) answers.push(await status(invite(uid)))
  expect(answers.at(-1)).toBe(429)
})

test('no token is stored, listed or logged', async () => {
  const { shell, uid } = await begin()
  using _ = shell
  const { token } = await invite(uid, {}, 'administrator')
  await accept('stranger', token)
  const { db } = quarters().service.rooms.database
  const rows = await db.selectFrom('session_invitations').selectAll().execute()
  const entries = await db.selectFrom('audit_entries').selectAll().execute()
  const { body } = await (await api('owner')).sessions.invitations({ params: { uid } })
  expect(body).toHaveLength(1)
  expect(JSON.stringify([rows, entries, body])).not.toContain(token.slice(4))
})

describe('it ends with the right of whoever made it:', () => {
  const params = { tenant: sample.tenant, uid: sample.administrator.id }
  async function invitedByAdam(uid: string): Promise<{ guest: Guest; token: string }> {
    const { token } = await invite(uid, {}, 'administrator')
    const guest = await enter('stranger', token)
    await guest.until(/rea2dy/)
    return { guest, token }
  }

  test('the password was changed, also with the sign-in that changes it', async () => {
    const { shell, uid } = await begin()
    using _ = shell
    const { service } = quarters()
    const { rooms } = service
    const password = 'rope-and-anchor'
    const ada = { name: 'Ada', username: 'ada', email: 'ada@example.com', password }
    const { id } = await rooms.users.create(ada, true)
    await rooms.namespaces.join(sample.tenant, id, 'administrator')
    const signIn = async () =>
      client({ url: service.url, token: (await service.api().users.login({ body: ada })).body.token })
    const [here, elsewhere] = [await signIn(), await signIn()]
    const links = await Promise.all(
      [here, elsewhere].map(
        async (by) => (await by.sessions.invite({ params: { uid }, body: { mode: 'watch' } })).body.token,
      ),
    )
    const guests = await Promise.all(links.map(async (link) => enter('stranger', link)))
    for (const guest of guests) await guest.until(/rea2dy/)
    await here.users.update({ body: { password: 'rope-and-chain', current_password: password } })
    for (const guest of guests) expect(await guest.ended).toBe(over)
    for (const link of links) expect(await status(accept('stranger', link))).toBe(404)
    expect((await here.sessions.invitations({ params: { uid } })).body).toEqual([])
    const revoked = (await here.audit.list()).body.entries.filter(
      ({ action, target }) => action === 'session.invitation.revoked' && target.id === uid,
    )
    const entry = { actor: { name: 'ada' }, detail: { mode: 'watch', created_by: 'ada' } }
    expect(revoked).toMatchObject([entry, entry])
  })

  test('the sign-in with which it was made was ended', async () => {
    const { shell, uid } = await begin()
    using _ = shell
    const { service } = quarters()
    const { token: bearer } = (await service.api().users.login({ body: sample.administrator })).body
    const adam = client({ url: service.url, token: bearer })
    const { token } = (await adam.sessions.invite({ params: { uid }, body: { mode: 'watch' } })).body
    using guest = await enter('stranger', token)
    await guest.until(/rea2dy/)
    await adam.signIns.end({ params: { id: 'current' } })
    expect(await guest.ended).toBe(over)
    expect(await status(accept('stranger', token))).toBe(404)
  })

  test('the role was lowered, for good', async () => {
    const { shell, uid } = await begin()
    using _ = shell
    const { guest, token } = await invitedByAdam(uid)
    const owner = await api('owner')
    await owner.namespaces.updateMember({ params, body: { role: 'operator' } })
    expect(await guest.ended).toBe(over)
    await owner.namespaces.updateMember({ params, body: { role: 'administrator' } })
    expect(await status(accept('stranger', token))).toBe(404)
  })

  test('the membership is over', async () => {
    const { shell, uid } = await begin()
    using _ = shell
    const { token } = await invite(uid)
    using guest = await enter('stranger', token)
    await guest.until(/rea2dy/)
    const owner = await api('owner')
    const vera = { tenant: sample.tenant, uid: sample.observer.id }
    await owner.namespaces.removeMember({ params: vera })
    await guest.ended
    expect(await status(accept('stranger', token))).toBe(404)
  })
})
