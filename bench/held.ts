// The cost of holding sessions, and the speed of reattaching. Live sessions with and without it in
// turns, through gateway, tunnel and agent on this machine; the redraw of a screen in this process; and what
// held sessions take of the server's memory. Words choose a part:
//   npm run bench -- held throughput echo redraw memory      parts, all unless stated
//   … rounds=5 keys=300 count=500                            turns, keystrokes, held sessions
import { mkdtempSync, rmSync } from 'node:fs'
import net, { type Socket } from 'node:net'
import os from 'node:os'
import path from 'node:path'
import { setTimeout as wait } from 'node:timers/promises'
import { client, type Client } from '@hawser/contract/client'
import { terminalScreen, screens_bytes } from '../server/src/recording/terminal-screen.ts'
import { fairShare } from '../server/src/kit/fair-share.ts'
import { screenThread } from '../server/src/recording/screen-thread.ts'
import {
  clientAlgorithms,
  connect,
  generatePrivateKey,
  publicKeyLine,
  startSession,
  type Channel,
  type PrivateKey,
} from '../ssh/src/index.ts'
import { buildWorld, signIn, type Agent, type Settings, type World } from './access-world.ts'
import { collect } from './collect.ts'
import { tenant_id } from './fleet.ts'
import { atLeast, atMost, below, compare, inTurns, line, median, single, table, type Row } from './kit.ts'
import { clientArgs, kex, plainLogin, runClient } from './openssh.ts'

const parts = ['throughput', 'echo', 'redraw', 'memory'] as const
const keysInTurn = 25
/** A quiet server frees memory after one minute and after three (server/src/idle-memory.ts). */
const quiet_ms = 200_000
const say = (text: string): void => void process.stderr.write(`${text}\n`)

export default async function held(...words: string[]): Promise<void> {
  const number = (name: string, usual: number): number =>
    Math.max(1, Number(words.find((word) => word.startsWith(`${name}=`))?.slice(name.length + 1)) || usual)
  const named = words.filter((word) => !word.includes('='))
  const unknown = named.find((word) => !(parts as readonly string[]).includes(word))
  if (unknown !== undefined) throw new Error(`held: "${unknown}" is not a part (${parts.join(', ')})`)
  const wants = (part: (typeof parts)[number]): boolean => named.length === 0 || named.includes(part)

  const folder = mkdtempSync(path.join(os.tmpdir(), 'hawser-bench-'))
  process.once('exit', () => rmSync(folder, { recursive: true, force: true }))
  for (const signal of ['SIGINT', 'SIGTERM'] as const) process.once(signal, () => process.exit(130))
  const settings: Settings = { folder, before: plainLogin(folder), profiles: undefined }

  const rows: Row[] = []
  if (wants('redraw')) rows.push(...(await redraws()))
  if (wants('throughput') || wants('echo') || wants('memory')) {
    await using world = await buildWorld(settings)
    const agent = await world.startAgent('gantry')
    const { port } = world.server
    const api = client({ url: `http://127.0.0.1:${port}`, token: await signIn(port) })
    if (wants('throughput')) rows.push(await throughput(agent, api, number('rounds', 5)))
    if (wants('echo')) rows.push(await echoes(agent, api, number('keys', 300)))
    if (wants('memory')) rows.push(...(await memory(world, agent, api, number('count', 500))))
  }
  table(rows)
}

const hold = (api: Client, hold_sessions: number) =>
  api.namespaces.edit({ params: { tenant: tenant_id }, body: { settings: { hold_sessions } } })

async function throughput(agent: Agent, api: Client, rounds: number): Promise<Row> {
  say('showing a million lines on a terminal')
  const side = (seconds: number) => async (): Promise<number> => {
    await hold(api, seconds)
    return 1_000 / (await runClient(['-tt', ...clientArgs(agent.through), 'seq 1 1000000']))
  }
  const sides = { on: side(1_800), off: side(0) }
  for (const warm of Object.values(sides)) await warm()
  const figures = await inTurns(sides, rounds)
  const compared = compare(figures.on, figures.off)
  return line('`seq 1 1000000`, can be held against not', '1/s', compared, atLeast(0.8, compared.ratio))
}

/** In a terminal of our own client; returns its socket. */
async function open({ through }: Agent, command: string, key: PrivateKey = through.keys.key) {
  const socket = net.connect({ port: through.port, host: '127.0.0.1', noDelay: true })
  const connection = await connect(socket, {
    user: through.user,
    proofs: [{ method: 'publickey', key }],
    checkHostKey: () => true,
    algorithms: { ...clientAlgorithms, kex: [kex] },
  })
  const { channel } = await startSession(connection, {
    program: { type: 'exec', command },
    pty: { terminal: 'xterm', columns: 80, rows: 24, width: 0, height: 0, modes: new Map() },
  })
  let said = ''
  while (!said.includes('ready')) said += await next(channel)
  return { socket, connection, channel }
}

async function next(channel: Channel): Promise<string> {
  const data = await channel.read()
  if (!data) throw new Error('the session ended')
  return Buffer.from(data.bytes).toString()
}

