// The server about itself: its version and addresses, which agents ask for first; the install script; health;
// the figures of a namespace; and the first set-up, which needs the one-time code that the first start
// printed.
import { interfaceVersion } from '@hawser/contract'
import { Failure } from '@hawser/contract/failures'
import { neighbourhood } from '../../kit/address.ts'
import { statsDays_most } from '@hawser/contract/system'
import { BoundedMap } from '../../kit/bounded-map.ts'
import { day_ms, iso, minute_ms, type Clock } from '../../kit/clock.ts'
import { newUuid } from '../../kit/ids.ts'
import type { Vault } from '../../kit/secrets.ts'
import type { Stores } from '../../storage/stores.ts'
import type { RequestOrigin } from '../callers/callers.ts'
import { installScript } from '../devices/install.ts'
import { fiveTries, type Lockout } from '../people/lockout.ts'
import type { NamespaceAdministration } from '../namespaces/namespaces.ts'
import type { Presence } from '../devices/presence.ts'
import type { Rules } from '../callers/rules.ts'
import type { SignIn } from '../people/sign-in.ts'
import type { UserAdministration } from '../people/users.ts'

export interface SystemParts {
  stores: Stores
  vault: Vault
  clock: Clock
  lockout: Lockout
  signIn: SignIn
  presence: Presence
  users: UserAdministration
  namespaces: NamespaceAdministration
  /** The public address, where one is set. */
  url: string
  sshPort: number
  /** Whether there is a mail server. */
  hasMail: boolean
  /** Throws a Failure that says what is missing, if anything is. */
  ready: () => Promise<void>
  /** The state of the disk with the data folder. */
  disk: () => 'ok' | 'low' | 'full'
}

/** host[:port] and nothing else, because it comes from a header and ends up in a script. */
const plainHost = /^(\[[0-9a-fA-F:.]+\]|[A-Za-z0-9.-]+)(:\d{1,5})?$/

/** Namespaces whose figures by day are remembered. */
const mostCounted = 1_000

const dayOf = (ms: number): string => iso(ms).slice(0, 10)

export interface SystemRules extends Rules<'system'> {
  setupCode(): Promise<string | undefined>
  /** The address of the server: the one that is set, else the one that the caller typed. */
  addressOf(from: RequestOrigin): string
}

export function system(parts: SystemParts): SystemRules {
  const { stores, vault, clock } = parts

  const hostOf = (from: RequestOrigin): string => {
    if (parts.url) return new URL(parts.url).host
    return plainHost.test(from.host) ? from.host : 'localhost'
  }
  const addressOf = (from: RequestOrigin): string =>
    parts.url || `${from.secure ? 'https' : 'http'}://${hostOf(from)}`

  const sshOf = (from: RequestOrigin): string => `${hostOf(from).replace(/:\d+$/, '')}:${parts.sshPort}`

  const setupToken = (hash: string) => ({
    kind: 'setup' as const,
    hash,
    user_id: null,
    expires_at: iso(clock.now() + 365 * day_ms),
  })

  async function countDays(tenant_id: string, now: number) {
    const since = dayOf(now - statsDays_most * day_ms)
    const { traffic, sessions } = stores.of(tenant_id)
    const [used, begun] = await Promise.all([traffic.allByDay(since), sessions.countsByDay(since)])
    return { used: new Map(used.map((one) => [one.day, one])), begun }
  }
  const counted = new BoundedMap<string, { until: number; figures: ReturnType<typeof countDays> }>(
    mostCounted,
  )

  /** Reads all devices and sessions of a month, so that everybody in the namespace gets the same for a minute. */
  function countedByDay(tenant_id: string, now: number): ReturnType<typeof countDays> {
    const known = counted.get(tenant_id)
    if (known && known.until > now) return known.figures
    const figures = countDays(tenant_id, now)
    counted.set(tenant_id, { until: now + minute_ms, figures })
    figures.catch(() => counted.delete(tenant_id))
    return figures
  }

  return {
    addressOf,

    async info(_, from) {
      return {
        version: interfaceVersion,
        endpoints: { api: hostOf(from), ssh: sshOf(from) },
        setup: await stores.users.anyFounder(),
        mail: parts.hasMail,
      }
    },

    install: ({ query }, from) => installScript({ ...query, server: addressOf(from), ssh: sshOf(from) }),

    async healthcheck() {
      await parts.ready()
      const state = parts.disk()
      return { answer: undefined, headers: state === 'ok' ? {} : { 'x-disk': state } }
    },

    async stats(_, { tenant_id }) {
      // Lists do so, too, so that both show the same.
      await parts.presence.settle()
      const tallies = await stores.of(tenant_id).devices.tallies()
      const of = (subject: string): number => tallies.get(subject) ?? 0
      return {
        registered_devices: of('devices.accepted'),
        online_devices: of('online.accepted'),
        pending_devices: of('devices.pending'),
        rejected_devices: of('devices.rejected'),
        active_sessions: of('sessions.active'),
      }
    },

    async statsByDay({ query }, { tenant_id }) {
      const now = clock.now()
      await parts.presence.settle()
      const [{ used, begun }, tallies] = await Promise.all([
        countedByDay(tenant_id, now),
        stores.of(tenant_id).devices.tallies(),
      ])
      const online = tallies.get('online.accepted') ?? 0
      return {
        days: Array.from({ length: query.days }, (_, index) => {
          const ago = query.days - 1 - index
          const day = dayOf(now - ago * day_ms)
          const { devices = 0, bytes = 0 } = used.get(day) ?? {}
          // Devices that connected within this hour are not among those whose bytes are counted.
          return {
            day,
            sessions: begun.get(day) ?? 0,
            devices: Math.max(devices, ago === 0 ? online : 0),
            bytes,
          }
        }),
      }
    },

    async setup({ body }, caller) {
      const { source } = caller
      const hash = vault.mark('setup', body.code)
      const wrong = () => new Failure('wrongToken')
      const right =
        !(await stores.users.anyFounder()) && (await stores.tokens.find('setup', hash, iso(clock.now())))
      // Wrong codes count against the address that sends them. The right code is never locked out, however
      // many wrong ones come from the same address: nobody guesses its 122 random bits.
      if (!right)
        await parts.lockout.judge(`setup ${neighbourhood(source)}`, fiveTries, wrong, () =>
          Promise.resolve(undefined),
        )
      const taken =
        body.namespace === undefined
          ? undefined
          : await stores.namespaces.findByName(body.namespace.toLowerCase())
      if (taken) throw new Failure('takenFields', { fields: ['namespace'] })
      if (!(await stores.tokens.spend('setup', hash, iso(clock.now())))) throw wrong()
      try {
        const user = await parts.users.create(body, true, caller)
        await parts.namespaces.create(user.id, body.namespace ?? nameOf(user.username), undefined, caller)
        return await parts.signIn.signedIn(user, { method: 'set-up', from: caller })
      } catch (error) {
        // No user was created, so the code stays good for another try. Once there is a user it is worthless.
        await stores.tokens.insert(setupToken(hash))
        throw error
      }
    },

    /** A new set-up code while only people who registered have an account. The previous code ends. */
    async setupCode() {
      if (await stores.users.anyFounder()) return undefined
      const code = newUuid()
      await stores.tokens.removeKind('setup')
      await stores.tokens.insert(setupToken(vault.mark('setup', code)))
      return code
    },
  }
}

/** The name of the first namespace when the user gave none. */
function nameOf(username: string): string {
  return (
    username
      .toLowerCase()
      .replaceAll(/[^a-z0-9-]/g, '-')
      .replace(/^-+/, '') || 'home'
  )
}
