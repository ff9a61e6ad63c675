// What a change ends for those who are connected: one table from news to effects. A device that is no longer
// accepted loses its sessions; a rejected or deleted one loses its tunnel, too. A person who loses a role, a
// sign-in or an API key loses the terminals and live views opened with it; whoever loses the membership or
// the API key loses the sessions, too, whatever client they are in. An API key does no more than its maker
// may, so what is held for it ends when the maker's role changes; one that expires is as good as removed,
// which no news tell: keys with open sessions are asked for regularly. A deleted device or namespace
// loses its recordings. When news may have been missed, every open connection is checked against the
// database, with as many queries as there are people and namespaces, not sessions.
//
// The rule that makes a change publishes the news, on any node; the effects happen on the node that has the
// connection.
import { Failure } from '@hawser/contract/failures'
import type { SessionPerson } from '@hawser/contract/sessions'
import type { OwnPresence } from '@hawser/contract/sharing'
import type { Bus, News } from '../../bus/bus.ts'
import { second_ms, type Clock } from '../../kit/clock.ts'
import type { RecordingSettings } from '../../recording/tap.ts'
import type { NamespaceRow } from '../../storage/namespaces.ts'
import type { Stores } from '../../storage/stores.ts'
import { stillLetsIn, type PastLogin } from '../access/logins.ts'
import { policyOf } from '../access/policies.ts'
import { sessionPolicy, type SessionPolicy } from '../access/session-policy.ts'
import type { SharedTerminal, SharingDesk } from './sharing.ts'

/** A session that goes on here, between a client and a device. */
export interface OpenSession {
  readonly uid: string
  readonly tenant_id: string
  readonly device_uid: string
  /** Who opened it. */
  readonly person: SessionPerson
  /** Ends the session; the client shows the sentence. */
  end(sentence: string): void
  /** Starts or stops recording, from now on. */
  record(settings: RecordingSettings): void
  /** From now on this holds; what it forbids is ended. */
  restrict(policy: SessionPolicy): void
  /** So long it waits for its person when its client is lost from now on. */
  hold?(hold_s: number): void
  /** For whom it goes on without its client; undefined: it has a client. */
  heldFor?(): HeldFor | undefined
  /** The terminal that this channel of its recording shows, for others to type in. */
  shared?(channel: number): SharedTerminal | undefined
  /** For its person: who is in its terminals, now and at each change, and what they decide about them. */
  desk?(hear: (presence: OwnPresence) => void): SharingDesk
}

/** Who may come back to a held session, and how they logged in. */
export interface HeldFor extends PastLogin {
  readonly tenant_id: string
  readonly device_uid: string
  /** The MD5 fingerprint of the registered key that let them in; undefined: it was a password. */
  readonly key: string | undefined
  /**
   * Their `standing` when the session began, if nobody could hear of changes since; undefined:
   * it is not compared.
   */
  readonly standing?: string | undefined
  /** The session, if it may have been closed while no server had it. */
  readonly restored?: string | undefined
}

/** A person who has a terminal or a live view open, and the namespace of it. */
export interface Person {
  readonly user_id: string
  readonly tenant_id: string
}

/** What is open on this node. */
export interface Connections {
  readonly sessions: ReadonlyMap<string, OpenSession>
  readonly tunnels: {
    all(): Iterable<{ readonly device: { readonly uid: string; readonly tenant_id: string } }>
    /** Ends the tunnel once the agent has ended all that runs for people, within a bound. */
    drop(device_uid: string, why: string): void
    /** Makes the agent end all that runs for people; the tunnel stays. */
    hangUp(device_uid: string): void
    /** Gives the device up if another node has a newer tunnel than this. */
    yield(device_uid: string, number: number): void
  }
  /** Devices that joined by SSH, with an enrolment key. */
  readonly joined: {
    removed(tenant_id: string, fingerprint: string): void
    recheck(): Promise<void>
  }
  readonly connectors: {
    deviceChanged(tenant_id: string): void
    changed(tenant_id: string, uid: string): void
    namespaceRemoved(tenant_id: string): void
  }
  /**
   * Makes each terminal and live view of these people ask the database whether it may stay open. Resolves
   * when each has asked; one that got no answer asks again by itself.
   */
  recheckPeople(whose: (person: Person) => boolean): Promise<void>
}

