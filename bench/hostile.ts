// The effect of attacks on bystanders: /healthcheck and `ssh … true` of a bystander during each
// attack, against the quiet around it (in turns: machines have bad moments of their own), how much memory it
// makes the server hold, and how far it grows with the garbage. The server has its usual limits; attackers
// and bystanders come from different addresses. Words choose attacks by a part of their names:
//   npm run bench -- hostile rekey json           those whose names have one of these words
//   … seconds=6                                   of each attack, and of each quiet time; in turns, four times
//   … profile=<path>                              write CPU profiles of server and agent there
import { mkdirSync, mkdtempSync, rmSync } from 'node:fs'
import os from 'node:os'
import path from 'node:path'
import { setTimeout as wait } from 'node:timers/promises'
import { buildWorld, signIn, type Agent, type World } from './access-world.ts'
import type { Attacked, AttackName } from './attacks.ts'
import { collect } from './collect.ts'
import type { Target } from './crowd.ts'
import { atMost, below, line, percentile, single, table, type Row } from './kit.ts'
import { openLoad, requestBytes } from './load.ts'
import { clientArgs, plainLogin, runClient } from './openssh.ts'
import { ask, startProcess, type Running } from './programs.ts'

const names: readonly AttackName[] = [
  'deeply nested JSON to an open operation',
  'firewall rules that take long, and attempts that meet them',
  'one-byte messages while keys are renewed, before login',
  'proofs of host keys',
  'small pieces of large reads for a program that does not read',
  'new keys again and again, before login',
  'new keys again and again, logged in',
  'a thousand connections that say nothing',
  'the dearest key exchange, on new connections',
  'passwords for devices that do not exist',
  'a device whose folders have long names',
  'searches in one recording by who does not wait',
  'recordings whose commands move every row',
  'held screens full of combining marks',
  'held sessions that go on printing',
  'an agent that continues and breaks a stream',
]

const rounds = 4

const say = (text: string): void => void process.stderr.write(`${text}\n`)

export default async function hostile(...words: string[]): Promise<void> {
  const seconds = Number(words.find((word) => word.startsWith('seconds='))?.slice(8) ?? 6)
  const profiles = words.find((word) => word.startsWith('profile='))?.slice(8)
  const wanted = words.filter((word) => !word.includes('='))
  const chosen = names.filter((name) => wanted.length === 0 || wanted.some((word) => name.includes(word)))
  if (chosen.length === 0) throw new Error(`hostile: there is no such attack (${names.join('; ')})`)

  const folder = mkdtempSync(path.join(os.tmpdir(), 'hawser-bench-'))
  process.once('exit', () => rmSync(folder, { recursive: true, force: true }))
  for (const signal of ['SIGINT', 'SIGTERM'] as const) process.once(signal, () => process.exit(130))
  const before = plainLogin(folder)

  const rows: Row[] = []
  for (const attack of chosen) {
    say(attack)
    // A server of its own: remains of one attack must not disturb the quiet of the next.
    const worldFolder = path.join(folder, String(rows.length))
    mkdirSync(worldFolder)
    await using world = await buildWorld({ folder: worldFolder, before, profiles, usualLimits: true })
    const agent = await world.startAgent('gantry')
    const target = await targetOf(world, agent)
    await felt(world, agent, 3, nothingFelt(), async () => undefined)
    const [quiet, during]: [Felt, Felt] = [nothingFelt(), nothingFelt()]
    let [tries, refused] = [0, 0]
    for (let round = 0; round < rounds; round += 1) {
      await felt(world, agent, seconds, quiet, () => wait(seconds * 1000))
      await using attacker = startAttacker()
      const attacked = await felt(world, agent, seconds, during, () =>
        ask<Attacked>(attacker, { ...target, attack, seconds }),
      )
      tries += attacked?.tries ?? 0
      refused += attacked?.refused ?? 0
      // The clean-up after an attack belongs neither to it nor to the quiet.
      await wait(1_000)
    }
    // Not while others are timed: collecting takes its time.
    const before_mb = await collect(world.server)
    await using attacker = startAttacker()
    const attacking = ask<Attacked>(attacker, { ...target, attack, seconds })
    await wait((seconds * 1000 * 2) / 3)
    const held_mb = (await collect(world.server)) - before_mb
    await attacking
    say(
      `  ${tries} times, ${refused} refused; ${during.logins.length} logins of the bystander, ${during.failed} failed`,
    )
    rows.push(
      compared(`${attack}: /healthcheck`, during.checks, quiet.checks, 50),
      compared(`${attack}: /healthcheck`, during.checks, quiet.checks, 99),
      compared(`${attack}: ssh`, during.logins, quiet.logins, 50),
      compared(`${attack}: ssh`, during.logins, quiet.logins, 99),
      single(`${attack}: logins that failed`, '', during.failed, below(1, during.failed, '')),
      single(`${attack}: memory held`, 'MiB more', held_mb, below(64, held_mb, 'MiB')),
      single(`${attack}: memory with garbage`, 'MiB more', during.peak_mb - quiet.first_mb),
    )
  }
  table(rows)
}

