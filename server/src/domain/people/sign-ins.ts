// Where a user is signed in, and the end of it. A sign-in is a row; its tokens name it, and the gate looks
// for the row at every request, on every node. API keys are no sign-ins.
import { Failure } from '@hawser/contract/failures'
import { part, say, type SentencePart } from '@hawser/contract/sentences'
import type { SignIn } from '@hawser/contract/sign-ins'
import { iso, minute_ms, type Clock } from '../../kit/clock.ts'
import { oneLine } from '../../kit/log.ts'
import type { Stores } from '../../storage/stores.ts'
import type { SignInRow } from '../../storage/sign-ins.ts'
import type { With } from '../audit/parts.ts'
import { logsOf } from '../audit/refusals.ts'
import { callingUser, signInOf, type GateParts, type UserCaller } from '../callers/callers.ts'
import type { Rules } from '../callers/rules.ts'

/** One more ends the one that was unused for longest. */
export const mostSignIns = 50
const longestAgent = 256
/** A write at each request would be too many. */
const notedEvery_ms = 5 * minute_ms

export const agentOf = (agent = ''): string => oneLine(agent).slice(0, longestAgent)

const browsers: readonly (readonly [RegExp, string])[] = [
  [/\bEdgA?\//, 'Edge'],
  [/\bOPR\//, 'Opera'],
  [/\bFirefox\/|\bFxiOS\//, 'Firefox'],
  [/Chrom(e|ium)\/|\bCriOS\//, 'Chrome'],
  [/\bSafari\//, 'Safari'],
]
const systems: readonly (readonly [RegExp, string])[] = [
  [/\bAndroid\b/, 'Android'],
  [/\b(iPhone|iPad)\b/, 'iOS'],
  [/\bWindows\b/, 'Windows'],
  [/\bMac OS X\b/, 'macOS'],
  [/\bCrOS\b/, 'ChromeOS'],
  [/\bLinux\b/, 'Linux'],
]

/** The client's name for people, as far as its User-Agent reveals it. */
export function clientOf(agent: string): SentencePart {
  const [, host] = /^hawser\/\S+ \((.*)\)$/.exec(agent) ?? []
  if (host !== undefined) return part('client-on-host', { program: 'hawser', host })
  const named = (list: typeof browsers) => list.find(([pattern]) => pattern.test(agent))?.[1]
  const browser = agent.startsWith('Mozilla/') ? named(browsers) : undefined
  const system = named(systems)
  if (browser !== undefined && system !== undefined)
    return part('client-on-system', { program: browser, system })
  const program = browser ?? agent.split(/[/ ]/, 1)[0]
  return program ? part('client', { program }) : part('client-unknown')
}

export function signInRules({
  stores,
  audit,
  bus,
  clock,
}: With<'stores' | 'audit' | 'bus' | 'clock'>): Rules<'signIns'> {
  const present = (row: SignInRow, current: string): SignIn => {
    const { sentence: client, parts: client_parts } = say(clientOf(row.agent))
    return {
      id: row.id,
      client,
      client_parts,
      agent: row.agent,
      source: row.source,
      created_at: row.created_at,
      used_from: row.used_from,
      used_at: row.used_at,
      current: row.id === current,
    }
  }

  async function end(caller: UserCaller, which: { id: string } | 'others'): Promise<number> {
    const user = await callingUser(stores, caller)
    const ended = await audit.change(caller, async (inside, record) => {
      const count =
        which === 'others'
          ? await inside.signIns.endOthers(user.id, signInOf(caller.token_id))
          : Number(await inside.signIns.end(user.id, which.id))
      if (count > 0)
        for (const tenant_id of await logsOf(inside, user.id))
          record({
            action: 'user.signed-out',
            target: { kind: 'user', id: user.id, name: user.username },
            detail: { sign_ins: count },
            tenant_id,
          })
      return count
    })
    // Open terminals and live views end, too. Held sessions stay: reattaching requires a new proof.
    if (ended > 0) bus.tell('user.changed', { user_id: user.id, only: 'sign-ins' })
    return ended
  }

  return {
    async list(_, caller) {
      const rows = await stores.signIns.of(caller.id, iso(clock.now()))
      return rows.map((row) => present(row, signInOf(caller.token_id)))
    },
    async end({ params }, caller) {
      const id = params.id === 'current' ? signInOf(caller.token_id) : params.id
      if ((await end(caller, { id })) === 0) throw new Failure('notFound')
    },
    async endOthers(_, caller) {
      return { ended: await end(caller, 'others') }
    },
  }
}

/** Records the use of sign-ins, each every few minutes, while no request waits. */
export function noteUse({
  stores,
  clock,
  later,
}: {
  stores: Pick<Stores, 'signIns'>
  clock: Clock
  later(name: string, work: () => Promise<void>): void
}): NonNullable<GateParts['onUsed']> {
  const noting = new Set<string>()
  return (sign_in, used_at, { source }) => {
    const now = clock.now()
    if (now - Date.parse(used_at) < notedEvery_ms || noting.has(sign_in)) return
    noting.add(sign_in)
    later('sign-in.noted', async () => {
      try {
        await stores.signIns.touch(sign_in, source, iso(now))
      } finally {
        noting.delete(sign_in)
      }
    })
  }
}
