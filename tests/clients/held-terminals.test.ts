// Terminals of a browser that outlive it: a tab that is reloaded or asleep, a phone that takes
// over from a computer.
import { describe, expect, test } from 'vitest'
import { sample } from '@hawser/contract/examples'
import { Closing, mostUnshown_bytes } from '@hawser/contract/terminals'
import { eventually } from './way.ts'
import { apiOf, dial, filesBeside, sharedQuarters, terminal, ticket, type Dialled } from './web.ts'

const quarters = sharedQuarters()
const stateOf = async (uid: string) => {
  const api = await apiOf(quarters())
  const { active, held } = (await api.sessions.get({ params: { uid } })).body
  return { active, held }
}
const isSoon = async (uid: string, state: { active: boolean; held: boolean }) =>
  eventually(async () => expect(await stateOf(uid)).toEqual(state))
const attach = async (
  session: string,
  change: { scrollback?: boolean } = {},
  who?: Parameters<typeof apiOf>[1],
): Promise<Dialled> => {
  const api = await apiOf(quarters(), who)
  const { body } = await api.terminals.attach({ body: { session, ...change } })
  return dial(quarters().service, body.token, { cols: 70, rows: 20 })
}
async function shell(): Promise<[Dialled, string]> {
  const [opened, uid] = await terminal(quarters())
  opened.type('PS1="> "; stty -echo; VALUE=kept; echo rea""dy\r')
  await opened.until('ready\r\n')
  return [opened, uid]
}

