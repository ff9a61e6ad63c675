// An engine that goes and comes back under people's hands, and one with many containers. Sessions end with a
// sentence, the connector says what is wrong, and everything is there again when the engine is, without
// anybody's help.
import { expect, test } from 'vitest'
import { sharedDock } from '../clients/dock.ts'
import { eventually } from '../clients/way.ts'

const dock = sharedDock({ tcp: true })

test('an engine is restarted under live sessions: they end with a sentence, and its containers come back', async () => {
  await dock.docker.container('ferry')
  const { uid } = await dock.connect({})
  const { uid: device } = await dock.accepted('ferry')
  await using terminal = dock.start('ferry', undefined, { flags: ['-tt'] })
  terminal.child.stdin.write('echo on""board\n')
  await terminal.until(/onboard\r\n/)
  await using command = dock.start('ferry', 'echo started; cat')
  await command.until(/started\n/)

  await dock.docker.kill()
  expect(await Promise.all([terminal.status, command.status])).toEqual([255, 255])
  for (const { stdout, stderr } of [terminal, command])
    expect(stdout() + stderr()).toContain('The connection to')
  const { status } = await dock.state(uid, 'failed')
  expect(status.message).toBe('The engine cannot be reached (ECONNREFUSED).')
  await dock.device('ferry', { online: false, status: 'accepted' })
  expect((await dock.ssh('ferry', 'true')).stderr).toContain('is offline or cannot be reached')
  await eventually(() => expect(dock.service.reach.sessions.size).toBe(0))

  await dock.docker.start()
  await dock.docker.docker('start', 'ferry')
  await eventually(async () => dock.state(uid, 'connected'))
  expect((await dock.device('ferry', { online: true, status: 'accepted' })).uid).toBe(device)
  expect((await dock.ssh('ferry', 'echo again')).stdout.toString()).toBe('again\n')
  // The records have all of them, and none is left open.
  const { body } = await dock.owner.sessions.list({ query: { per_page: 100 } })
  expect(body.filter((session) => session.device?.name === 'ferry' && session.active)).toEqual([])
  await dock.docker.docker('rm', '-f', 'ferry')
  await dock.owner.connectors.remove({ params: { uid } })
})

test('a container that is stopped under a live session ends it', async () => {
  await dock.docker.container('launch')
  const { uid } = await dock.connect({})
  await dock.accepted('launch')
  await using running = dock.start('launch', 'echo in; cat')
  await running.until(/in\n/)
  await dock.docker.docker('stop', 'launch')
  expect([137, 255]).toContain(await running.status)
  await dock.device('launch', { online: false })
  await dock.docker.docker('rm', '-f', 'launch')
  await dock.owner.connectors.remove({ params: { uid } })
})

test('fifty containers appear, are reached and go', async () => {
  const { uid } = await dock.connect({ accept: true })
  const names = Array.from({ length: 50 }, (_, number) => `barge-${number}`)
  const barges = async () => (await dock.devices()).filter(({ name }) => name.startsWith('barge-'))
  await inTurn(
    names,
    async (name) => void (await dock.docker.container(name, { flags: ['--hostname', name] })),
  )
  await eventually(async () => {
    const there = await barges()
    expect(there.filter(({ status, online }) => status === 'accepted' && online)).toHaveLength(50)
  })
  // All but five, so that there are some without a history.
  await inTurn(names.slice(5), async (name) => {
    const { status, stdout } = await dock.ssh(name, 'hostname')
    expect([status, stdout.toString()]).toEqual([0, `${name}\n`])
  })
  await dock.docker.docker('rm', '-f', ...names)
  await eventually(async () => {
    const left = await barges()
    expect(left.filter(({ online, status }) => online || status !== 'removed')).toEqual([])
    expect(left.map(({ name }) => name).toSorted()).toEqual(names.toSorted())
  })
  expect((await dock.state(uid, 'connected')).status.message).toBe('')
}, 240_000)

/** Four at a time. */
async function inTurn(all: readonly string[], work: (each: string) => Promise<void>): Promise<void> {
  const waiting = [...all]
  const one = async (): Promise<void> => {
    for (let next = waiting.shift(); next !== undefined; next = waiting.shift()) await work(next)
  }
  await Promise.all([one(), one(), one(), one()])
}
