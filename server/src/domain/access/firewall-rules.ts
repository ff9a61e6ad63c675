// Which connections the firewall allows, and which logins a public key is good for. Pure: the same rules and
// the same connection always give the same answer, in whatever order the rules come. Strangers can trigger a
// decision, so its work is bounded: `requireRoom` bounds what a namespace may store, and a decision takes a
// limited number of steps, a few milliseconds at a time. A rule that was stored before there was a bound and
// exceeds it denies everybody if it denies and allows nobody if it allows.
import { setImmediate } from 'node:timers/promises'
import { Failure } from '@hawser/contract/failures'
import { plainAddress } from '../../kit/address.ts'
import { runnable, sizeOf, stepsToCompile } from './patterns.ts'

/**
 * Which devices a rule or a key applies to: those whose name matches a pattern, or that have one of the tags.
 */
export type DeviceFilter = { readonly hostname: string } | { readonly tags: readonly string[] }

export interface FilteredDevice {
  readonly name: string
  readonly tags: readonly string[]
}

export interface Rule {
  /** A decimal number, as text. */
  readonly id: string
  readonly priority: number
  readonly action: 'allow' | 'deny'
  readonly active: boolean
  readonly source_ip: string
  readonly username: string
  readonly filter: DeviceFilter
}

export interface Connection {
  readonly source_ip: string
  readonly username: string
  readonly device: FilteredDevice
}

export interface Decision {
  readonly allowed: boolean
  /** The id of the rule that decided; null when none matched. */
  readonly rule: string | null
  /** The ids of rules that applied in turn and could not be run. */
  readonly unrunnable: readonly string[]
}

/** The part of a rule or a key that a login does not fit. */
export type Mismatch = 'source_ip' | 'username' | 'hostname' | 'tags'

/** What came of one rule or key. `applies` is undefined when a pattern could not be run. */
export type Match =
  | { readonly applies: true | undefined }
  | { readonly applies: false; readonly differs: Mismatch }

/** How many rules of one namespace a decision runs at most. */
export const mostEvaluated = 1000
const mostRules = 200
const largestTogether = 10_000
/** The longest text that is matched is a user's name. */
const longestText = 128
/**
 * The most steps that rules within the bounds need, to be compiled and to match. Their patterns on source
 * addresses are of the same scale.
 */
const mostSteps = largestTogether * (longestText + 1 + 2 * stepsToCompile)
/** Steps before other work gets its turn; about two milliseconds. */
const stepsPerTurn = 100_000

/** The cost of a rule for each connection. */
const sizeOfRule = ({
  source_ip,
  username,
  filter,
}: Pick<Rule, 'source_ip' | 'username' | 'filter'>): number =>
  sizeOf(source_ip) + sizeOf(username) + ('hostname' in filter ? sizeOf(filter.hostname) : 1)

/** Refuses a rule that makes the rules of its namespace too many or too large. */
export function requireRoom(
  others: readonly Parameters<typeof sizeOfRule>[0][],
  rule: Parameters<typeof sizeOfRule>[0],
): void {
  if (others.length >= mostRules) throw new Failure('firewallLimit')
  if (others.reduce((sum, other) => sum + sizeOfRule(other), sizeOfRule(rule)) > largestTogether)
    throw new Failure('firewallLimit', {
      message:
        'The firewall rules of the namespace are too large together; make them simpler or remove some.',
    })
}

/**
 * Lowest priority number first, older rule first among equals; the first active rule that matches decides.
 * `onRule` hears what came of each rule that was run, in this order.
 */
export async function decide(
  rules: readonly Rule[],
  connection: Connection,
  onRule?: (rule: Rule, match: Match) => void,
): Promise<Decision> {
  const login = { ...connection, source_ip: plainAddress(connection.source_ip) }
  const work = new Work()
  const unrunnable: string[] = []
  const ordered = rules
    .filter(({ active }) => active)
    .toSorted((a, b) => a.priority - b.priority || Number(a.id) - Number(b.id))
  for (const rule of ordered.slice(0, mostEvaluated)) {
    const match = await matchesAll(
      [['source_ip', rule.source_ip, login.source_ip], ...about(rule, login)],
      rule.filter,
      login.device,
      work,
    )
    onRule?.(rule, match)
    const { applies } = match
    if (applies === undefined) unrunnable.push(rule.id)
    if (applies ?? rule.action === 'deny')
      return { allowed: rule.action === 'allow', rule: rule.id, unrunnable }
  }
  // Any of the rules that were not run might deny.
  const next = ordered[mostEvaluated]
  if (next) onRule?.(next, { applies: undefined })
  return next
    ? { allowed: false, rule: next.id, unrunnable: [...unrunnable, next.id] }
    : { allowed: true, rule: null, unrunnable }
}

/**
 * Whether this key may log in under this name on this device; a key whose patterns cannot be run is good for
 * nobody. The caller checks that the client has the key.
 */
export async function keyFits(
  key: { readonly username: string; readonly filter: DeviceFilter },
  login: { readonly username: string; readonly device: FilteredDevice },
): Promise<Match> {
  return matchesAll(about(key, login), key.filter, login.device, new Work())
}

type Pair = readonly [part: Exclude<Mismatch, 'tags'>, source: string, text: string]

function about(
  { username, filter }: Pick<Rule, 'username' | 'filter'>,
  login: { readonly username: string; readonly device: FilteredDevice },
): Pair[] {
  const pairs: Pair[] = [['username', username, login.username]]
  return 'hostname' in filter ? [...pairs, ['hostname', filter.hostname, login.device.name]] : pairs
}

/** Whether all patterns and one of the tags match. */
async function matchesAll(
  pairs: readonly Pair[],
  filter: DeviceFilter,
  device: FilteredDevice,
  work: Work,
): Promise<Match> {
  if ('tags' in filter && !filter.tags.some((tag) => device.tags.includes(tag)))
    return { applies: false, differs: 'tags' }
  let applies: true | undefined = true
  for (const [part, source, text] of pairs) {
    const found = work.matches(source, text)
    if (found === false) return { applies: false, differs: part }
    if (found === undefined) applies = undefined
    if (work.isTurnOver()) await setImmediate()
  }
  return { applies }
}

/** Counts the steps of one decision. */
class Work {
  /** All steps so far. */
  #steps = 0
  /** Steps since other work had its turn. */
  #inThisTurn = 0

  /** Undefined if the pattern cannot be run, or not within the bound. */
  matches(source: string, text: string): boolean | undefined {
    if (this.#steps >= mostSteps) return undefined
    const pattern = runnable(source, (steps) => this.#spend(steps))
    if (!pattern) return undefined
    this.#spend(pattern.size * (text.length + 1))
    return this.#steps > mostSteps ? undefined : pattern.isIn(text)
  }

  /** Whether other work should get its turn now. */
  isTurnOver(): boolean {
    if (this.#inThisTurn < stepsPerTurn) return false
    this.#inThisTurn = 0
    return true
  }

  #spend(steps: number): void {
    this.#steps += steps
    this.#inThisTurn += steps
  }
}
