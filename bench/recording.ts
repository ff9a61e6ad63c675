// The cost of recording, and the speed of recordings: each figure with recording against the same without, in
// turns, through gateway, tunnel and agent on this machine; and a recording of a gigabyte that is opened and
// seeked in. Words choose a part:
//   npm run bench -- recording throughput echo viewers seek console     parts, all unless stated
//   … size=64 rounds=5 keys=300 viewers=16 large=1024 profile=<path>    MiB, turns, keystrokes, who watches, MiB, CPU profiles
// The output goes over a terminal, because only that is recorded, so its throughput is a terminal's. The
// large recording is read in this process, by what answers the player, from files that the system has in
// memory if it has room for them.
import { generateKeyPairSync, randomInt } from 'node:crypto'
import { globSync, mkdtempSync, readFileSync, rmSync, statSync } from 'node:fs'
import net from 'node:net'
import os from 'node:os'
import path from 'node:path'
import { setTimeout as wait } from 'node:timers/promises'
import { gzipSync } from 'node:zlib'
import { client, type Client } from '@hawser/contract/client'
import { dialWebSocket } from '@hawser/mux'
import { ensureConsole } from '../packages/console.ts'
import { consoleFolder } from '../packages/served.ts'
import { diskStorage } from '../server/src/recording/storage/disk.ts'
import { keyFrom } from '../server/src/recording/key.ts'
import { recordings } from '../server/src/recording/recordings.ts'
import { clientAlgorithms, connect, startSession, type Channel, type Connection } from '../ssh/src/index.ts'
import { buildWorld, signIn, type Agent, type Settings, type World } from './access-world.ts'
import { tenant_id } from './fleet.ts'
import { atLeast, below, compare, inTurns, line, median, percentile, single, table, type Row } from './kit.ts'
import { clientArgs, kex, plainLogin, runClient } from './openssh.ts'

const parts = ['throughput', 'echo', 'viewers', 'seek', 'console'] as const
const mib = 1024 * 1024
const keysInTurn = 25
const say = (text: string): void => void process.stderr.write(`${text}\n`)

export default async function recording(...words: string[]): Promise<void> {
  const option = (name: string): string | undefined =>
    words.find((word) => word.startsWith(`${name}=`))?.slice(name.length + 1)
  const number = (name: string, usual: number): number => Math.max(1, Number(option(name) ?? usual) || usual)
  const named = words.filter((word) => !word.includes('='))
  const unknown = named.find((word) => !(parts as readonly string[]).includes(word))
  if (unknown !== undefined) throw new Error(`recording: "${unknown}" is not a part (${parts.join(', ')})`)
  const wants = (part: (typeof parts)[number]): boolean => named.length === 0 || named.includes(part)

  const folder = mkdtempSync(path.join(os.tmpdir(), 'hawser-bench-'))
  process.once('exit', () => rmSync(folder, { recursive: true, force: true }))
  for (const signal of ['SIGINT', 'SIGTERM'] as const) process.once(signal, () => process.exit(130))
  const settings: Settings = { folder, before: plainLogin(folder), profiles: option('profile') }

  const rows: Row[] = []
  if (wants('throughput') || wants('echo') || wants('viewers')) {
    await using world = await buildWorld(settings)
    const agent = await world.startAgent('gantry')
    const api = await signedIn(world.server.port)
    if (wants('throughput'))
      rows.push(...(await throughput(settings, world, agent, api, number('size', 64), number('rounds', 5))))
    if (wants('echo')) rows.push(...(await echoes(settings, agent, api, number('keys', 300))))
    if (wants('viewers'))
      rows.push(...(await viewers(world, agent, api, number('viewers', 16), number('keys', 300))))
  }
  if (wants('seek')) rows.push(...(await seeks(folder, number('large', 1024))))
  if (wants('console')) rows.push(await firstLoad())
  table(rows)
}

interface Signed extends Client {
  readonly token: string
}

async function signedIn(port: number): Promise<Signed> {
  const token = await signIn(port)
  return { ...client({ url: `http://127.0.0.1:${port}`, token }), token }
}

const record = (api: Signed, session_record: boolean) =>
  api.namespaces.setSessionRecord({ params: { tenant: tenant_id }, body: { session_record } })

const kept_bytes = (folder: string): number =>
  globSync('data/recordings/**/*.journal', { cwd: folder }).reduce(
    (sum, file) => sum + statSync(path.join(folder, file)).size,
    0,
  )