export const reasons = {
  unavailable: 'The device is no longer available.',
  refused: 'The device may no longer connect.',
  closed: 'The session was closed by an administrator.',
  notHeld: 'Nobody may come back to the session any more.',
  notMember: 'You are no longer a member of the namespace.',
  noKey: 'The API key that the session was opened with is gone.',
  noPublicKey: 'The public key that the session was opened with is gone.',
  changedPublicKey: 'The public key that the session was opened with no longer allows it.',
} as const

/** What is checked: with or without the tunnels of devices. */
type Extent = 'all' | 'sessions'

export interface RevocationParts {
  bus: Bus
  stores: Stores
  clock: Clock
  /** Runs work that nobody waits for; the name appears in the log if it fails. */
  later(name: string, work: () => Promise<void>): void
  /** Removes the recordings of deleted devices and namespaces. */
  sweepRecordings(): Promise<void>
  /** Whether a data budget that is used up says that sessions on the device are not recorded. */
  stopsRecordings(tenant_id: string, device_uid: string): Promise<boolean>
  /** How often which open connections are checked because changes may go unheard; undefined: never. */
  recheck?: { readonly every_ms: number; what(): Extent | undefined } | undefined
}

export interface Revocation extends Disposable {
  /** From now on changes take effect on what is open here, until this is disposed. */
  apply(open: Connections): Disposable
  /** Whether the namespace wants sessions on the device recorded now. */
  recordingOf(tenant_id: string, device_uid: string): Promise<RecordingSettings>
  /**
   * Why a login no longer counts: a sentence if its membership or API key is gone, or if its public key no longer
   * allows it.
   */
  lostRight(login: HeldFor): Promise<string | undefined>
  /** Whether a session may wait for its person. */
  mayWait(held: HeldFor): Promise<boolean>
  /**
   * What changes with a role, a membership or a password of the person; undefined: they are
   * not here any more.
   */
  standing(held: Pick<HeldFor, 'tenant_id' | 'person'>): Promise<string | undefined>
  /** What the namespace forbids now. Throws while the database is away. */
  policyOf(tenant_id: string): Promise<SessionPolicy>
}

/** What is forbidden in sessions of the namespace. */
export const policyOfSessions = (namespace: Pick<NamespaceRow, 'policy'>): SessionPolicy =>
  sessionPolicy(policyOf(namespace))

/** Between two attempts, when the database does not answer. */
const retry_ms = 5_000
/** At most this many rows are read by one query. */
const batch = 500
/** How often the API keys of open sessions are looked at, which may expire. */
const expiry_ms = 10 * second_ms

type Table = { readonly [K in keyof News]?: (news: News[K], open: Applied) => void }

interface Applied extends Connections {
  /** As `later`, and again until the work succeeds: nobody will tell these news a second time. */
  untilDone(name: string, work: () => Promise<void>): void
}

