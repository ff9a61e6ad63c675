// The server about itself: what agents ask first, how to install one, health, figures of a namespace, and the first
// set-up, which needs the one-time code that the first start printed.
import { interfaceVersion } from '@hawser/contract'
import { Failure } from '@hawser/contract/failures'
import { day_ms, iso, type Clock } from '../kit/clock.ts'
import { newUuid } from '../kit/ids.ts'
import type { Vault } from '../kit/secrets.ts'
import type { Stores } from '../storage/stores.ts'
import type { From } from './callers.ts'
import { fiveTries, type Lockout } from './lockout.ts'
import type { NamespaceAdministration } from './namespaces.ts'
import type { Presence } from './presence.ts'
import type { Rules } from './rules.ts'
import type { SignIn } from './sign-in.ts'
import type { UserAdministration } from './users.ts'

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
  ready: () => Promise<boolean>
}

/** host[:port] with nothing else in it: it comes from a header and ends up in a script. */
const plainHost = /^(\[[0-9a-fA-F:.]+\]|[A-Za-z0-9.-]+)(:\d{1,5})?$/

export function system(parts: SystemParts): Rules<'system'> & { setupCode(): Promise<string | undefined> } {
  const { stores, vault, clock } = parts

  const hostOf = (from: From): string => {
    if (parts.url) return new URL(parts.url).host
    return plainHost.test(from.host) ? from.host : 'localhost'
  }
  const addressOf = (from: From): string => parts.url || `${from.secure ? 'https' : 'http'}://${hostOf(from)}`

  const setupToken = (hash: string) => ({ kind: 'setup' as const, hash, user_id: null, expires_at: iso(clock.now() + 365 * day_ms) })

  return {
    async info(_, from) {
      const host = hostOf(from)
      return {
        version: interfaceVersion,
        endpoints: { api: host, ssh: `${host.replace(/:\d+$/, '')}:${parts.sshPort}` },
        setup: await stores.users.any(),
      }
    },

    install: ({ query }, from) => installScript({ ...query, server: addressOf(from) }),

    async healthcheck() {
      if (!(await parts.ready())) throw new Failure('unavailable', { retryAfter: 5 })
    },

    async stats(_, { tenant_id }) {
      // As lists do, so that both show the same.
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

    async setup({ body }) {
      const hash = vault.mark('setup', body.code)
      const wrong = () => new Failure('wrongToken')
      // One count for everybody: there is one code, whoever guesses at it.
      await parts.lockout.judge('setup', fiveTries, wrong, async () => {
        if (await stores.users.any()) return undefined
        return stores.tokens.find('setup', hash, iso(clock.now()))
      })
      const taken = body.namespace === undefined ? undefined : await stores.namespaces.findByName(body.namespace.toLowerCase())
      if (taken) throw new Failure('takenFields', { fields: ['namespace'] })
      if (!(await stores.tokens.spend('setup', hash, iso(clock.now())))) throw wrong()
      try {
        const user = await parts.users.create(body, true)
        await parts.namespaces.create(user.id, body.namespace ?? nameOf(user.username))
        return await parts.signIn.signedIn(user)
      } catch (error) {
        // Nobody was made, so the code is good for another try; once there is a user it is worth nothing anyway.
        await stores.tokens.insert(setupToken(hash))
        throw error
      }
    },

    /** A fresh set-up code while there is no user; the code of an earlier start ends with it. */
    async setupCode() {
      if (await stores.users.any()) return undefined
      const code = newUuid()
      await stores.tokens.removeKind('setup')
      await stores.tokens.insert(setupToken(vault.mark('setup', code)))
      return code
    },
  }
}

/** A namespace for someone who named none. */
function nameOf(username: string): string {
  return (
    username
      .toLowerCase()
      .replaceAll(/[^a-z0-9-]/g, '-')
      .replace(/^-+/, '') || 'home'
  )
}

interface Install {
  server: string
  tenant_id?: string
  keepalive_interval?: string
  preferred_hostname?: string
  preferred_identity?: string
}

/** Every value was checked against a pattern without quotes, blanks or `$`, so single quotes hold it. */
function installScript(wanted: Install): string {
  const variables: [string, string | undefined][] = [
    ['SHELLHUB_SERVER_ADDRESS', wanted.server],
    ['SHELLHUB_TENANT_ID', wanted.tenant_id],
    ['SHELLHUB_KEEPALIVE_INTERVAL', wanted.keepalive_interval],
    ['SHELLHUB_PREFERRED_HOSTNAME', wanted.preferred_hostname],
    ['SHELLHUB_PREFERRED_IDENTITY', wanted.preferred_identity],
  ]
  const settings = variables.flatMap(([name, value]) => (value ? [`  -e ${name}='${value}' \\`] : []))
  return [
    '#!/bin/sh',
    '# Starts an agent for this server in a container.',
    'set -eu',
    ...(wanted.tenant_id ? [] : ['echo "Add ?tenant_id=<id of your namespace> to the address of this script." >&2', 'exit 1']),
    'if ! command -v docker >/dev/null 2>&1; then',
    '  echo "Docker is needed to run the agent this way: https://docs.docker.com/engine/install/" >&2',
    '  exit 1',
    'fi',
    '[ "$(id -u)" = 0 ] && SUDO= || SUDO=sudo',
    '$SUDO docker rm -f shellhub >/dev/null 2>&1 || true',
    '$SUDO docker run -d --name=shellhub --restart=unless-stopped --privileged --net=host --pid=host \\',
    '  -v /:/host -v /dev:/dev -v /var/run/docker.sock:/var/run/docker.sock \\',
    '  -v /etc/passwd:/etc/passwd -v /etc/group:/etc/group -v /etc/resolv.conf:/etc/resolv.conf -v /var/run:/var/run -v /var/log:/var/log -v /tmp:/tmp \\',
    "  -e SHELLHUB_PRIVATE_KEY='/host/etc/shellhub.key' \\",
    ...settings,
    `  shellhubio/agent:${interfaceVersion}`,
    '',
  ].join('\n')
}
