// For bench/attacks.ts: attacks by somebody who has an account. The attacker owns a namespace with a device
// that answers and shows what it likes, and uses it through the console's own doors. Bystanders are in
// another namespace.
import { setTimeout as wait } from 'node:timers/promises'
import { client, type Client } from '@hawser/contract/client'
import type { TerminalNews } from '@hawser/contract/terminals'
import { dialWebSocket } from '@hawser/mux'
import type { Session } from '@hawser/ssh'
import { Sftp } from '../ssh/src/sftp/protocol.ts'
import { startBreakingAgent } from '../tests/attacks/breaking-agent.ts'
import { lyingSftp, names } from '../tests/attacks/lying-sftp.ts'
import { startOldAgent, type OldAgent } from '../tests/harness/old-agent.ts'
import { crowd, going, type Attack, type Target } from './crowd.ts'

type WebSocket = Awaited<ReturnType<typeof dialWebSocket>>

const escape = '\u001b'
const largest = { cols: 1_000, rows: 500 }

/** A namespace of the attacker, with a rogue device. */
interface Rogue extends AsyncDisposable {
  readonly url: string
  readonly token: string
  readonly api: Client
  readonly device: Pick<OldAgent, 'uid'>
}

interface Device {
  readonly name: string
  readonly sftp?: ReturnType<typeof lyingSftp>
  /** The output of every program, which ends with it. */
  readonly output?: (session: Session) => AsyncIterable<string>
}

async function own({ httpPort, token }: Target) {
  const url = `http://127.0.0.1:${httpPort}`
  const owner = client({ url, token })
  const known = (await owner.namespaces.list({ query: {} })).body.find((one) => one.name === 'rogue')
  const { tenant_id } = known ?? (await owner.namespaces.create({ body: { name: 'rogue' } })).body
  const ownToken = (await owner.users.namespaceToken({ params: { tenant: tenant_id } })).body.token
  const api = client({ url, token: ownToken })
  await api.namespaces.edit({
    params: { tenant: tenant_id },
    body: { settings: { session_record: true, hold_sessions: 600 } },
  })
  return { url, token: ownToken, api, tenant_id }
}

async function rogue(target: Target, { name, sftp, output }: Device): Promise<Rogue> {
  const { url, token, api, tenant_id } = await own(target)
  const device = await startOldAgent(
    { url, api: (options = {}) => client({ url, ...options }) },
    {
      version: 2,
      tenant_id,
      hostname: name,
      ...(sftp && { sftp }),
      ...(output && { run: async (session) => show(session, output(session)) }),
    },
  )
  const [there] = (await api.devices.list({ query: { status: 'pending' } })).body
  if (there) await api.devices.accept({ params: { uid: there.uid } })
  return { url, token, api, device, [Symbol.asyncDispose]: () => device[Symbol.asyncDispose]() }
}

async function show(session: Session, output: AsyncIterable<string>): Promise<void> {
  for await (const text of output) await session.channel.write(Buffer.from(text))
  await session.exit(0)
}

async function dial(url: string, token: string, { cols, rows } = largest): Promise<WebSocket> {
  const address = `${url.replace('http', 'ws')}/ws/ssh?token=${token}&cols=${cols}&rows=${rows}`
  const socket = await dialWebSocket(address, { headers: { origin: url } })
  socket.on('error', () => undefined)
  return socket
}

/** A browser terminal on the rogue device with a busy program, and the uid of its session. */
async function terminal(
  { url, api, device }: Pick<Rogue, 'url' | 'api' | 'device'>,
  size = largest,
): Promise<{ socket: WebSocket; session: string }> {
  const body = { device: device.uid, username: 'root', password: 'pilot' }
  const socket = await dial(url, (await api.terminals.open({ body })).body.token, size)
  const session = Promise.withResolvers<string>()
  socket.once('close', () => session.reject(new Error('the terminal was refused')))
  const atWork = Promise.withResolvers<void>()
  let shown = 0
  socket.on('message', (data, binary) => {
    const text = binary ? '' : (data as Buffer).toString()
    if (text.startsWith('{"kind"')) {
      const news = JSON.parse(text) as TerminalNews
      if (news.kind === 'session') session.resolve(news.uid)
      return
    }
    // Output waits for a page to report its progress.
    shown += (data as Buffer).length
    atWork.resolve()
    socket.send(JSON.stringify({ kind: 'shown', bytes: shown }))
  })
  socket.resume()
  await Promise.race([atWork.promise, session.promise.then(() => wait(5_000))])
  return { socket, session: await session.promise }
}

/** The status of an answer; 0: the caller left before it came. */
async function get(url: string, token: string, path: string, patience_ms: number): Promise<number> {
  try {
    const { status } = await fetch(`${url}${path}`, {
      headers: { authorization: `Bearer ${token}` },
      signal: AbortSignal.timeout(patience_ms),
    })
    return status
  } catch {
    return 0
  }
}

