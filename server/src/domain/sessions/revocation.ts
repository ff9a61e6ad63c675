// Ends the connections that a change forbids: one table from news to effects. A device that is no longer
// accepted loses its sessions; a rejected or deleted one also its tunnel. A person who loses a role, a
// sign-in or an API key loses the terminals, live views and services opened with it; a lost membership or API key
// also ends the sessions of every client. An API key can do no more than its creator, so its held sessions end
// when the creator's role changes. Keys expire without news, so keys with open sessions are checked
// regularly. A deleted device or namespace loses its recordings. When news may have been missed, every open
// connection is checked against the database.
// The rule that makes a change publishes the news, on any node; its effects happen on the node with the
// connection.
import { Failure } from '@hawser/contract/failures'
import { defined } from '@hawser/contract/defined'
import type { Bus, News } from '../../bus/bus.ts'
import { minute_ms, second_ms } from '../../kit/clock.ts'
import type { RecordingSettings } from '../../recording/tap.ts'
import type { SessionPolicy } from '../access/session-policy.ts'
import type { With } from '../audit/parts.ts'
import {
  isApiKey,
  isUser,
  reasons,
  type Connections,
  type SessionLogin,
  type OpenSession,
} from './connections.ts'
import { checkedRows, loginRights } from './login-rights.ts'
import {
  checkOf,
  disconnect,
  endSessionsOf,
  policyOfSessions,
  type Check,
  type CheckRange,
} from './rechecks.ts'

export { reasons, type Connections, type SessionLogin, type OpenSession, type Person } from './connections.ts'
export { policyOfSessions } from './rechecks.ts'

export interface RevocationParts extends With<'bus' | 'stores' | 'clock'> {
  /** Runs work in the background; the name appears in the log if it fails. */
  later(name: string, work: () => Promise<void>): void
  sweepRecordings(): Promise<void>
  /** Whether an exhausted data budget stops recordings of sessions on the device. */
  stopsRecordings(tenant_id: string, device_uid: string): Promise<boolean>
  /** How often open connections are checked, and which, because news may be missed; undefined: never. */
  recheck?: { readonly every_ms: number; what(): CheckRange | undefined } | undefined
}

export interface Revocation extends Disposable {
  /** Makes changes take effect on what is open here, until the answer is disposed. */
  apply(open: Connections): Disposable
  recordingOf(tenant_id: string, device_uid: string): Promise<RecordingSettings>
  /** Why a login no longer counts: its membership or API key is gone, or its public key no longer allows it. */
  lostRight(login: SessionLogin): Promise<string | undefined>
  mayBeHeld(held: SessionLogin): Promise<boolean>
  /** A text that changes with the role, membership or password of the person; undefined: they have no access. */
  standing(held: Pick<SessionLogin, 'tenant_id' | 'person'>): Promise<string | undefined>
  /** Throws while the database is away. */
  policyOf(tenant_id: string): Promise<SessionPolicy>
}

const retry_ms = 5_000
const expiry_ms = 10 * second_ms

export function revocation(parts: RevocationParts): Revocation {
  const { bus, stores, clock, later, sweepRecordings } = parts
  const rights = () => loginRights(stores, checkedRows(stores, clock))

  async function recordingOf(tenant_id: string, device_uid: string): Promise<RecordingSettings> {
    const namespace = await stores.namespaces.find(tenant_id)
    const isWanted = namespace?.session_record === 1
    const overBudget = isWanted && (await parts.stopsRecordings(tenant_id, device_uid))
    return {
      record: isWanted && !overBudget,
      ...defined({ overBudget: overBudget || undefined }),
      continueUnrecorded: namespace?.continue_unrecorded === 1,
      mask: namespace?.mask_secrets === 0 ? false : (JSON.parse(namespace?.mask_after ?? '[]') as string[]),
    }
  }

  // Recordings of a deleted device or namespace should be gone at once, not at the next sweep. The node that
  // made the change does it, also when nothing is open there.
  const sweep = (): void => later('sweep', sweepRecordings)
  const sweeping = [
    bus.hear('device.changed', ({ status }) => void (status === 'gone' && sweep())),
    bus.hear('namespace.changed', sweep),
  ]

  return {
    recordingOf,
    lostRight: (login) => rights().lostRight(login),
    mayBeHeld: (held) => rights().mayBeHeld(held),
    standing: (held) => rights().standing(held),
    async policyOf(tenant_id) {
      const namespace = await stores.namespaces.find(tenant_id)
      if (!namespace) throw new Failure('notFound')
      return policyOfSessions(namespace)
    },
    apply: (open) => applied({ ...parts, recordingOf }, open),
    [Symbol.dispose]: () => sweeping.forEach((one) => one[Symbol.dispose]()),
  }
}

type AppliedParts = RevocationParts & Pick<Revocation, 'recordingOf'>