export function revocation(parts: RevocationParts): Revocation {
  const { bus, stores, later, sweepRecordings, recheck } = parts
  const newQuestions = () => questions(stores, parts.clock)

  async function recordingOf(tenant_id: string, device_uid: string): Promise<RecordingSettings> {
    const namespace = await stores.namespaces.find(tenant_id)
    const isWanted = namespace?.session_record === 1
    const overBudget = isWanted && (await parts.stopsRecordings(tenant_id, device_uid))
    return {
      record: isWanted && !overBudget,
      ...(overBudget ? { overBudget } : {}),
      continueUnrecorded: namespace?.continue_unrecorded === 1,
      mask: namespace?.mask_secrets === 0 ? false : (JSON.parse(namespace?.mask_after ?? '[]') as string[]),
    }
  }

  async function standing(
    { tenant_id, person }: Pick<HeldFor, 'tenant_id' | 'person'>,
    ask = newQuestions(),
  ): Promise<string | undefined> {
    if (person.kind === 'api-key') {
      const key = await ask.apiKey(tenant_id, person.id)
      return key && `${key.role} ${key.creator_role} ${key.creator_epoch}`
    }
    if (person.kind !== 'user') return ''
    const found = await ask.user(tenant_id, person.id)
    return found && found.role !== null ? `${found.role} ${found.member_epoch} ${found.epoch}` : undefined
  }

  async function lostPerson(
    held: Pick<HeldFor, 'tenant_id' | 'person'>,
    ask: Questions,
  ): Promise<string | undefined> {
    if ((await standing(held, ask)) !== undefined) return undefined
    return held.person.kind === 'api-key' ? reasons.noKey : reasons.notMember
  }

  /** `inDoubt`: what counts where it cannot be found out now whether the key lets the login in. */
  async function lostRight(
    login: HeldFor,
    ask = newQuestions(),
    inDoubt = true,
  ): Promise<string | undefined> {
    const lost = await lostPerson(login, ask)
    if (lost !== undefined || login.key === undefined) return lost
    const [key, device] = await Promise.all([
      ask.publicKey(login.tenant_id, login.key),
      ask.device(login.tenant_id, login.device_uid),
    ])
    if (!key) return reasons.noPublicKey
    const letsIn = device !== undefined && ((await stillLetsIn(key, device, login)) ?? inDoubt)
    return letsIn ? undefined : reasons.changedPublicKey
  }

  async function mayWait(held: HeldFor, ask = newQuestions()): Promise<boolean> {
    const { tenant_id, person, key, standing: before, restored } = held
    if (restored !== undefined && (await stores.of(tenant_id).sessions.find(restored))?.active !== 1)
      return false
    const namespace = await ask.namespace(tenant_id)
    if (!namespace || namespace.hold_sessions === 0) return false
    const isAnybody = person.kind === 'unknown' && key === undefined
    if (isAnybody && namespace.hold_unknown === 0) return false
    if ((await lostRight(held, ask, false)) !== undefined) return false
    return before === undefined || before === (await standing(held, ask))
  }

  /** Ends held sessions: whoever they wait for may not come back as they were. */
  function endHeld(open: Connections, whose: (held: HeldFor) => boolean): void {
    for (const session of open.sessions.values()) {
      const held = session.heldFor?.()
      if (held && whose(held)) session.end(reasons.notHeld)
    }
  }

  /** Ends what is held for API keys that this member has made. */
  async function endHeldOfKeys(
    open: Connections,
    tenant_id: string,
    user_id: string,
    ask: Questions,
  ): Promise<void> {
    for (const session of open.sessions.values()) {
      const held = session.heldFor?.()
      if (held?.tenant_id !== tenant_id || !isApiKey(held)) continue
      if ((await ask.apiKey(tenant_id, held.person.id))?.created_by === user_id) session.end(reasons.notHeld)
    }
  }

  /** Ends held sessions of a namespace whose person may not come back. */
  async function recheckHeld(
    tenant_id: string,
    sessions: readonly OpenSession[],
    ask = newQuestions(),
  ): Promise<void> {
    const held = sessions.flatMap((session) => {
      const whose = session.heldFor?.()
      return whose ? [{ session, ...whose }] : []
    })
    const records = await byUid(
      stores.of(tenant_id).sessions.findMany,
      held.flatMap(({ restored }) => restored ?? []),
    )
    const devices = await byUid(
      stores.of(tenant_id).devices.findMany,
      held.flatMap(({ key, device_uid }) => (key === undefined ? [] : device_uid)),
    )
    const known = { ...ask, device: async (_: string, uid = '') => devices.get(uid) }
    for (const { session, restored, ...whose } of held) {
      const isClosed = restored !== undefined && records.get(restored)?.active !== 1
      if (isClosed || !(await mayWait(whose, known))) session.end(reasons.notHeld)
    }
  }

  /** Ends sessions whose person has lost the membership, or the API key, that they were opened with. */
  async function recheckPersons(
    open: Connections,
    whose: (session: OpenSession) => boolean,
    ask = newQuestions(),
  ): Promise<void> {
    for (const session of [...open.sessions.values()].filter(whose)) {
      const { person, tenant_id } = session
      // A public key that is removed later ends only what is held.
      const lost = await lostPerson({ tenant_id, person }, ask)
      if (lost !== undefined) session.end(lost)
    }
  }

  function endSessionsOf(device_uid: string, open: Connections): void {
    for (const session of open.sessions.values())
      if (session.device_uid === device_uid) session.end(reasons.unavailable)
  }

  function disconnect(device_uid: string, open: Connections): void {
    endSessionsOf(device_uid, open)
    open.tunnels.drop(device_uid, reasons.refused)
  }

  async function namespaceChanged(tenant_id: string, open: Connections): Promise<void> {
    const namespace = await stores.namespaces.find(tenant_id)
    // Settings say who may type in sessions of others, too.
    void open.recheckPeople((person) => person.tenant_id === tenant_id)
    if (!namespace) {
      open.connectors.namespaceRemoved(tenant_id)
      // All of them: the tunnel of a session may be on another node, or gone.
      for (const session of open.sessions.values())
        if (session.tenant_id === tenant_id) session.end(reasons.unavailable)
      for (const { device } of open.tunnels.all())
        if (device.tenant_id === tenant_id) open.tunnels.drop(device.uid, reasons.refused)
      return
    }
    const sessions = [...open.sessions.values()].filter((session) => session.tenant_id === tenant_id)
    await recheckHeld(tenant_id, sessions)
    const policy = policyOfSessions(namespace)
    for (const session of sessions) {
      session.restrict(policy)
      session.hold?.(namespace.hold_sessions)
    }
    for (const [uid, its] of Map.groupBy(sessions, ({ device_uid }) => device_uid)) {
      const settings = await recordingOf(tenant_id, uid)
      for (const session of its) session.record(settings)
    }
  }

  async function recheckTunnels(open: Connections): Promise<void> {
    await open.joined.recheck()
    const devices = [...open.tunnels.all()].map(({ device }) => device)
    for (const [tenant_id, its] of Map.groupBy(devices, (device) => device.tenant_id)) {
      const rows = await byUid(
        stores.of(tenant_id).devices.findMany,
        its.map(({ uid }) => uid),
      )
      for (const { uid } of its) {
        const row = rows.get(uid)
        if (!row || row.status === 'rejected') disconnect(uid, open)
        else open.tunnels.yield(uid, row.tunnel)
      }
    }
  }

  /** Checks the sessions of a namespace against its policy, their devices and their records. */
  async function recheckSessions(
    tenant_id: string,
    sessions: readonly OpenSession[],
    ask: Questions,
  ): Promise<void> {
    const namespace = await ask.namespace(tenant_id)
    const policy = namespace && policyOfSessions(namespace)
    const mine = stores.of(tenant_id)
    const devices = await byUid(
      mine.devices.findMany,
      sessions.map(({ device_uid }) => device_uid),
    )
    const records = await byUid(
      mine.sessions.findMany,
      sessions.map(({ uid }) => uid),
    )
    for (const session of sessions) {
      if (policy) session.restrict(policy)
      if (namespace) session.hold?.(namespace.hold_sessions)
      if (devices.get(session.device_uid)?.status !== 'accepted') session.end(reasons.unavailable)
      const record = records.get(session.uid)
      // While this node was cut off, another one may have closed its sessions in the database; their records
      // then name no node. Nobody closed such a session: this node writes its record again.
      if (record?.active === 0 && record.node !== '') session.end(reasons.closed)
    }
  }

  /** When news may have been missed: checks what is open against the database. */
  async function recheckOpen(open: Connections, what: Extent): Promise<void> {
    // People are asked for at the same time, also while the database fails the rest.
    const people = open.recheckPeople(() => true)
    try {
      if (what === 'all') await recheckTunnels(open)
      const ask = newQuestions()
      const byNamespace = Map.groupBy(open.sessions.values(), ({ tenant_id }) => tenant_id)
      for (const [tenant_id, sessions] of byNamespace) await recheckHeld(tenant_id, sessions, ask)
      await recheckPersons(open, () => true, ask)
      for (const [tenant_id, sessions] of byNamespace) await recheckSessions(tenant_id, sessions, ask)
    } finally {
      await people
    }
  }

  const table: Table = {
    'session.closed': ({ uid }, { sessions }) => sessions.get(uid)?.end(reasons.closed),
    'device.changed': ({ tenant_id, uid, status }, open) => {
      if (status === 'rejected' || status === 'gone') disconnect(uid, open)
      else if (status !== 'accepted') {
        endSessionsOf(uid, open)
        open.tunnels.hangUp(uid)
      }
      open.connectors.deviceChanged(tenant_id)
    },
    'tunnel.taken': ({ uid, number }, { tunnels }) => tunnels.yield(uid, number),
    'enrolmentKey.removed': ({ tenant_id, fingerprint }, { joined }) =>
      joined.removed(tenant_id, fingerprint),
    'connector.changed': ({ tenant_id, uid }, { connectors }) => connectors.changed(tenant_id, uid),
    'namespace.changed': ({ tenant_id }, open) =>
      open.untilDone('namespace.change', () => namespaceChanged(tenant_id, open)),
    'member.changed': ({ tenant_id, user_id }, open) => {
      void open.recheckPeople((person) => person.user_id === user_id && person.tenant_id === tenant_id)
      endHeld(open, (held) => held.tenant_id === tenant_id && isUser(held, user_id))
      // Their API keys go with the membership, and change with its role.
      const mayBeTheirs = (session: OpenSession) =>
        session.tenant_id === tenant_id && (isUser(session, user_id) || isApiKey(session))
      open.untilDone('member.change', async () => {
        const ask = newQuestions()
        await endHeldOfKeys(open, tenant_id, user_id, ask)
        await recheckPersons(open, mayBeTheirs, ask)
      })
    },
    'invitation.revoked': ({ tenant_id, user_id }, open) =>
      void open.recheckPeople((person) => person.user_id === user_id && person.tenant_id === tenant_id),
    'user.changed': ({ user_id, only }, open) => {
      void open.recheckPeople((person) => person.user_id === user_id)
      if (only === 'sign-ins') return
      endHeld(open, (held) => isUser(held, user_id))
      const mayBeTheirs = (session: OpenSession) => isUser(session, user_id) || isApiKey(session)
      open.untilDone('user.change', () => recheckPersons(open, mayBeTheirs))
    },
    'apiKey.changed': ({ tenant_id, name }, open) => {
      void open.recheckPeople((person) => person.tenant_id === tenant_id)
      endHeld(open, (held) => held.tenant_id === tenant_id && isApiKey(held, name))
      const isByKey = (session: OpenSession) => session.tenant_id === tenant_id && isApiKey(session)
      open.untilDone('apiKey.change', () => recheckPersons(open, isByKey))
    },
    'publicKey.changed': ({ tenant_id, fingerprint }, open) =>
      endHeld(open, (held) => held.tenant_id === tenant_id && held.key === fingerprint),
  }

  // A person who deletes a device or a namespace expects its recordings to be gone at once, not at the next
  // sweep. This concerns the database, so it happens on the node that made the change, also when nothing is
  // open there.
  const sweep = (): void => later('sweep', sweepRecordings)
  const sweeping = [
    bus.hear('device.changed', ({ status }) => void (status === 'gone' && sweep())),
    bus.hear('namespace.changed', sweep),
  ]

  return {
    recordingOf,
    lostRight: async (login) => lostRight(login),
    mayWait,
    standing,
    async policyOf(tenant_id) {
      const namespace = await stores.namespaces.find(tenant_id)
      if (!namespace) throw new Failure('notFound')
      return policyOfSessions(namespace)
    },
    apply(connections) {
      const retries = new Set<NodeJS.Timeout>()
      let over = false
      const open: Applied = {
        ...connections,
        untilDone(name, work) {
          later(name, async () => {
            try {
              await work()
            } catch (error) {
              const retry = setTimeout(() => {
                retries.delete(retry)
                open.untilDone(name, work)
              }, retry_ms).unref()
              retries.add(retry)
              if (over) clearTimeout(retry)
              throw error
            }
          })
        },
      }
      const hear = (what: keyof News): Disposable | undefined => {
        // The table has for each kind of news the effect of that kind; this is what the types cannot follow.
        const effect = table[what] as ((news: News[keyof News], open: Applied) => void) | undefined
        return effect && bus.hear(what, (news) => effect(news, open))
      }
      const hearing = [
        ...(Object.keys(table) as (keyof News)[]).map(hear),
        bus.missed(() => open.untilDone('news.missed', () => check('all'))),
      ]
      let checks = 0
      const check = async (what: Extent): Promise<void> => {
        checks += 1
        await recheckOpen(open, what).finally(() => (checks -= 1))
      }
      const rechecking =
        recheck &&
        setInterval(() => {
          const what = checks > 0 ? undefined : recheck.what()
          if (what) later('recheck', () => check(what))
        }, recheck.every_ms).unref()
      const expiring = setInterval(() => {
        const isByKey = [...open.sessions.values()].some((session) => isApiKey(session))
        if (isByKey) later('api-keys.expiry', () => recheckPersons(open, (session) => isApiKey(session)))
      }, expiry_ms).unref()
      return {
        [Symbol.dispose]() {
          over = true
          clearInterval(expiring)
          hearing.forEach((one) => one?.[Symbol.dispose]())
          retries.forEach((retry) => clearTimeout(retry))
          clearInterval(rechecking)
        },
      }
    },
    [Symbol.dispose]: () => sweeping.forEach((one) => one[Symbol.dispose]()),
  }
}