describe('a terminal in a browser', () => {
  test('that is lost is held, and the same user continues it without a password, at the new size', async () => {
    const [lost, uid] = await shell()
    lost[Symbol.dispose]()
    await isSoon(uid, { active: true, held: true })
    using back = await attach(uid)
    expect(await back.hear('session')).toBe(uid)
    await back.until(/ready\r\n>/)
    back.type('echo "still $VALUE $(stty size)"\r')
    await back.until('still kept 20 70\r\n')
    await isSoon(uid, { active: true, held: false })
    back.type('exit\r')
    expect(await back.closed).toBe(Closing.done)
    await isSoon(uid, { active: false, held: false })
  })

  test('is held when the page is left (1001), and ends with a goodbye (1000)', async () => {
    const [reloaded, uid] = await shell()
    reloaded.close(1001)
    await isSoon(uid, { active: true, held: true })
    using back = await attach(uid)
    await back.until(/ready\r\n>/)
    back.close(1000)
    await isSoon(uid, { active: false, held: false })
  })

  test('is held when the page leaves it to be continued', async () => {
    const [left, uid] = await shell()
    left.close(Closing.left)
    await isSoon(uid, { active: true, held: true })
    using back = await attach(uid)
    await isSoon(uid, { active: true, held: false })
    back.close(Closing.left)
    await isSoon(uid, { active: true, held: true })
    using again = await attach(uid)
    again.type('echo "still $VALUE"; exit\r')
    await again.until('still kept\r\n')
    await isSoon(uid, { active: false, held: false })
  })

  test('moves to another tab; the first is told, and by its code that it must not take it back', async () => {
    const [opened, uid] = await shell()
    using first = opened
    using second = await attach(uid)
    await second.until(/ready\r\n>/)
    await first.until('The session continues elsewhere: in a browser at 127.0.0.1.')
    expect(await first.closed).toBe(Closing.moved)
    second.type('echo "here $VALUE"\r')
    await second.until('here kept\r\n')
    // Files are beside it, as before.
    const api = await apiOf(quarters())
    const { body } = await api.terminals.files({ body: { session: uid } })
    using files = await dial(quarters().service, body.token)
    files.send(JSON.stringify({ kind: 'list', path: '' }))
    await eventually(() => expect(JSON.stringify(files.news)).toContain('"folder"'))
    second.close(1000)
    await isSoon(uid, { active: false, held: false })
  })

  test('that is continued and then closed takes its files along, also when it draws nothing any more', async () => {
    const [lost, uid] = await shell()
    lost[Symbol.dispose]()
    await isSoon(uid, { active: true, held: true })
    using back = await attach(uid)
    await back.until(/ready\r\n>/)
    using line = await filesBeside(quarters(), uid)
    line.say({ kind: 'list', path: '' })
    expect(await line.next()).toMatchObject({ kind: 'folder' })
    back.say({ kind: 'shown', bytes: 0 })
    back.type(`head -c ${2 * mostUnshown_bytes} /dev/zero | tr '\\0' x\r`)
    await eventually(() => expect(back.text().length).toBeGreaterThan(mostUnshown_bytes / 2))
    const owner = await apiOf(quarters(), 'owner')
    await owner.sessions.close({ params: { uid }, body: { device: quarters().agent.uid } })
    await isSoon(uid, { active: false, held: false })
    // The record may be closed a moment before the channels are.
    await eventually(async () => {
      line.say({ kind: 'list', path: '' })
      expect(await Promise.race([line.next(), line.closed])).not.toMatchObject({ kind: 'folder' })
    })
  })

  test('that is lost with files beside it is held again', async () => {
    const [lost, uid] = await shell()
    lost[Symbol.dispose]()
    await isSoon(uid, { active: true, held: true })
    const back = await attach(uid)
    await back.until(/ready\r\n>/)
    using line = await filesBeside(quarters(), uid)
    line.say({ kind: 'list', path: '' })
    expect(await line.next()).toMatchObject({ kind: 'folder' })
    back[Symbol.dispose]()
    await isSoon(uid, { active: true, held: true })
    using again = await attach(uid)
    await again.until(/ready\r\n>/)
    again.close(1000)
    await isSoon(uid, { active: false, held: false })
  })

  test('that comes back by itself takes nothing from who came since; a person’s own wish does', async () => {
    const api = await apiOf(quarters())
    const ticketFor = async (session: string, after?: string): Promise<string> =>
      (await api.terminals.attach({ body: after === undefined ? { session } : { session, after } })).body
        .token
    const dialled = async (token: string): Promise<Dialled> => dial(quarters().service, token)
    const says = async (page: Dialled, word: string): Promise<void> => {
      page.type(`echo "${word} $VALUE"\r`)
      await page.until(`${word} kept\r\n`)
    }
    const laptop = await ticket(quarters())
    const first = await dialled(laptop)
    const uid = await first.hear('session')
    first.type('VALUE=kept\r')
    await says(first, 'first')
    first[Symbol.dispose]()
    // Nobody came, however often it comes back.
    for (const word of ['second', 'third']) {
      const back = await dialled(await ticketFor(uid, laptop))
      await says(back, word)
      back[Symbol.dispose]()
    }
    const phone = await ticketFor(uid)
    const taken = await dialled(phone)
    await says(taken, 'phone')
    {
      using woken = await dialled(await ticketFor(uid, laptop))
      expect(await woken.closed).toBe(Closing.moved)
      expect(woken.news).toEqual([])
    }
    await says(taken, 'still')
    // Nor while it waits for the phone, which comes back by itself, too.
    taken[Symbol.dispose]()
    await isSoon(uid, { active: true, held: true })
    {
      using woken = await dialled(await ticketFor(uid, laptop))
      expect(await woken.closed).toBe(Closing.moved)
    }
    using back = await dialled(await ticketFor(uid, phone))
    await says(back, 'again')
    // A press on the laptop moves it, and then the phone stays away.
    using pressed = await dialled(await ticketFor(uid))
    await says(pressed, 'pressed')
    expect(await back.closed).toBe(Closing.moved)
    using late = await dialled(await ticketFor(uid, phone))
    expect(await late.closed).toBe(Closing.moved)
    pressed.type('exit\r')
    expect(await pressed.closed).toBe(Closing.done)
  })

  test('waits for as long as the namespace says when it is lost, and what is held keeps its time', async () => {
    const owner = await apiOf(quarters(), 'owner')
    const hold = async (hold_sessions: number) => {
      await owner.namespaces.edit({
        params: { tenant: sample.tenant },
        body: { settings: { hold_sessions } },
      })
      // Until the news of it have reached every session.
      await quarters().service.rooms.background.settled()
    }
    const waits_s = async (uid: string): Promise<number> => {
      const { held_until } = (await owner.sessions.get({ params: { uid } })).body
      return (Date.parse(held_until!) - Date.now()) / 1_000
    }
    const [lost, uid] = await shell()
    try {
      await hold(7_200)
      lost[Symbol.dispose]()
      await isSoon(uid, { active: true, held: true })
      expect(await waits_s(uid)).toBeGreaterThan(3_600)
      await hold(600)
      expect(await waits_s(uid)).toBeGreaterThan(3_600)
      await hold(0)
      await isSoon(uid, { active: false, held: false })
    } finally {
      await hold(1_800)
    }
  })

  test('is nobody else’s to continue, whatever their role', async () => {
    const [lost, uid] = await shell()
    lost[Symbol.dispose]()
    await isSoon(uid, { active: true, held: true })
    for (const who of ['owner', 'operator'] as const)
      await expect(attach(uid, {}, who)).rejects.toMatchObject({ status: 404 })
    const owner = await apiOf(quarters(), 'owner')
    await owner.sessions.close({ params: { uid }, body: { device: quarters().agent.uid } })
    await isSoon(uid, { active: false, held: false })
    await expect(attach(uid)).rejects.toMatchObject({ status: 404 })
  })
})