async function throughput(
  { folder }: Settings,
  { server }: World,
  agent: Agent,
  api: Signed,
  size: number,
  rounds: number,
): Promise<Row[]> {
  say(`showing ${size} MiB on a terminal`)
  const cpu: Record<'on' | 'off', number[]> = { on: [], off: [] }
  const run = (mibs: number) =>
    runClient(['-tt', ...clientArgs(agent.through), `head -c ${mibs * mib} /dev/zero | tr '\\0' 'x'`])
  const side = (which: 'on' | 'off') => async (): Promise<number> => {
    await record(api, which === 'on')
    const before = server.cpu_s()
    const took_ms = await run(size)
    cpu[which].push(((server.cpu_s() - before) * 1000) / size)
    return size / (took_ms / 1000)
  }
  const sides = { on: side('on'), off: side('off') }
  for (const warm of Object.values(sides)) await warm()
  cpu.on = []
  cpu.off = []
  const before = kept_bytes(folder)
  const figures = await inTurns(sides, rounds)
  const compared = compare(figures.on, figures.off)
  return [
    line('output on a terminal, recorded against not', 'MiB/s', compared, atLeast(0.9, compared.ratio)),
    line('output on a terminal: processor of the server', 'ms/MiB', compare(cpu.on, cpu.off)),
    single(
      'bytes on disk per byte of output, a lot at once',
      '',
      (kept_bytes(folder) - before) / (rounds * size * mib),
    ),
  ]
}

interface Typist extends AsyncDisposable {
  /** Until one key is shown, in milliseconds. */
  key(): Promise<number>
}

/** A person at a terminal with echo. */
async function openTypist({ through }: Agent): Promise<Typist> {
  const connection: Connection = await connect(
    net.connect({ port: through.port, host: '127.0.0.1', noDelay: true }),
    {
      user: through.user,
      proofs: [{ method: 'publickey', key: through.keys.key }],
      checkHostKey: () => true,
      algorithms: { ...clientAlgorithms, kex: [kex] },
    },
  )
  const size = { columns: 80, rows: 24, width: 0, height: 0 }
  const { channel } = await startSession(connection, {
    program: { type: 'exec', command: 'stty raw echo; echo ready; cat >/dev/null' },
    pty: { terminal: 'xterm', ...size, modes: new Map() },
  })
  let said = ''
  while (!said.includes('ready')) said += await next(channel)
  return {
    async key() {
      const started = performance.now()
      await channel.write(Buffer.from('x'))
      await next(channel)
      return performance.now() - started
    },
    [Symbol.asyncDispose]: () => connection.end(),
  }
}

async function next(channel: Channel): Promise<string> {
  const data = await channel.read()
  if (!data) throw new Error('the session ended')
  return Buffer.from(data.bytes).toString()
}

/** One session, recorded and not in turns: the switch of the namespace counts at once. */
async function echoes({ folder }: Settings, agent: Agent, api: Signed, keys: number): Promise<Row[]> {
  say(`typing ${keys} keys`)
  await record(api, true)
  await using typist = await openTypist(agent)
  await newest(api, true)
  const times: Record<'on' | 'off', number[]> = { on: [], off: [] }
  const rounds = Math.ceil(keys / keysInTurn)
  let typed = 0
  const before = kept_bytes(folder)
  for (let round = 0; round < rounds + 2; round++)
    for (const which of round % 2 === 0 ? (['on', 'off'] as const) : (['off', 'on'] as const)) {
      await record(api, which === 'on')
      await wait(100)
      const some: number[] = []
      for (let key = 0; key < keysInTurn; key++) some.push(await typist.key())
      if (which === 'on') typed += keysInTurn
      // The first rounds compile the code.
      if (round >= 2) times[which].push(...some)
    }
  const p95 = (values: readonly number[]): number[] => [percentile(Float64Array.from(values).toSorted(), 95)]
  await record(api, false)
  await wait(200)
  return [
    line(
      'a key until it is shown, recorded against not, median',
      'ms',
      compare([median(times.on)], [median(times.off)]),
    ),
    line('a key until it is shown, recorded against not, p95', 'ms', compare(p95(times.on), p95(times.off))),
    single('added to a key by recording, median', 'ms', median(times.on) - median(times.off)),
    single('bytes on disk per byte of output, key by key', '', (kept_bytes(folder) - before) / typed),
  ]
}

/** The newest session, once it is recorded, or known to be unrecorded. */
async function newest(api: Signed, recorded: boolean): Promise<string> {
  for (let tries = 0; tries < 200; tries++) {
    const [session] = (await api.sessions.list({ query: { per_page: 1 } })).body
    if (session && (session.recorded || !recorded)) return session.uid
    await wait(25)
  }
  throw new Error('the session is not recorded')
}

async function viewers(
  { server }: World,
  agent: Agent,
  api: Signed,
  count: number,
  keys: number,
): Promise<Row[]> {
  say(`${count} viewers`)
  await record(api, true)
  await using typist = await openTypist(agent)
  const uid = await newest(api, true)
  const alone: number[] = []
  for (let key = 0; key < keys; key++) alone.push(await typist.key())
  const open = async () => {
    const started = performance.now()
    const headers = { authorization: `Bearer ${api.token}` }
    const socket = await dialWebSocket(`ws://127.0.0.1:${server.port}/api/sessions/${uid}/live`, { headers })
    const state = { socket, bytes: 0, first_ms: 0, over: false }
    socket.on('message', (bytes, isBinary) => {
      if (!isBinary) return
      state.first_ms ||= performance.now() - started
      state.bytes += (bytes as Buffer).length
    })
    socket.on('close', () => (state.over = true))
    socket.resume()
    return state
  }
  const watching = await Promise.all(Array.from({ length: count }, open))
  while (watching.some(({ first_ms, over }) => first_ms === 0 && !over)) await wait(5)
  const watched: number[] = []
  for (let key = 0; key < keys; key++) watched.push(await typist.key())
  const stayed = watching.filter(({ over }) => !over)
  for (const { socket } of watching) socket.close()
  return [
    single(`viewers at a time of one session, of ${count}`, '', stayed.length),
    single('the screen for one who comes, median', 'ms', median(stayed.map(({ first_ms }) => first_ms))),
    line(
      `a key until it is shown, ${stayed.length} viewers against none, median`,
      'ms',
      compare([median(watched)], [median(alone)]),
    ),
  ]
}

