// An API key does no more than its maker may. When the maker's role is lowered or the key expires, whoever has
// the key must not come back to the terminals that were opened with it.
import { afterAll, beforeAll, expect, test } from 'vitest'
import { sample } from '@hawser/contract/examples'
import type { Session } from '@hawser/contract/sessions'
import { openDesk, type Desk } from '../../cli/test/program.ts'
import { freePort, quietArgs } from '../../ssh/test/programs.ts'
import { eventually, sharedWay } from '../clients/way.ts'

const port = await freePort()
const way = sharedWay({
  HAWSER_URL: '',
  HAWSER_SSH: `127.0.0.1:${port}`,
  HAWSER_SSH_PUBLIC_PORT: String(port),
  HAWSER_SSH_KEEPALIVE: '1',
})
let desk: Desk
beforeAll(() => {
  desk = openDesk({ HAWSER_SERVER: way.service.url })
})
afterAll(() => desk[Symbol.dispose]())

const list = async (): Promise<Session[]> =>
  (await way.owner.sessions.list({ query: { active: true, device_uid: way.agent.uid } })).body
const isOver = async () => eventually(async () => expect(await list()).toEqual([]))

/** Carries ssh to the server, in a process that writes its id: killing it breaks the connection. */
const wire = `
  require('node:fs').writeFileSync(process.argv[2], String(process.pid))
  const socket = require('node:net').connect(Number(process.argv[3]), '127.0.0.1')
  process.stdin.pipe(socket).pipe(process.stdout)
`

/** A terminal that somebody with the key has opened and lost. */
async function leaveBehind(key: string): Promise<Session> {
  const [script, pid] = [way.where.write('wire.cjs', wire), way.where.file('wire.pid')]
  const options = quietArgs(port, `IdentityFile=${way.where.file('olga')}`, 'BatchMode=yes')
  const own = options.filter((word) => word !== '-p' && word !== String(port))
  const target = `${way.user.name}@${sample.namespace}.${way.agent.name}`
  const through = `ProxyCommand=${process.execPath} ${script} ${pid} ${port}`
  using terminal = desk.terminal(['ssh', '-o', through, ...own, target], { HAWSER_API_KEY: key })
  terminal.type('unset HISTFILE; stty -echo; echo rea""dy\n')
  await terminal.until(/ready\r\n/)
  process.kill(Number(way.where.read('wire.pid')), 'SIGKILL')
  return await eventually(async () => {
    const [one] = await list()
    expect(one).toMatchObject({ held: true, person: { kind: 'api-key' } })
    return one!
  })
}

test('a maker whose role is lowered takes along what is held for their keys, and for no others', async () => {
  await leaveBehind(sample.apiKey)
  const params = { tenant: sample.tenant, uid: sample.operator.id }
  await way.owner.namespaces.updateMember({ params, body: { role: 'observer' } })
  expect(await list()).toHaveLength(1)
  const maker = { tenant: sample.tenant, uid: sample.administrator.id }
  await way.owner.namespaces.updateMember({ params: maker, body: { role: 'operator' } })
  await isOver()
})

test('a key that is removed, and one whose maker is removed, take along what is held for them', async () => {
  await leaveBehind(sample.apiKey)
  await way.owner.apiKeys.remove({ params: { key: 'backup' } })
  await isOver()
  const params = { tenant: sample.tenant, uid: sample.administrator.id }
  await way.owner.namespaces.updateMember({ params, body: { role: 'administrator' } })
  const maker = way.service.api({ token: await way.world.token('administrator') })
  const { body } = await maker.apiKeys.create({ body: { name: 'next', expires_at: -1 } })
  await leaveBehind(body.id)
  await way.owner.namespaces.removeMember({ params })
  await isOver()
})

test('a key that expires takes along what is held for it', async () => {
  const { body } = await way.owner.apiKeys.create({ body: { name: 'short', expires_at: 30 } })
  await leaveBehind(body.id)
  const expires_in = Math.floor(way.service.clock.now() / 1_000) - 1
  await way.service.rooms.stores.of(sample.tenant).apiKeys.save('short', { expires_in })
  await isOver()
})