function applied(parts: AppliedParts, open: Connections): Disposable {
  const { bus, later, recheck } = parts
  const work = retried(later)
  const newCheck = () => checkOf(parts, open)
  const table = effects(open, newCheck, work.untilDone)
  const hear = (what: keyof News): Disposable | undefined => {
    // The table has the matching effect for each kind of news, which the types cannot follow.
    const effect = table[what] as ((news: News[keyof News]) => void) | undefined
    return effect && bus.hear(what, effect)
  }
  let checks = 0
  const check = async (what: CheckRange): Promise<void> => {
    checks += 1
    await newCheck()
      .everything(what)
      .finally(() => (checks -= 1))
  }
  const hearing = [
    ...(Object.keys(table) as (keyof News)[]).map(hear),
    bus.missed(() => work.untilDone('news.missed', () => check('all'))),
  ]
  const rechecking =
    recheck &&
    setInterval(() => {
      const what = checks > 0 ? undefined : recheck.what()
      if (what) later('recheck', () => check(what))
    }, recheck.every_ms).unref()
  const expiring = setInterval(() => {
    if ([...open.sessions.values()].some((session) => isApiKey(session)))
      later('api-keys.expiry', () => newCheck().persons((session) => isApiKey(session)))
  }, expiry_ms).unref()
  return {
    [Symbol.dispose]() {
      clearInterval(expiring)
      hearing.forEach((one) => one?.[Symbol.dispose]())
      work[Symbol.dispose]()
      clearInterval(rechecking)
    },
  }
}

type Later = RevocationParts['later']

/** Repeats work until it succeeds: the news that caused it arrives only once. */
function retried(later: Later): { untilDone: Later } & Disposable {
  const retries = new Set<NodeJS.Timeout>()
  let over = false
  function untilDone(name: string, work: () => Promise<void>): void {
    later(name, async () => {
      try {
        await work()
      } catch (error) {
        const retry = setTimeout(() => {
          retries.delete(retry)
          untilDone(name, work)
        }, retry_ms).unref()
        retries.add(retry)
        if (over) clearTimeout(retry)
        throw error
      }
    })
  }
  return {
    untilDone,
    [Symbol.dispose]() {
      over = true
      retries.forEach((retry) => clearTimeout(retry))
    },
  }
}

/**
 * The connections to check when the database may change unheard: with several nodes, sessions while this node is cut off
 * from the others; with one, everything, because a command of the administrator may run on another machine.
 */
export const rechecks = (bus: Pick<Bus, 'connected'>, clustered: boolean): RevocationParts['recheck'] =>
  clustered
    ? { every_ms: 10 * second_ms, what: () => (bus.connected ? undefined : 'sessions') }
    : { every_ms: minute_ms, what: () => 'all' }

type Effects = { readonly [K in keyof News]?: (news: News[K]) => void }

function effects(open: Connections, newCheck: () => Check, untilDone: Later): Effects {
  /** Ends held sessions whose person may not reattach as they were. */
  function endHeld(whose: (held: SessionLogin) => boolean): void {
    for (const session of open.sessions.values()) {
      const held = session.heldFor?.()
      if (held && whose(held)) session.end(reasons.notHeld)
    }
  }
  return {
    'session.closed': ({ uid }) => open.sessions.get(uid)?.end(reasons.closed),
    'device.changed': ({ tenant_id, uid, status }) => {
      if (status === 'rejected' || status === 'gone') disconnect(uid, open)
      else if (status !== 'accepted') {
        endSessionsOf(uid, open)
        open.tunnels.hangUp(uid)
      }
      open.connectors.deviceChanged(tenant_id)
    },
    'tunnel.taken': ({ uid, number }) => open.tunnels.yield(uid, number),
    'enrolmentKey.removed': ({ tenant_id, fingerprint }) => open.joined.removed(tenant_id, fingerprint),
    'connector.changed': ({ tenant_id, uid }) => open.connectors.changed(tenant_id, uid),
    'namespace.changed': ({ tenant_id }) =>
      untilDone('namespace.change', () => newCheck().namespace(tenant_id)),
    'member.changed': ({ tenant_id, user_id }) => {
      void open.recheckPeople((person) => person.user_id === user_id && person.tenant_id === tenant_id)
      endHeld((held) => held.tenant_id === tenant_id && isUser(held, user_id))
      // A member's API keys go with the membership, and change with its role.
      const mayBeTheirs = (session: OpenSession) =>
        session.tenant_id === tenant_id && (isUser(session, user_id) || isApiKey(session))
      untilDone('member.change', async () => {
        const check = newCheck()
        await check.heldOfKeys(tenant_id, user_id)
        await check.persons(mayBeTheirs)
      })
    },
    'invitation.revoked': ({ tenant_id, user_id }) =>
      void open.recheckPeople((person) => person.user_id === user_id && person.tenant_id === tenant_id),
    'user.changed': ({ user_id, only }) => {
      void open.recheckPeople((person) => person.user_id === user_id)
      if (only === 'sign-ins') return
      endHeld((held) => isUser(held, user_id))
      const mayBeTheirs = (session: OpenSession) => isUser(session, user_id) || isApiKey(session)
      untilDone('user.change', () => newCheck().persons(mayBeTheirs))
    },
    'apiKey.changed': ({ tenant_id, name }) => {
      void open.recheckPeople((person) => person.tenant_id === tenant_id)
      endHeld((held) => held.tenant_id === tenant_id && isApiKey(held, name))
      const isByKey = (session: OpenSession) => session.tenant_id === tenant_id && isApiKey(session)
      untilDone('apiKey.change', () => newCheck().persons(isByKey))
    },
    'publicKey.changed': ({ tenant_id, fingerprint }) =>
      endHeld((held) => held.tenant_id === tenant_id && held.key === fingerprint),
  }
}
