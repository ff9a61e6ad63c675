// Where a user is signed in, and the end of it. A sign-in is a row; each of its tokens names it, and the gate looks
// for the row at every request, on whichever node. API keys are no sign-ins.
import { Failure } from '@hawser/contract/failures'
import { part, say, type SentencePart } from '@hawser/contract/sentences'
import type { SignIn } from '@hawser/contract/sign-ins'
import type { Bus } from '../../bus/bus.ts'
import { iso, minute_ms, type Clock } from '../../kit/clock.ts'
import { oneLine } from '../../kit/log.ts'
import type { Stores } from '../../storage/stores.ts'
import type { SignInRow } from '../../storage/sign-ins.ts'
import type { Audit } from '../audit/audit.ts'
import { logsOf } from '../audit/refusals.ts'
import { callingUser, signInOf, type GateParts, type UserCaller } from '../callers/callers.ts'
import type { Rules } from '../callers/rules.ts'

/** Sign-ins of one user; one more ends the one that was not used for longest. */
export const mostSignIns = 50
const longestAgent = 256
/** How exactly the last use is noted: a write at each request would be too many. */
const notedEvery_ms = 5 * minute_ms

/** What a client says it is, as it is kept: one short line. */
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

/** A client as people call it, as far as it says what it is. */
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

export interface SignInsParts {
  stores: Stores
  audit: Audit
  bus: Bus
  clock: Clock
}

export function signInRules({ stores, audit, bus, clock }: SignInsParts): Rules<'signIns'> {
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
    // What is open with them ends, too: terminals and live views. What is held stays: whoever comes back to it
    // proves anew who they are.
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

/** Notes when sign-ins are used, each every few minutes, without a request that waits for it. */
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
