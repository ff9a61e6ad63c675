// How much memory the agent holds while it waits, and the server once a load has gone. The agent runs on a
// copy of Node of its own, as on a device: a second process on the same file would halve the share of its
// pages. The load is sessions, transfers, tunnels and calls of the HTTP interface. Words choose a part of it:
//   npm run bench -- memory agent server           parts, both unless stated
//   … idle=60 rest=300                             seconds of idleness: of the agent, of the server after its load
//   … size=512 sessions=100 tunnels=2000           MiB each way, sessions at a time, tunnels
import { copyFileSync, mkdtempSync, rmSync } from 'node:fs'
import os from 'node:os'
import path from 'node:path'
import { setTimeout as wait } from 'node:timers/promises'
import { buildWorld, plantAgents, type Agent, type World } from './access-world.ts'
import { below, measure, single, table, type Row } from './kit.ts'
import { openLoad, requestBytes } from './load.ts'
import { clientArgs, familyMemory_mb, openMaster, plainLogin, runClient, zeros } from './openssh.ts'
import { ask, startProcess } from './programs.ts'
import type { SessionOrder } from './session-load.ts'
import type { TunnelOrder } from './tunnel-load.ts'

const parts = ['agent', 'server'] as const
const mib = 1024 * 1024
const say = (text: string): void => void process.stderr.write(`${text}\n`)

export default async function memory(...words: string[]): Promise<void> {
  const number = (name: string, usual: number): number =>
    Number(words.find((word) => word.startsWith(`${name}=`))?.slice(name.length + 1) ?? usual) || usual
  const named = words.filter((word) => !word.includes('='))
  const unknown = named.find((word) => !(parts as readonly string[]).includes(word))
  if (unknown !== undefined) throw new Error(`memory: "${unknown}" is not a part (${parts.join(', ')})`)
  const wants = (part: (typeof parts)[number]): boolean => named.length === 0 || named.includes(part)

  const folder = mkdtempSync(path.join(os.tmpdir(), 'hawser-bench-'))
  process.once('exit', () => rmSync(folder, { recursive: true, force: true }))
  for (const signal of ['SIGINT', 'SIGTERM'] as const) process.once(signal, () => process.exit(130))
  const tunnels = number('tunnels', 2000)
  const { data, keyFile } = await plantAgents(folder, tunnels)
  const node = path.join(folder, 'node')
  copyFileSync(process.execPath, node)
  await using world = await buildWorld({ folder, data, before: plainLogin(folder), profiles: undefined })
  const agent = await world.startAgent('gantry', { node })

  const rows: Row[] = []
  const size = number('size', 512)
  if (wants('agent')) rows.push(...(await idleAgent(folder, agent, size, number('idle', 60))))
  if (wants('server')) {
    const load = { size, sessions: number('sessions', 100), tunnels, keyFile, rest_s: number('rest', 300) }
    rows.push(...(await serverAfterLoad(folder, world, agent, load)))
  }
  table(rows)
}

async function idleAgent(folder: string, agent: Agent, size: number, idle_s: number): Promise<Row[]> {
  const idle = async (what: string): Promise<Row> => {
    say(`the agent idles for ${idle_s} s`)
    await wait(idle_s * 1000)
    const held_mb = familyMemory_mb(agent.pid)
    return single(`idle agent ${what}: proportional set size`, 'MB', held_mb, below(40, held_mb, 'MB'))
  }
  const rows = [await idle('after its start')]
  for (let count = 0; count < 10; count++) await runClient([...clientArgs(agent.through), 'true'])
  await transfer(folder, agent, size)
  return [...rows, await idle(`after 10 sessions and ${size} MiB each way`)]
}

async function transfer(folder: string, agent: Agent, size: number): Promise<void> {
  say(`transferring ${size} MiB each way`)
  await using master = await openMaster(folder, agent.through, 'aes128-gcm@openssh.com')
  await master.run(`head -c ${size * mib} /dev/zero`)
  await master.run('cat > /dev/null', zeros(folder, size * mib))
}

interface ServerLoad {
  readonly size: number
  readonly sessions: number
  readonly tunnels: number
  /** The key of all devices with a tunnel. */
  readonly keyFile: string
  readonly rest_s: number
}

async function serverAfterLoad(
  folder: string,
  { server, token }: World,
  agent: Agent,
  { size, sessions, tunnels, keyFile, rest_s }: ServerLoad,
): Promise<Row[]> {
  const { port } = server
  const fresh_mb = server.resident_mb()
  let most_mb = fresh_mb
  const watching = setInterval(() => (most_mb = Math.max(most_mb, server.resident_mb())), 250)
  {
    const flags = ['--max-old-space-size=8192']
    await using many = startProcess([process.execPath, ...flags, 'bench/tunnel-load.ts'], {}, { ipc: true })
    await using people = startProcess([process.execPath, 'bench/session-load.ts'], {}, { ipc: true })
    say(`opening ${tunnels} tunnels`)
    await ask(many, { do: 'enrol', port, keyFile, count: tunnels } satisfies TunnelOrder)
    await ask(many, { do: 'hold', port, count: tunnels } satisfies TunnelOrder)
    say(`logging in, and holding ${sessions} sessions`)
    const { user, keys, port: sshPort } = agent.through
    const login = { port: sshPort, user, keyFile: keys.file }
    await ask(people, { do: 'measure', ...login, seconds: 15, clients: 8 } satisfies SessionOrder)
    await ask(people, { do: 'open', ...login, count: sessions } satisfies SessionOrder)
    await transfer(folder, agent, size)
    say('calling the HTTP interface')
    using load = await openLoad(port, 16)
    const list = requestBytes('GET', '/api/devices?page=1&per_page=100', { token })
    await measure(() => load.call(list), { seconds: 20, concurrency: 16 })
    await ask(people, { do: 'close' } satisfies SessionOrder)
    await ask(many, { do: 'leave' } satisfies TunnelOrder)
  }
  clearInterval(watching)
  const rows = [
    single('server before the load', 'MB', fresh_mb),
    single('server under load, the most', 'MB', most_mb),
    single('server when the load has gone', 'MB', server.resident_mb()),
  ]
  say(`the server rests for ${rest_s} s`)
  await wait(rest_s * 1000)
  const rested_mb = server.resident_mb()
  rows.push(single(`server ${rest_s} s later`, 'MB', rested_mb, below(180, rested_mb, 'MB')))
  return rows
}