/** An ended session with this output; made once for all rounds of an attack. */
async function recorded(it: Rogue, size = largest): Promise<string> {
  const [before] = (await it.api.sessions.list({ query: {} })).body
  if (before && !before.active) return before.uid
  const { socket, session } = await terminal(it, size)
  await new Promise((resolve) => void socket.once('close', resolve))
  while ((await it.api.sessions.get({ params: { uid: session } })).body.active) await wait(100)
  return session
}

/** Three names fill an answer. */
const longNames = lyingSftp((type, id) =>
  type === Sftp.readdir ? names(id, Array<string>(3).fill('n'.repeat(65_000))) : undefined,
)

export const memberAttacks = {
  'a device whose folders have long names': async function* (target, until) {
    await using it = await rogue(target, { name: 'names', sftp: longNames, output: idle })
    const { socket, session } = await terminal(it)
    try {
      yield* crowd(until, 4, async () => {
        const line = await dial(it.url, (await it.api.terminals.files({ body: { session } })).body.token)
        line.resume()
        line.send(JSON.stringify({ kind: 'list', path: '' }))
        const answer = new Promise<boolean>((resolve) => {
          line.once('message', (data) => resolve((data as Buffer).includes('"kind":"folder"')))
          line.once('close', () => resolve(false))
        })
        const given = await Promise.race([answer, wait(until - performance.now(), false)])
        line.terminate()
        return given
      })
    } finally {
      socket.terminate()
    }
  },

  'searches in one recording by who does not wait': async function* (target, until) {
    await using it = await rogue(target, { name: 'lines', output: manyLines })
    const uid = await recorded(it, { cols: 80, rows: 24 })
    const path = `/api/sessions/${uid}/recording/0/search?text=nowhere-to-be-found`
    yield* crowd(until, 60, async () => (await get(it.url, it.token, path, 500)) === 200)
  },

  'recordings whose commands move every row': async function* (target, until) {
    await using it = await rogue(target, { name: 'rows', output: movingRows })
    const uid = await recorded(it)
    const path = `/api/sessions/${uid}/recording/0?at=600000`
    yield* crowd(until, 8, async () => (await get(it.url, it.token, path, 60_000)) === 200)
  },

  'held screens full of combining marks': async function* (target, until) {
    await using it = await rogue(target, { name: 'marks', output: marks })
    for (let opened = 0; opened < 40 && going(until); opened += 1) {
      const { socket } = await terminal(it, { cols: 200, rows: 100 })
      await wait(100)
      socket.terminate()
      yield true
    }
    while (going(until)) await wait(100)
  },

  'an agent that continues and breaks a stream': async function* (target, until) {
    const { url, api, tenant_id } = await own(target)
    const service = { url, api: (options = {}) => client({ url, ...options }) }
    using agent = await startBreakingAgent(service, tenant_id, (uid) =>
      api.devices.accept({ params: { uid } }),
    )
    let told = 0
    while (going(until)) {
      const { socket } = await terminal({ url, api, device: agent })
      agent.begin()
      socket.send(Buffer.from('typed'))
      for (; going(until) && socket.readyState === socket.OPEN; await wait(100))
        for (; told < agent.resumes; told += 1) yield true
      socket.terminate()
    }
  },

  'held sessions that go on printing': async function* (target, until) {
    let printed_mib = 0
    async function* yes(): AsyncGenerator<string> {
      const lines = 'y\r\n'.repeat(10_000)
      for (;;) {
        yield lines
        printed_mib += lines.length / 1024 ** 2
      }
    }
    await using it = await rogue(target, { name: 'yes', output: yes })
    for (let opened = 0; opened < 4 && going(until); opened += 1)
      (await terminal(it, { cols: 80, rows: 24 })).socket.terminate()
    for (let told = 0; going(until); await wait(100)) for (; told < printed_mib; told += 1) yield true
  },
} satisfies Record<string, Attack>

async function* idle(session: Session): AsyncGenerator<string> {
  yield '$ '
  for await (const event of session.events) void event
}

async function* manyLines(): AsyncGenerator<string> {
  for (let at = 0; at < 400; at += 1) yield 'nothing of interest on this line of the log\r\n'.repeat(1_000)
}

async function* movingRows(): AsyncGenerator<string> {
  // Filled rows cost more to move.
  yield `${escape}[H${'x'.repeat(largest.cols * largest.rows)}${escape}[H`
  for (let at = 0; at < 8; at += 1) yield `${escape}M`.repeat(30_000)
}

async function* marks(session: Session): AsyncGenerator<string> {
  for (let row = 0; row < 100; row += 1) yield `a${'\u0301'.repeat(100)}`.repeat(200)
  for await (const event of session.events) void event
}
