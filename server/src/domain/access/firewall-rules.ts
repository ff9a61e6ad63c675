// Which connections the firewall lets through, and which logins a public key is good for. Pure: the same
// rules and the same connection always give the same answer, whatever order the rules come in. Strangers can
// ask, so the work is bounded: what may be written together is (`requireRoom`), and a decision makes at most
// so many steps, a few milliseconds of them at a time. A rule that cannot be run within the bound, because it
// was stored before there was one, denies all if it denies and allows none if it allows.
import { setImmediate } from 'node:timers/promises'
import { Failure } from '@hawser/contract/failures'
import { plainAddress } from '../../kit/address.ts'
import { runnable, sizeOf, stepsToCompile } from './patterns.ts'

/**
 * Which devices a rule or a key is about: by a pattern on the name, or by having at least one of the tags.
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
  /** The ids of rules that were to be asked and could not be run. */
  readonly unrunnable: readonly string[]
}

/** Of one namespace; what is stored beyond these is not asked. */
export const mostAsked = 1000
const mostRules = 200
const largestTogether = 10_000
/** The longest text that is matched is a user's name. */
const longestText = 128
/**
 * What rules that were written within the bounds can need at most, and be compiled. Their sources are of the
 * same scale.
 */
const mostSteps = largestTogether * (longestText + 1 + 2 * stepsToCompile)
/** In one go; about two milliseconds. */
const stepsInOneGo = 100_000

/** What a rule costs whenever somebody connects. */
const sizeOfRule = ({
  source_ip,
  username,
  filter,
}: Pick<Rule, 'source_ip' | 'username' | 'filter'>): number =>
  sizeOf(source_ip) + sizeOf(username) + ('hostname' in filter ? sizeOf(filter.hostname) : 1)

/** Refuses a rule that is too much beside the others of its namespace. */
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
 */
export async function decide(rules: readonly Rule[], connection: Connection): Promise<Decision> {
  const login = { ...connection, source_ip: plainAddress(connection.source_ip) }
  const work = new Work()
  const unrunnable: string[] = []
  const asked = rules
    .filter(({ active }) => active)
    .toSorted((a, b) => a.priority - b.priority || Number(a.id) - Number(b.id))
  for (const rule of asked.slice(0, mostAsked)) {
    const applies = await matchesAll(
      [[rule.source_ip, login.source_ip], ...about(rule, login)],
      rule.filter,
      login.device,
      work,
    )
    if (applies === undefined) unrunnable.push(rule.id)
    if (applies ?? rule.action === 'deny')
      return { allowed: rule.action === 'allow', rule: rule.id, unrunnable }
  }
  // Any of those that nobody asked might deny.
  const next = asked[mostAsked]
  return next
    ? { allowed: false, rule: next.id, unrunnable: [...unrunnable, next.id] }
    : { allowed: true, rule: null, unrunnable }
}

/** May this key log in under this name on this device? Whether the key was proved is not asked here. */
export async function keyFits(
  key: { readonly username: string; readonly filter: DeviceFilter },
  login: { readonly username: string; readonly device: FilteredDevice },
): Promise<boolean> {
  // A key that cannot be told to fit fits nobody.
  return (await matchesAll(about(key, login), key.filter, login.device, new Work())) === true
}

type Pair = readonly [source: string, text: string]

function about(
  { username, filter }: Pick<Rule, 'username' | 'filter'>,
  login: { readonly username: string; readonly device: FilteredDevice },
): Pair[] {
  const pairs: Pair[] = [[username, login.username]]
  return 'hostname' in filter ? [...pairs, [filter.hostname, login.device.name]] : pairs
}

/**
 * Whether all patterns match, and a tag does; undefined if nothing is known to differ and something cannot be
 * told.
 */
async function matchesAll(
  pairs: readonly Pair[],
  filter: DeviceFilter,
  device: FilteredDevice,
  work: Work,
): Promise<boolean | undefined> {
  if ('tags' in filter && !filter.tags.some((tag) => device.tags.includes(tag))) return false
  let all: true | undefined = true
  for (const [source, text] of pairs) {
    const found = work.matches(source, text)
    if (found === false) return false
    if (found === undefined) all = undefined
    if (work.isLong()) await setImmediate()
  }
  return all
}

/** The steps that are made for one decision. */
class Work {
  #steps = 0
  /** Since others had their turn. */
  #inThisGo = 0

  /** Undefined if the pattern cannot be run, or not within the bound. */
  matches(source: string, text: string): boolean | undefined {
    if (this.#steps >= mostSteps) return undefined
    const pattern = runnable(source, (steps) => this.#spend(steps))
    if (!pattern) return undefined
    this.#spend(pattern.size * (text.length + 1))
    return this.#steps > mostSteps ? undefined : pattern.isIn(text)
  }

  /** Whether it is time to let others be served. */
  isLong(): boolean {
    if (this.#inThisGo < stepsInOneGo) return false
    this.#inThisGo = 0
    return true
  }

  #spend(steps: number): void {
    this.#steps += steps
    this.#inThisGo += steps
  }
}
