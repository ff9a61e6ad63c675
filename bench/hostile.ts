// What everybody else feels while somebody attacks: /healthcheck and `ssh … true` of a bystander during each attack, against
// the quiet just before it, and how far the server's memory grows. The server has its usual limits; attackers and
// bystanders come from different addresses. Words choose attacks by a part of their names:
//   npm run bench -- hostile rekey json           those whose names have one of these words
//   … seconds=12                                  of each attack, and of each quiet time
import { mkdtempSync, rmSync } from 'node:fs'
import os from 'node:os'
import path from 'node:path'
import { setTimeout as wait } from 'node:timers/promises'
import { client } from '@hawser/contract/client'
import { buildWorld, signIn, type Agent, type World } from './access-world.ts'
import type { Attacked, AttackName, AttackOrder, Target } from './attacks.ts'
import { atMost, below, line, percentile, single, table, type Row } from './kit.ts'
import { openLoad, requestBytes } from './load.ts'
import { clientArgs, plainLogin, runClient } from './openssh.ts'
import { ask, startProcess } from './programs.ts'

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
]

const say = (text: string): void => void process.stderr.write(`${text}\n`)

export default async function hostile(...words: string[]): Promise<void> {
  const seconds = Number(words.find((word) => word.startsWith('seconds='))?.slice(8) ?? 12)
  const wanted = words.filter((word) => !word.includes('='))
  const chosen = names.filter((name) => wanted.length === 0 || wanted.some((word) => name.includes(word)))
  if (chosen.length === 0) throw new Error(`hostile: there is no such attack (${names.join('; ')})`)

  const folder = mkdtempSync(path.join(os.tmpdir(), 'hawser-bench-'))
  process.once('exit', () => rmSync(folder, { recursive: true, force: true }))
  for (const signal of ['SIGINT', 'SIGTERM'] as const) process.once(signal, () => process.exit(130))
  await using world = await buildWorld({ folder, before: plainLogin(folder), profiles: undefined, usualLimits: true })
  const agent = await world.startAgent('gantry')
  const target = await targetOf(world, agent)
  await felt(world, agent, 3, async () => undefined)

  const rows: Row[] = []
  for (const attack of chosen) {
    say(attack)
    const quiet = await felt(world, agent, seconds, () => wait(seconds * 1000))
    await using attacker = startProcess([process.execPath, 'bench/attacks.ts'], {}, { ipc: true })
    const order: AttackOrder = { ...target, attack, seconds }
    const during = await felt(world, agent, seconds, () => ask<Attacked>(attacker, order))
    const { tries, refused } = during.result ?? { tries: 0, refused: 0 }
    say(`  ${tries} times, ${refused} refused; ${during.logins.length} logins of the bystander, ${during.failed} failed`)
    rows.push(
      compared(`${attack}: /healthcheck`, during.checks, quiet.checks, 50),
      compared(`${attack}: /healthcheck`, during.checks, quiet.checks, 99),
      compared(`${attack}: ssh`, during.logins, quiet.logins, 50),
      compared(`${attack}: ssh`, during.logins, quiet.logins, 99),
      single(`${attack}: logins that failed`, '', during.failed, below(1, during.failed, '')),
      single(`${attack}: memory`, 'MiB more', during.peak_mb - quiet.peak_mb, below(64, during.peak_mb - quiet.peak_mb, 'MiB')),
    )
    await forgetRules(world, target.token)
  }
  table(rows)
}

function compared(what: string, during: readonly number[], quiet: readonly number[], percent: number): Row {
  const [a, b] = [during, quiet].map((times) => percentile(Float64Array.from(times).toSorted(), percent)) as [number, number]
  const ratio = a / b
  return line(`${what}, p${percent}`, 'ms', { a, b, ratio, lowest: ratio, highest: ratio }, percent === 99 ? atMost(3, ratio) : undefined)
}

interface Felt<T> {
  readonly checks: readonly number[]
  readonly logins: readonly number[]
  readonly failed: number
  readonly peak_mb: number
  readonly result: T
}

/** What bystanders and the memory show while something goes on; until it is over, and at least that long. */
async function felt<T>({ server }: World, agent: Agent, seconds: number, meanwhile: () => Promise<T>): Promise<Felt<T>> {
  const [checks, logins]: [number[], number[]] = [[], []]
  let [failed, peak_mb, over] = [0, server.resident_mb(), false]
  const until = performance.now() + seconds * 1000
  const isGoing = (): boolean => !over || performance.now() < until
  const checking = async (): Promise<void> => {
    using load = await openLoad(server.port, 1)
    const request = requestBytes('GET', '/healthcheck')
    while (isGoing()) {
      const before = performance.now()
      await load.call(request)
      checks.push(performance.now() - before)
      peak_mb = Math.max(peak_mb, server.resident_mb())
      await wait(20)
    }
  }
  const loggingIn = async (): Promise<void> => {
    const args = ['-b', '127.0.0.1', ...clientArgs(agent.through, 'ConnectTimeout=60'), 'true']
    while (isGoing()) {
      try {
        logins.push(await runClient(args))
      } catch {
        failed += 1
      }
      await wait(50)
    }
  }
  const bystanders = [checking(), loggingIn()]
  const result = await meanwhile()
  over = true
  await Promise.all(bystanders)
  return { checks, logins, failed, peak_mb, result }
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

/** The blob in base64, as ssh-keyscan prints it. */
async function rsaHostKey(port: number): Promise<string> {
  const scan = startProcess(['ssh-keyscan', '-t', 'rsa', '-p', String(port), '127.0.0.1'])
  return scan.printed(/ssh-rsa ([A-Za-z0-9+/=]+)\n/)
}

/** What an attack has written must not meet the next one. */
async function forgetRules({ server }: World, token: string): Promise<void> {
  const api = client({ url: `http://127.0.0.1:${server.port}`, token })
  const { body } = await api.firewall.list({ query: { per_page: 100 } })
  for (const { id } of body) await api.firewall.remove({ params: { id } })
}
