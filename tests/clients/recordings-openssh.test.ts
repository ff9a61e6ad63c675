// Recordings of sessions of the real OpenSSH client: what is played is what the client saw, nothing more and
// nothing less, who may see it, and watching while it goes on.
import { existsSync, readdirSync } from 'node:fs'
import path from 'node:path'
import { describe, expect, test } from 'vitest'
import { sample } from '@hawser/contract/examples'
import { dialWebSocket } from '@hawser/mux'
import { openTerminal } from './terminal.ts'
import { eventually, sharedWay } from './way.ts'

const way = sharedWay()
const played = async (uid: string) => (await way.owner.sessions.play({ params: { uid } })).body
const over = (uid: string) =>
  eventually(async () => {
    const { body } = await way.owner.sessions.get({ params: { uid } })
    expect(body.active).toBe(false)
    return body
  })
const setRecording = (session_record: boolean) =>
  way.owner.namespaces.setSessionRecord({ params: { tenant: sample.tenant }, body: { session_record } })
const journals = (uid: string): string[] => {
  const where = path.join(way.service.folder, 'recordings', sample.tenant, uid.slice(0, 2), uid)
  return existsSync(where) ? readdirSync(where) : []
}
const openShell = () =>
  openTerminal('ssh', [...way.args(), `${way.sshid()}@127.0.0.1`], { columns: 90, rows: 30 })

