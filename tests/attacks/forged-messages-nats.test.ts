// A stranger who reaches NATS, and nothing else. What nodes say there is not for strangers: they cannot read
// it, cannot say it themselves, cannot say it again, and cannot say it elsewhere. A stranger who could got
// tickets for the files of devices by repeating one node's question to another.
import { once } from 'node:events'
import net from 'node:net'
import { afterAll, beforeAll, expect, test, vi } from 'vitest'
import { sample } from '@hawser/contract/examples'
import { dial } from '../clients/web.ts'
import { startCluster, type Cluster } from '../cluster/cluster.ts'
import { eventually, until } from '../harness/eventually.ts'
import { startOldAgent, type OldAgent } from '../harness/old-agent.ts'
import type { Service } from '../harness/service.ts'

vi.setConfig({ testTimeout: 120_000, hookTimeout: 120_000 })

interface Heard {
  readonly subject: string
  readonly reply: string
  readonly body: Buffer
}

/** The bytes of the NATS protocol, as anyone with a socket can send them. */
class Stranger implements Disposable {
  readonly heard: Heard[] = []
  readonly #socket: net.Socket
  #rest = Buffer.alloc(0)

  private constructor(socket: net.Socket) {
    this.#socket = socket
    socket.on('data', (chunk: Buffer) => this.#read(chunk))
  }

  static async on(url: string): Promise<Stranger> {
    const socket = net.connect(Number(new URL(url).port), '127.0.0.1')
    await once(socket, 'connect')
    const stranger = new Stranger(socket)
    socket.write('CONNECT {"verbose":false,"pedantic":false,"echo":false}\r\nSUB > 1\r\nPING\r\n')
    return stranger
  }

  say(subject: string, body: Buffer | string, reply = ''): void {
    const bytes = Buffer.from(body)
    this.#socket.write(
      Buffer.concat([
        Buffer.from(`PUB ${subject} ${reply && `${reply} `}${bytes.length}\r\n`),
        bytes,
        Buffer.from('\r\n'),
      ]),
    )
  }