/** The output of a build or a log: lines, some of them in colours. */
const lines = (at: number): string =>
  `\u001b[${31 + (at % 6)}m[${at}]\u001b[0m compiling module-${at} ${'·'.repeat(at % 40)}\r\n`
/** The output of a full-screen program: here and there, without scrolling. */
const drawing = (at: number): string =>
  `\u001b[${1 + (at % 40)};${1 + (at % 70)}H\u001b[${31 + (at % 6)}m${'#'.repeat(at % 40)}\u001b[0m ${at}`

async function seeks(folder: string, size: number): Promise<Row[]> {
  const rows: Row[] = []
  for (const [kind, piece] of Object.entries({ lines, drawing })) {
    say(`recording ${size} MiB of ${kind}`)
    rows.push(...(await seeksIn(path.join(folder, kind), `recording of ${size} MiB, ${kind}`, size, piece)))
    rmSync(path.join(folder, kind), { recursive: true })
  }
  return rows
}

async function seeksIn(
  folder: string,
  what: string,
  size: number,
  piece: (at: number) => string,
): Promise<Row[]> {
  const storage = diskStorage(folder)
  const key = keyFrom(generateKeyPairSync('ed25519').privateKey)
  const clock = { time: Date.now(), now: () => clock.time }
  const made = () => recordings({ storage, key, clock, onFailed: (error) => say(error.message) })
  const about = {
    tenant_id,
    session_uid: 'f'.repeat(64),
    device_uid: 'd'.repeat(64),
    username: 'root',
    term: 'xterm',
  }
  const writing = made()
  const large = await writing.begin({ ...about, width: 120, height: 40 })
  const chunk = Buffer.from(Array.from({ length: 400 }, (_, at) => piece(at)).join(''))
  const started = performance.now()
  let bytes = 0
  for (; bytes < size * mib; bytes += chunk.length) {
    await large.output(chunk)
    clock.time += 20
  }
  await large.finish()
  const took_s = (performance.now() - started) / 1000
  await writing[Symbol.asyncDispose]()
  const { name } = large
  const answer = async (room: ReturnType<typeof made>, at_ms: number): Promise<number> => {
    const before = performance.now()
    const { screen, events } = await room.part(name, { at_ms })
    // As it is sent.
    const sent = events.map((one) => ('bytes' in one ? one.bytes.toString('base64') : one))
    JSON.stringify({ screen: screen.toString('base64'), events: sent })
    return performance.now() - before
  }
  const opens: number[] = []
  const found: number[] = []
  for (let round = 0; round < 20; round++) {
    // A new one each time, without earlier state.
    await using room = made()
    const before = performance.now()
    const { duration_ms } = await room.facts(name)
    await answer(room, 0)
    opens.push(performance.now() - before)
    for (let seek = 0; seek < 5; seek++) found.push(await answer(room, randomInt(duration_ms)))
  }
  const p95 = percentile(Float64Array.from(found).toSorted(), 95)
  await using room = made()
  const before = performance.now()
  let at: number | undefined = 0
  while (at !== undefined) at = (await room.search(name, 'nowhere to be found', at)).next
  const searched_s = (performance.now() - before) / 1000
  return [
    single(`${what}: written at`, 'MiB/s', size / took_s),
    single(`${what}: open, median`, 'ms', median(opens), below(200, median(opens), 'ms')),
    single(`${what}: seek, median`, 'ms', median(found), below(200, median(found), 'ms')),
    single(`${what}: seek, p95`, 'ms', p95, below(200, p95, 'ms')),
    single(`${what}: searched through`, 'MiB/s', bytes / mib / searched_s),
  ]
}

async function firstLoad(): Promise<Row> {
  await ensureConsole()
  const built = consoleFolder()
  const html = readFileSync(path.join(built, 'index.html'), 'utf8')
  const files = [...html.matchAll(/(?:src|href)="\/(assets\/[^"]+)"/g)].map(([, file]) => file!)
  const bytes = files.reduce(
    (sum, file) => sum + gzipSync(readFileSync(path.join(built, file)), { level: 9 }).length,
    html.length,
  )
  return single('console: first load, compressed', 'KB', bytes / 1000, below(300, bytes / 1000, 'KB'))
}