describe('what is played', () => {
  test('is what the client saw, with the announcement, the sizes and the times', async () => {
    const announced = 'Mind the gap.'
    const edit = (connection_announcement: string) =>
      way.owner.namespaces.edit({
        params: { tenant: sample.tenant },
        body: { settings: { connection_announcement } },
      })
    await edit(announced)
    using terminal = openShell()
    await terminal.until(/Mind the gap/)
    terminal.type('unset HISTFILE; printf "\\xc3\\xa9\\xff %s\\n" gr\\eat; echo to"ld"\n')
    await terminal.until(/told/)
    terminal.resize(101, 33)
    terminal.type('until [ "$(stty size)" = "33 101" ]; do sleep 0.05; done; echo si"zed"; exit 3\n')
    expect(await terminal.ended).toBe(3)
    await edit('')
    const { uid } = await way.newest()
    expect(await over(uid)).toMatchObject({ recorded: true })
    const frames = await played(uid)
    const shown = frames.map(({ message }) => message).join('')
    expect(shown).toContain(announced)
    // The client puts its own last line behind it.
    expect(terminal.shown().startsWith(shown)).toBe(true)
    expect(frames[0]).toMatchObject({ uid, tenant_id: sample.tenant, width: 90, height: 30 })
    expect(frames.at(-1)).toMatchObject({ width: 101, height: 33 })
    expect(frames.map(({ time }) => time)).toEqual(frames.map(({ time }) => time).toSorted())

    const cast = await way.owner.sessions.cast({ params: { uid } })
    expect(cast.headers.get('content-disposition')).toMatch(/^attachment; filename="[0-9a-f]{12}\.cast"$/)
    const [first, ...lines] = cast.body
      .trimEnd()
      .split('\n')
      .map((line) => JSON.parse(line) as unknown)
    expect(first).toMatchObject({ version: 2, width: 90, height: 30, env: { TERM: 'xterm-256color' } })
    const events = lines as [number, string, string][]
    expect(events.flatMap(([, kind, text]) => (kind === 'o' ? [text] : [])).join('')).toBe(shown)
    expect(events).toContainEqual([expect.any(Number), 'r', '101x33'])
    expect(events.filter(([, kind]) => kind === 'm').map(([, , text]) => text)).toEqual([
      'start',
      'shell',
      'exit 3',
    ])
  })

  test('is nothing of what was typed without an echo', async () => {
    using terminal = openShell()
    terminal.type('unset HISTFILE; read -rsp "the wo""rd: " word; echo than"ks"; exit\n')
    await terminal.until(/the word: /)
    terminal.type('open-sesame\n')
    await terminal.until(/thanks/)
    await terminal.ended
    const { uid } = await way.newest()
    await over(uid)
    const shown = JSON.stringify(await played(uid))
    expect([shown.includes('the word: '), shown.includes('open-sesame')]).toEqual([true, false])
  })

  test('is no secret of a known shape: not printed, not typed, not of a command line; others see it', async () => {
    const word = 'ghp_' + 'x1Y2'.repeat(9)
    const edit = (settings: object) =>
      way.owner.namespaces.edit({ params: { tenant: sample.tenant }, body: { settings } })
    await edit({ mask_after: ['ticket#'] })
    using terminal = openShell()
    await terminal.until(/\$ |# /)
    terminal.type(`unset HISTFILE; echo ${word} ticket#4711; exit\n`)
    await terminal.ended
    // The person has it on the screen, as typed and as printed.
    expect(terminal.shown().split(word.slice(4)).length).toBeGreaterThan(2)
    const { uid } = await way.newest()
    const { secrets_masked } = await over(uid)
    expect(secrets_masked).toBeGreaterThanOrEqual(4)
    const shown = (await played(uid)).map(({ message }) => message).join('')
    expect(shown).toContain(`ghp_${'*'.repeat(36)} ticket#****`)
    expect([shown.includes('x1Y2'), shown.includes('4711')]).toEqual([false, false])

    await way.ssh('echo --password hunter2', { flags: ['-tt'] })
    const command = await way.newest()
    await over(command.uid)
    const cast = (await way.owner.sessions.cast({ params: { uid: command.uid } })).body
    expect([cast.includes('exec echo --password *******'), cast.includes('hunter2')]).toEqual([true, false])

    await edit({ mask_secrets: false, mask_after: [] })
    await way.ssh(`echo ${word}`, { flags: ['-tt'] })
    await edit({ mask_secrets: true })
    const open = await way.newest()
    expect(await over(open.uid)).toMatchObject({ secrets_masked: 0 })
    expect(JSON.stringify(await played(open.uid))).toContain(word)
  })

  test('is nothing for a session without a terminal', async () => {
    await way.ssh('echo quiet')
    const { uid } = await way.newest()
    expect(await over(uid)).toMatchObject({ recorded: false })
    expect(await played(uid)).toEqual([])
    expect(journals(uid)).toEqual([])
  })

  test('is nothing while the namespace does not record, and stops when it is switched off', async () => {
    using before = openShell()
    before.type('unset HISTFILE; echo fi"rst"\n')
    await before.until(/first/)
    const { uid: going } = await way.newest()
    await setRecording(false)
    await eventually(() => expect(way.service.rooms.recordings.live(sample.tenant, going)).toEqual([]))
    before.type('echo unse"en"; exit\n')
    await before.ended
    const { stdout } = await way.ssh('echo nothing', { flags: ['-tt'] })
    expect(stdout.toString()).toContain('nothing')
    const { uid } = await way.newest()
    expect(uid).not.toBe(going)
    expect(await over(uid)).toMatchObject({ recorded: false })
    expect(journals(uid)).toEqual([])
    const shown = JSON.stringify(await played(going))
    expect([shown.includes('first'), shown.includes('unseen')]).toEqual([true, false])
    await setRecording(true)
  })
})

describe('a recording', () => {
  test('is not there for another namespace, and goes with all of its files when it is deleted', async () => {
    await way.ssh('echo kept', { flags: ['-tt'] })
    const { uid } = await way.newest()
    await over(uid)
    expect(journals(uid)).toEqual(['0.journal'])
    const stranger = way.service.api({ token: await way.world.token('stranger') })
    for (const call of [stranger.sessions.play, stranger.sessions.cast, stranger.sessions.removeRecording])
      await expect(call({ params: { uid } })).rejects.toMatchObject({ status: 404 })
    await way.owner.sessions.removeRecording({ params: { uid } })
    expect(journals(uid)).toEqual([])
    expect(await played(uid)).toEqual([])
    expect(await over(uid)).toMatchObject({ recorded: false })
  })

  test('that is going on is not deleted', async () => {
    using terminal = openShell()
    terminal.type('unset HISTFILE; echo bu"sy"\n')
    await terminal.until(/busy/)
    const { uid } = await way.newest()
    await expect(way.owner.sessions.removeRecording({ params: { uid } })).rejects.toMatchObject({
      status: 409,
    })
    terminal.type('exit\n')
    await terminal.ended
    await over(uid)
    await eventually(() => way.owner.sessions.removeRecording({ params: { uid } }))
  })
})

describe('watching', () => {
  const address = (uid: string, query = '') =>
    `${way.service.url.replace('http', 'ws')}/api/sessions/${uid}/live${query}`

  test('shows the screen, then everything that comes, then that it is over', async () => {
    using terminal = openShell()
    terminal.type('unset HISTFILE; echo ear"lier"\n')
    await terminal.until(/earlier/)
    const { uid } = await way.newest()
    const { token } = (await way.owner.sessions.ticket({ params: { uid } })).body
    const socket = await dialWebSocket(address(uid, `?ticket=${token}`))
    const said: Record<string, unknown>[] = []
    const shown: string[] = []
    socket.on('message', (bytes, isBinary) => {
      const text = (bytes as Buffer).toString()
      if (isBinary) shown.push(text)
      else said.push(JSON.parse(text) as Record<string, unknown>)
    })
    const closed = new Promise<number>((resolve) => socket.once('close', resolve))
    socket.resume()
    await eventually(() => expect(shown[0]).toContain('earlier'))
    terminal.resize(70, 20)
    await eventually(() => expect(said).toContainEqual({ kind: 'resize', width: 70, height: 20 }))
    terminal.type('echo la"ter"; exit\n')
    await terminal.ended
    expect(await closed).toBe(1000)
    expect(shown.slice(1).join('')).toContain('later')
    expect(said[0]).toEqual({ kind: 'screen', width: 90, height: 30 })
    expect(said.at(-1)).toEqual({ kind: 'end', message: 'The session is over.' })
  })

  test('is for those who may play the recording, and only while there is something to watch', async () => {
    await way.ssh('echo done', { flags: ['-tt'] })
    const { uid } = await way.newest()
    await over(uid)
    const refusal = async (headers: Record<string, string>, to = uid) =>
      dialWebSocket(address(to), { headers }).then(
        () => 101,
        (error: { status?: number }) => error.status,
      )
    const token = async (who: Parameters<typeof way.world.token>[0]) => ({
      authorization: `Bearer ${await way.world.token(who)}`,
    })
    expect(await refusal({})).toBe(401)
    expect(await refusal({ authorization: 'Bearer none' })).toBe(401)
    expect(await refusal(await token('operator'))).toBe(403)
    expect(await refusal(await token('stranger'))).toBe(404)
    expect(await refusal(await token('owner'))).toBe(404)
    expect(await refusal(await token('owner'), 'f'.repeat(64))).toBe(404)
  })
})