  #read(chunk: Buffer): void {
    this.#rest = Buffer.concat([this.#rest, chunk])
    for (;;) {
      const end = this.#rest.indexOf('\r\n')
      if (end < 0) return
      const words = this.#rest.toString('latin1', 0, end).split(' ')
      if (words[0] !== 'MSG' && words[0] !== 'HMSG') {
        if (words[0] === 'PING') this.#socket.write('PONG\r\n')
        this.#rest = this.#rest.subarray(end + 2)
        continue
      }
      const size = Number(words.at(-1))
      if (this.#rest.length < end + 4 + size) return
      const named = words[0] === 'MSG' ? words.length === 5 : words.length === 6
      this.heard.push({
        subject: words[1] ?? '',
        reply: named ? (words[3] ?? '') : '',
        body: Buffer.from(this.#rest.subarray(end + 2, end + 2 + size)),
      })
      this.#rest = this.#rest.subarray(end + 4 + size)
    }
  }

  [Symbol.dispose](): void {
    this.#socket.destroy()
  }
}

const opened = new AsyncDisposableStack()
let cluster: Cluster
let agent: OldAgent
let session: string
let stranger: Stranger
const node = (at: number): Service => cluster.nodes[at]!
const api = async (at: number) => node(at).api({ token: await cluster.world.token('owner') })
const refusals = () => cluster.nodes.map(({ rooms }) => rooms.bus.refused).reduce((sum, one) => sum + one, 0)
/** The terminal lives on the first node, so that the second one has to ask it for tickets. */
beforeAll(async () => {
  cluster = opened.use(await startCluster(2))
  agent = opened.use(await startOldAgent(node(0), { version: 2, tenant_id: sample.tenant }))
  await until(() => node(0).reach.tunnels.size === 1)
  const owner = await api(0)
  await owner.devices.accept({ params: { uid: agent.uid } })
  const { token } = (
    await owner.terminals.open({ body: { device: agent.uid, username: 'root', password: 'pilot' } })
  ).body
  const shell = opened.use(await dial(node(0), token))
  session = await shell.hear('session')
  stranger = opened.use(await Stranger.on(cluster.nats.url))
})
afterAll(() => opened.disposeAsync())

/** What one node asks another when a person opens the files beside a terminal. */
async function overhearQuestion(): Promise<{ question: Heard; answer: Heard; token: string }> {
  const before = stranger.heard.length
  const { token } = (await (await api(1)).terminals.files({ body: { session } })).body
  const question = await eventually(() => {
    const found = stranger.heard
      .slice(before)
      .find(({ subject }) => subject.endsWith(`held.terminal.${session}`))
    expect(found).toBeDefined()
    return found!
  })
  const answer = await eventually(() => {
    const found = stranger.heard.slice(before).find(({ subject }) => subject === question.reply)
    expect(found).toBeDefined()
    return found!
  })
  return { question, answer, token }
}

test('a stranger who listens reads neither questions nor answers', async () => {
  const { question, answer, token } = await overhearQuestion()
  expect(question.body.toString('latin1')).not.toContain(sample.owner.id)
  expect(answer.body.toString('latin1')).not.toContain(token)
})

test('a question that is repeated is not answered', async () => {
  const { question } = await overhearQuestion()
  const before = refusals()
  stranger.say(question.subject, question.body, 'stranger.inbox')
  await eventually(() => expect(refusals()).toBeGreaterThan(before))
  // The node answers the question of a node that was asked later, so it would have answered the stranger by
  // now.
  await overhearQuestion()
  expect(stranger.heard.filter(({ subject }) => subject === 'stranger.inbox')).toEqual([])
  expect(node(0).log()).toMatch(/"event":"nats\.refused".*a message came a second time/)
})

test('a question that a stranger makes up is not answered', async () => {
  const subject = (await overhearQuestion()).question.subject
  const before = refusals()
  const holder = {
    user_id: sample.owner.id,
    username: sample.owner.username,
    tenant_id: sample.tenant,
    epoch: 0,
  }
  stranger.say(subject, JSON.stringify(holder), 'stranger.inbox')
  stranger.say(subject, '', 'stranger.inbox')
  stranger.say(subject.replace('terminal.', 'session.'), '', 'stranger.inbox')
  await eventually(() => expect(refusals()).toBeGreaterThanOrEqual(before + 3))
  await overhearQuestion()
  expect(stranger.heard.filter(({ subject: to }) => to === 'stranger.inbox')).toEqual([])
})

test('a question that is sent to another name, and news under another title, do not count', async () => {
  const { question } = await overhearQuestion()
  const prefix = question.subject.split('.held.')[0]!
  const before = refusals()
  stranger.say(`${prefix}.held.session.${session}`, question.body, 'stranger.inbox')
  stranger.say(`${prefix}.news.device.changed`, question.body)
  await eventually(() => expect(refusals()).toBeGreaterThanOrEqual(before + 3))
  expect(stranger.heard.filter(({ subject }) => subject === 'stranger.inbox')).toEqual([])
})

test('news that a stranger makes up or repeats change nothing', async () => {
  const prefix = (await overhearQuestion()).question.subject.split('.held.')[0]!
  const from = stranger.heard.length
  const owner = await api(1)
  await owner.devices.update({ params: { uid: agent.uid }, body: { name: 'derrick' } })
  const news = await eventually(() => {
    const found = stranger.heard
      .slice(from)
      .find(({ subject }) => subject === `${prefix}.news.device.changed`)
    expect(found).toBeDefined()
    return found!
  })
  expect(news.body.toString('latin1')).not.toContain(agent.uid)
  const before = refusals()
  stranger.say(news.subject, news.body)
  stranger.say(`${prefix}.news.session.closed`, JSON.stringify({ tenant_id: sample.tenant, uid: session }))
  stranger.say(
    `${prefix}.news.device.changed`,
    JSON.stringify({ tenant_id: sample.tenant, uid: agent.uid, status: 'gone' }),
  )
  // Both nodes hear all three.
  await eventually(() => expect(refusals()).toBe(before + 6))
  expect(node(0).reach.sessions.has(session)).toBe(true)
  expect(node(0).reach.tunnels.find(agent.uid)).toBeDefined()
  const log = cluster.nodes.map((one) => one.log()).join('')
  expect(log).toMatch(/"event":"nats\.refused".*not from a node that has the master key/)
  // The node that said it hears it again as its own.
  expect(log).toMatch(/"event":"nats\.refused".*a message of this node was sent back to it/)
})