/** As on another machine: it takes as little of the server's processors as possible. */
function startAttacker(): Running {
  return startProcess(['nice', '-n', '19', process.execPath, 'bench/attacks.ts'], {}, { ipc: true })
}

function compared(what: string, during: readonly number[], quiet: readonly number[], percent: number): Row {
  const [a, b] = [during, quiet].map((times) => percentile(Float64Array.from(times).toSorted(), percent)) as [
    number,
    number,
  ]
  const ratio = a / b
  return line(
    `${what}, p${percent}`,
    'ms',
    { a, b, ratio, lowest: ratio, highest: ratio },
    percent === 99 ? atMost(3, ratio) : undefined,
  )
}

interface Felt {
  readonly checks: number[]
  readonly logins: number[]
  failed: number
  /** The server's memory: the most of the first round, and of all. */
  first_mb: number
  peak_mb: number
}

const nothingFelt = (): Felt => ({ checks: [], logins: [], failed: 0, first_mb: 0, peak_mb: 0 })

/** Measures bystanders and memory until the work is over, and at least this long. */
async function felt<T>(
  { server }: World,
  agent: Agent,
  seconds: number,
  sum: Felt,
  meanwhile: () => Promise<T>,
): Promise<T> {
  let over = false
  const until = performance.now() + seconds * 1000
  const isGoing = (): boolean => !over || performance.now() < until
  const checking = async (): Promise<void> => {
    using load = await openLoad(server.port, 1)
    const request = requestBytes('GET', '/healthcheck')
    while (isGoing()) {
      const before = performance.now()
      await load.call(request)
      sum.checks.push(performance.now() - before)
      sum.peak_mb = Math.max(sum.peak_mb, server.resident_mb())
      await wait(20)
    }
  }
  const loggingIn = async (): Promise<void> => {
    const args = ['-b', '127.0.0.1', ...clientArgs(agent.through, 'ConnectTimeout=60'), 'true']
    while (isGoing()) {
      try {
        sum.logins.push(await runClient(args))
      } catch {
        sum.failed += 1
      }
      await wait(50)
    }
  }
  const bystanders = [checking(), loggingIn()]
  const result = await meanwhile()
  over = true
  await Promise.all(bystanders)
  if (sum.first_mb === 0) sum.first_mb = sum.peak_mb
  return result
}

async function targetOf(world: World, agent: Agent): Promise<Target> {
  const token = await signIn(world.server.port)
  return {
    httpPort: world.server.port,
    sshPort: agent.through.port,
    sshid: agent.through.user,
    keyFile: world.keys.file,
    token,
    rsaHostKey: await rsaHostKey(agent.through.port),
  }
}

/** In base64, as ssh-keyscan prints it. */
async function rsaHostKey(port: number): Promise<string> {
  const scan = startProcess(['ssh-keyscan', '-t', 'rsa', '-p', String(port), '127.0.0.1'])
  return scan.printed(/ssh-rsa ([A-Za-z0-9+/=]+)\n/)
}