/** Two sessions, one of which can be held, key by key in turns. */
async function echoes(agent: Agent, api: Client, keys: number): Promise<Row> {
  say(`typing ${keys} keys`)
  const typist = async (seconds: number) => {
    await hold(api, seconds)
    return open(agent, 'stty raw echo; echo ready; cat >/dev/null')
  }
  const sides = { on: await typist(1_800), off: await typist(0) }
  const medians: Record<'on' | 'off', number[]> = { on: [], off: [] }
  for (let round = 0; round < Math.ceil(keys / keysInTurn) + 2; round++)
    for (const which of round % 2 === 0 ? (['on', 'off'] as const) : (['off', 'on'] as const)) {
      const times: number[] = []
      for (let key = 0; key < keysInTurn; key++) {
        const started = performance.now()
        await sides[which].channel.write(Buffer.from('x'))
        await next(sides[which].channel)
        times.push(performance.now() - started)
      }
      // The first rounds compile the code.
      if (round >= 2) medians[which].push(median(times))
    }
  for (const { connection } of Object.values(sides)) await connection.end()
  const compared = compare(medians.on, medians.off)
  return line(
    'a key until it is shown, can be held against not',
    'ms',
    compared,
    atMost(1.05, compared.ratio),
  )
}

const esc = '\u001b'
const screens: Record<string, string> = {
  'a shell with a full scrollback': Array.from(
    { length: 1_500 },
    (_, at) => `drwxr-xr-x 2 root root 4096 ${at} ${esc}[01;34mfolder-${at}${esc}[0m`,
  ).join('\r\n'),
  'an editor, after an hour': `${esc}[?1049h${esc}[2J${Array.from(
    { length: 3_000 },
    (_, at) => `${esc}[${(at % 50) + 1};1H${esc}[3${at % 8}m${'word '.repeat(8)}${at}${esc}[m${esc}[K`,
  ).join('')}`,
}

async function redraws(): Promise<Row[]> {
  await using thread = screenThread()
  const size = { width: 160, height: 50 }
  const rows: Row[] = []
  for (const [name, output] of Object.entries(screens)) {
    const times: number[] = []
    for (let round = 0; round < 25; round++) {
      using screen = terminalScreen(size, { tenant_id: 'bench', thread, memory: fairShare(screens_bytes) })
      screen.show(Buffer.from(output))
      await screen.settle()
      screen.show(Buffer.from('what came after that\r\n'))
      const started = performance.now()
      await screen.redraw({ width: 120, height: 40 }, true)
      // The first rounds start the thread and compile the code.
      if (round >= 5) times.push(performance.now() - started)
    }
    rows.push(single(`redraw of ${name}, median`, 'ms', median(times), below(100, median(times), 'ms')))
  }
  return rows
}

async function memory({ server }: World, agent: Agent, api: Client, count: number): Promise<Row[]> {
  say(`${count} held sessions`)
  await hold(api, 3_600)
  const heldCount = async (): Promise<number> => {
    let held = 0
    for (let page = 1; ; page++) {
      const { body } = await api.sessions.list({ query: { active: true, page, per_page: 100 } })
      held += body.filter((session) => session.held).length
      if (body.length < 100) return held
    }
  }
  // One key may have ten.
  const keys = Array.from({ length: Math.ceil(count / 10) }, () => generatePrivateKey('ed25519'))
  for (const [at, { type, blob }] of keys.entries())
    await api.publicKeys.create({
      body: {
        data: Buffer.from(publicKeyLine(type, blob)).toString('base64'),
        name: `key ${at}`,
        username: '.*',
        filter: { hostname: '.*' },
      },
    })
  const settled = async (ms = 5_000): Promise<number> => {
    await wait(ms)
    return server.resident_mb() * 1_024
  }
  // The first ones also pay for code that all share.
  const live: Socket[] = []
  const begin = async (wanted: number): Promise<number> => {
    for (let at = live.length; at < wanted; at++) {
      const { socket } = await open(
        agent,
        'seq 1 3000; echo ready; exec sleep 3600',
        keys[Math.floor(at / 10)],
      )
      live.push(socket)
    }
    return settled()
  }
  const first = Math.ceil(count / 10)
  await begin(first)
  // Without garbage, which would hide their own memory.
  const used = await collect(server)
  const before = await settled(0)
  const open_kb = ((await begin(count)) - before) / (count - first)
  for (const socket of live) socket.resetAndDestroy()
  while ((await heldCount()) < count) await wait(200)
  const lost_kb = ((await settled()) - before) / (count - first)
  say('waiting until the server has given memory back')
  const each_kb = ((await settled(quiet_ms)) - before) / (count - first)
  const cpu = server.cpu_s()
  await wait(10_000)
  const idle_ms = (server.cpu_s() - cpu) * 100
  const inUse_kb = ((await collect(server)) - used) * (1_024 / (count - first))
  return [
    single(`memory of each of ${count} live sessions, before`, 'KiB', open_kb),
    single(`memory of each of ${count} held sessions, just lost`, 'KiB', lost_kb),
    single(
      `memory of each of ${count} held sessions, after a while`,
      'KiB',
      each_kb,
      below(300, each_kb, 'KiB'),
    ),
    single('of which is on the heap and in its buffers', 'KiB', inUse_kb),
    single(`processor of the server with ${count} held sessions`, 'ms/s', idle_ms),
  ]
}
