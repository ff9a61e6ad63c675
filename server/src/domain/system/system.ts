// The server about itself: version and addresses, which agents request first; the install script; health; and
// the first set-up, which needs the one-time code that the first start printed.
import { interfaceVersion } from '@hawser/contract'
import { Failure } from '@hawser/contract/failures'
import { neighbourhood } from '../../kit/address.ts'
import { day_ms, iso } from '../../kit/clock.ts'
import { newUuid } from '../../kit/ids.ts'
import type { With } from '../audit/parts.ts'
import type { RequestOrigin } from '../callers/callers.ts'
import { installScript } from '../devices/install.ts'
import { fiveTries, type Lockout } from '../people/lockout.ts'
import type { NamespaceAdministration } from '../namespaces/administration.ts'
import type { Presence } from '../devices/presence.ts'
import type { Rules } from '../callers/rules.ts'
import type { SignIn } from '../people/sign-in.ts'
import type { UserAdministration } from '../people/accounts.ts'
import { statistics } from './statistics.ts'

export interface SystemParts extends With<'stores' | 'vault' | 'clock'> {
  lockout: Lockout
  signIn: SignIn
  presence: Presence
  users: UserAdministration
  namespaces: NamespaceAdministration
  url: string
  sshPort: number
  hasMail: boolean
  /** Throws a Failure that says what is missing. */
  ready: () => Promise<void>
  disk: () => 'ok' | 'low' | 'full'
}

/** host[:port] and nothing else, because it comes from a header and ends up in a script. */
const plainHost = /^(\[[0-9a-fA-F:.]+\]|[A-Za-z0-9.-]+)(:\d{1,5})?$/

export interface SystemRules extends Rules<'system'> {
  setupCode(): Promise<string | undefined>
  /** The configured address, else the one that the caller typed. */
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

  return {
    ...statistics(parts),
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

    async setup({ body }, caller) {
      const { source } = caller
      const hash = vault.mark('setup', body.code)
      const wrong = () => new Failure('wrongToken')
      const right =
        !(await stores.users.anyFounder()) && (await stores.tokens.find('setup', hash, iso(clock.now())))
      // Wrong codes count against their address. The right code is never locked out: nobody guesses its 122
      // random bits.
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

    /** For a server on which only people who registered have an account. The previous code ends. */
    async setupCode() {
      if (await stores.users.anyFounder()) return undefined
      const code = newUuid()
      await stores.tokens.removeKind('setup')
      await stores.tokens.insert(setupToken(vault.mark('setup', code)))
      return code
    },
  }
}

function nameOf(username: string): string {
  return (
    username
      .toLowerCase()
      .replaceAll(/[^a-z0-9-]/g, '-')
      .replace(/^-+/, '') || 'home'
  )
}