/** Without a name: whichever key it is. */
const isApiKey = ({ person }: Pick<HeldFor, 'person'>, name = person.id): boolean =>
  person.kind === 'api-key' && person.id === name

const isUser = ({ person }: Pick<HeldFor, 'person'>, user_id: string): boolean =>
  person.kind === 'user' && person.id === user_id

type Questions = ReturnType<typeof questions>

/** What one check asks about people and namespaces; each question goes to the database once. */
const questions = (stores: Stores, clock: Clock) => ({
  namespace: once((tenant_id) => stores.namespaces.find(tenant_id)),
  user: once((tenant_id, id) => stores.callers.user(id, tenant_id)),
  /** Undefined also for one that has expired, or whose maker has left. */
  apiKey: once(async (tenant_id, name) => {
    const key = await stores.callers.keyNamed(tenant_id, name)
    return key && (key.expires_in <= 0 || key.expires_in * second_ms > clock.now()) ? key : undefined
  }),
  publicKey: once((tenant_id, fingerprint) => stores.of(tenant_id).publicKeys.find(fingerprint)),
  device: once((tenant_id, uid) => stores.of(tenant_id).devices.find(uid)),
})

function once<T>(
  ask: (tenant_id: string, id: string) => Promise<T>,
): (tenant_id: string, id?: string) => Promise<T> {
  const answers = new Map<string, Promise<T>>()
  return (tenant_id, id = '') => {
    const answer = answers.get(`${tenant_id} ${id}`) ?? ask(tenant_id, id)
    answers.set(`${tenant_id} ${id}`, answer)
    return answer
  }
}

async function byUid<T extends { readonly uid: string }>(
  find: (uids: readonly string[]) => Promise<T[]>,
  uids: readonly string[],
): Promise<ReadonlyMap<string, T>> {
  const wanted = [...new Set(uids)]
  const rows = new Map<string, T>()
  for (let at = 0; at < wanted.length; at += batch)
    for (const row of await find(wanted.slice(at, at + batch))) rows.set(row.uid, row)
  return rows
}
