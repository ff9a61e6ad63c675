// Which connections the firewall allows, and which logins a public key is good for. Pure, and independent of
// the order of the rules. Strangers can trigger a decision, so its work is bounded, by what a namespace may
// store (`requireRoom`) and by steps, a few milliseconds at a time. A stored rule beyond the bound denies
// everybody if it denies and allows nobody if it allows.
import { setImmediate } from 'node:timers/promises'
import { Failure } from '@hawser/contract/failures'
import { plainAddress } from '../../kit/address.ts'
import { runnable, sizeOf, stepsToCompile } from './patterns.ts'

export type DeviceFilter = { readonly hostname: string } | { readonly tags: readonly string[] }

export interface FilteredDevice {
  readonly name: string
  readonly tags: readonly string[]
}

export interface Rule {
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
  /** Null when none matched. */
  readonly rule: string | null
  /** The ids of rules that applied in turn and could not be run. */
  readonly unrunnable: readonly string[]
}

export type Mismatch = 'source_ip' | 'username' | 'hostname' | 'tags'

/** `applies` is undefined when a pattern could not be run. */
export type Match =
  | { readonly applies: true | undefined }
  | { readonly applies: false; readonly differs: Mismatch }

export const mostEvaluated = 1000
const mostRules = 200
const largestTogether = 10_000
const longestText = 128
/**
 * The most steps that rules within the bounds need to be compiled and to match; their patterns on addresses
 * are of the same scale.
 */
const mostSteps = largestTogether * (longestText + 1 + 2 * stepsToCompile)
/** About two milliseconds. */
const stepsPerTurn = 100_000

const sizeOfRule = ({
  source_ip,
  username,
  filter,
}: Pick<Rule, 'source_ip' | 'username' | 'filter'>): number =>
  sizeOf(source_ip) + sizeOf(username) + ('hostname' in filter ? sizeOf(filter.hostname) : 1)

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
 * The first active rule that matches decides, by priority number, then age. `onRule` gets the result of each
 * rule that was run, in this order.
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
  // Any rule that was not run might deny.
  const next = ordered[mostEvaluated]
  if (next) onRule?.(next, { applies: undefined })
  return next
    ? { allowed: false, rule: next.id, unrunnable: [...unrunnable, next.id] }
    : { allowed: true, rule: null, unrunnable }
}

/**
 * Whether this key may log in under this name on this device; a key whose patterns cannot be run lets nobody
 * in. The caller checks that the client has the key.
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

class Work {
  #steps = 0
  #inThisTurn = 0

  /** Undefined if the pattern cannot be run within the bound. */
  matches(source: string, text: string): boolean | undefined {
    if (this.#steps >= mostSteps) return undefined
    const pattern = runnable(source, (steps) => this.#spend(steps))
    if (!pattern) return undefined
    this.#spend(pattern.size * (text.length + 1))
    return this.#steps > mostSteps ? undefined : pattern.isIn(text)
  }

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
