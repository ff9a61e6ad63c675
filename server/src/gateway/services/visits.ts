// Visits: who has a service open. A visit is a session of the type `web`, of one sign-in of a person from one
// network, or of all who came without one; it ends after a quarter of an hour of quiet. It is in the table of open
// sessions, so that whatever ends a session ends it. Whether a browser may use the service is decided when it comes,
// again after a while, and at once when news say that something changed; what may no longer be is cut off. A request
// is on the list of its pass from the moment in which it is let in, so that no end of a right misses it.
import type { SessionMethod, WebTraffic } from '@hawser/contract/sessions'
import type { Admitted, ServiceAccess, Visitor } from '../../domain/access/service-access.ts'
import type { LiveSession, LiveSessions } from '../../domain/sessions/live-sessions.ts'
import type { OpenSession } from '../../domain/sessions/revocation.ts'
import { hostAndPort, neighbourhood } from '../../kit/address.ts'
import { BoundedMap } from '../../kit/bounded-map.ts'
import { minute_ms, second_ms, type Clock } from '../../kit/clock.ts'
import type { Upstream } from './upstream.ts'

/** A request or a WebSocket on its way. */
export interface Exchange {
  cut(): void
}

export interface Visit {
  readonly key: string
  admitted: Admitted
  readonly record: LiveSession
  readonly traffic: { -readonly [K in keyof WebTraffic]: WebTraffic[K] }
  /** Connections to the target that requests use again; of nobody else. */
  connections: Upstream
  /** Whether requests are logged. */
  isLogged(): boolean
}

/** What a browser has shown: the same cookie from the same address. */
export interface Pass {
  readonly address: string
  visitor: Visitor
  readonly source: string
  readonly visit: Visit
  admitted_at: number
  readonly exchanges: Set<Exchange>
}

export interface VisitParts {
  readonly access: Pick<ServiceAccess, 'admit'>
  readonly sessions: Pick<LiveSessions, 'begin'>
  readonly open: Map<string, OpenSession>
  connections(to: Admitted): Upstream
  newId(): string
  readonly clock: Clock
  onError(error: unknown): void
}

/** A request that comes. */
interface Entering {
  readonly address: string
  readonly visitor: Visitor
  readonly source: string
  /** The name of the browser. */
  readonly client: string
  readonly exchange: Exchange
}

const quiet_ms = 15 * minute_ms
const again_ms = 30 * second_ms
const look_ms = second_ms
/** After a failure, as when the database is away. */
const retry_ms = 5 * second_ms
/** How often those with open requests are judged, though there were no news. */
const rejudge_ms = minute_ms
/** How often a visitor is judged again because something changed in between. */
const mostJudged = 3
/** Further ones are judged again with each request. */
const mostPasses = 20_000

type OpenVisit = Visit & {
  readonly passes: Set<Pass>
  used_at: number
  written: number
  isJudging: boolean
  judged_at: number
  /** When it has to be judged again; infinite: nothing is owed. */
  again_at: number
}

export function visits(parts: VisitParts) {
  const passes = new BoundedMap<string, Pass>(mostPasses)
  const all = new Map<string, OpenVisit>()
  const opening = new Map<string, Promise<OpenVisit>>()
  let changes = 0

  function end(visit: OpenVisit): void {
    if (all.get(visit.key) !== visit) return
    all.delete(visit.key)
    parts.open.delete(visit.record.uid)
    for (const pass of visit.passes) drop(pass)
    visit.connections.destroy()
    note(visit)
    visit.record.finish()
  }

  function drop(pass: Pass): void {
    const visit = pass.visit as OpenVisit
    visit.passes.delete(pass)
    const key = keyOf(pass)
    if (passes.get(key) === pass) passes.delete(key)
    cutAll(pass)
  }

  function cutAll({ exchanges }: Pass): void {
    for (const exchange of exchanges) exchange.cut()
    exchanges.clear()
  }

  function note(visit: OpenVisit): void {
    const { requests, refused, received, sent } = visit.traffic
    const sum = requests + refused + received + sent
    if (sum === visit.written) return
    visit.written = sum
    visit.record.note({ web: { ...visit.traffic } })
  }

  async function begin(key: string, admitted: Admitted, source: string, client: string): Promise<OpenVisit> {
    const { service, device, person, method } = admitted
    const traffic = {
      service: service.id,
      name: service.name,
      target: hostAndPort(service),
      requests: 0,
      refused: 0,
      received: 0,
      sent: 0,
    }
    const record = await parts.sessions.begin({
      uid: parts.newId(),
      tenant_id: service.tenant_id,
      device_uid: device.uid,
      username: '',
      ip_address: source,
      person,
      via: 'browser',
      method: method satisfies SessionMethod,
      client,
      web: { ...traffic },
    })
    const visit: OpenVisit = {
      key,
      admitted,
      record,
      traffic,
      connections: parts.connections(admitted),
      passes: new Set(),
      used_at: performance.now(),
      written: 0,
      isJudging: false,
      judged_at: performance.now(),
      // No visit heard of changes that came while the session was stored.
      again_at: performance.now(),
      isLogged: () => visit.admitted.namespace.log_web_requests === 1,
    }
    all.set(key, visit)
    parts.open.set(record.uid, {
      uid: record.uid,
      tenant_id: service.tenant_id,
      device_uid: device.uid,
      person,
      end: () => end(visit),
      record: () => undefined,
      restrict: (policy) => void (policy.services() !== undefined && end(visit)),
    })
    return visit
  }

  async function visitFor(
    admitted: Admitted,
    visitor: Visitor,
    source: string,
    client: string,
  ): Promise<OpenVisit> {
    const key = visitKeyOf(admitted, visitor, source)
    const known = all.get(key)
    if (known) {
      update(known, admitted)
      return known
    }
    const begun = opening.get(key) ?? begin(key, admitted, source, client).finally(() => opening.delete(key))
    opening.set(key, begun)
    return begun
  }

  /** Stores the answer, and ends all that is open to another target. */
  function update(visit: OpenVisit, admitted: Admitted): void {
    const before = visit.admitted
    visit.admitted = admitted
    if (!isOtherTarget(before.service, admitted.service)) return
    visit.connections.destroy()
    visit.connections = parts.connections(admitted)
    for (const pass of visit.passes) cutAll(pass)
  }

  /** Judges again, and once more when that fails: the news come only once. */
  async function recheck(visit: OpenVisit): Promise<void> {
    // The one under way may have read what was before the news.
    if (visit.isJudging) return void (visit.again_at = 0)
    visit.isJudging = true
    visit.again_at = Infinity
    try {
      await judgeAgain(visit)
    } catch (error) {
      visit.again_at = performance.now() + retry_ms
      parts.onError(error)
    }
    visit.isJudging = false
    visit.judged_at = performance.now()
    if (visit.again_at === 0) await recheck(visit)
  }

  /** Cuts off all that is no longer allowed. */
  async function judgeAgain(visit: OpenVisit): Promise<void> {
    let isAdmitted = false
    for (const pass of [...visit.passes].toSorted((a, b) => b.exchanges.size - a.exchanges.size)) {
      // Without open requests a visitor is judged at the next one; one of them says whether the visit may stay.
      if (pass.exchanges.size === 0 && isAdmitted) {
        drop(pass)
        continue
      }
      const admitted = await parts.access.admit(pass.address, pass.visitor, pass.source)
      // A service that was public has one visit for all; as members they have one each.
      if (!admitted || visitKeyOf(admitted, pass.visitor, pass.source) !== visit.key) drop(pass)
      else {
        update(visit, admitted)
        pass.admitted_at = performance.now()
        isAdmitted = true
      }
    }
    if (!isAdmitted) end(visit)
  }

  function look(visit: OpenVisit): void {
    const now = performance.now()
    note(visit)
    let isOpen = false
    for (const pass of visit.passes) {
      if (pass.visitor.kind !== 'nobody' && pass.visitor.ends_at <= parts.clock.now()) drop(pass)
      else if (pass.exchanges.size > 0) isOpen = true
      // It had to give way to newer ones.
      else if (passes.get(keyOf(pass)) !== pass) visit.passes.delete(pass)
    }
    if (isOpen) visit.used_at = now
    const isOwed = visit.again_at <= now || (isOpen && now - visit.judged_at >= rejudge_ms)
    const { expires_at } = visit.admitted.service
    const isOver = expires_at !== null && Date.parse(expires_at) <= parts.clock.now()
    if (isOver || now - visit.used_at > quiet_ms) end(visit)
    else if (isOwed) void recheck(visit)
  }

  const looking = setInterval(() => all.forEach(look), look_ms).unref()

  return {
    /**
     * Undefined: there is nothing for this visitor. The exchange is on the list of the pass, from which its owner
     * removes it.
     */
    async enter({ address, visitor, source, client, exchange }: Entering): Promise<Pass | undefined> {
      const key = keyOf({ address, visitor, source })
      const known = passes.get(key)
      const now = performance.now()
      if (known && now - known.admitted_at < again_ms) {
        ;(known.visit as OpenVisit).used_at = now
        known.visitor = visitor
        known.exchanges.add(exchange)
        return known
      }
      let visit: OpenVisit
      // What changes while this is judged was rechecked before there was a pass to recheck.
      for (let judged = 1; ; judged += 1) {
        const before = changes
        const admitted = await parts.access.admit(address, visitor, source)
        if (!admitted) {
          if (known) drop(known)
          return undefined
        }
        visit = await visitFor(admitted, visitor, source, client)
        if (all.get(visit.key) === visit && (before === changes || judged >= mostJudged)) break
      }
      visit.used_at = now
      // Another request may have been quicker.
      const present = passes.get(key)
      if (present?.visit === visit) {
        present.admitted_at = now
        present.visitor = visitor
        present.exchanges.add(exchange)
        return present
      }
      const exchanges = new Set([exchange])
      const pass: Pass = { address, visitor, source, visit, admitted_at: now, exchanges }
      visit.passes.add(pass)
      passes.set(key, pass)
      return pass
    },
    /** Something changed, for people or at services like these. Never rejects. */
    async recheck(
      concerns: (about: {
        readonly user_id: string
        readonly tenant_id: string
        readonly service: string
      }) => boolean,
    ): Promise<void> {
      changes += 1
      const concerned = [...all.values()].filter(({ admitted: { service, person } }) =>
        concerns({ user_id: person.id, tenant_id: service.tenant_id, service: service.id }),
      )
      await Promise.all(concerned.map(async (visit) => recheck(visit)))
    },
    get size() {
      return all.size
    },
    [Symbol.dispose]() {
      clearInterval(looking)
      for (const visit of all.values()) end(visit)
    },
  }
}

export type Visits = ReturnType<typeof visits>

/** Whose visit it is: one sign-in of a person from one network, or everybody without one. */
function visitKeyOf({ service, method }: Admitted, visitor: Visitor, source: string): string {
  const isPerson = method === 'sign-in' && visitor.kind === 'user'
  const who = isPerson
    ? `${visitor.user_id} ${visitor.token_id.split('.', 1)[0]} ${neighbourhood(source)}`
    : method
  return `${service.id} ${who}`
}

type Service = Admitted['service']

const targetOf = ({ host, port, scheme, certificate, tls_name, username }: Service): string =>
  [host, port, scheme, certificate, tls_name, username].join(' ')

/** The first certificate is pinned while its connection is open already. */
const isOtherTarget = (before: Service, now: Service): boolean =>
  targetOf(before) !== targetOf(now) || (before.pinned !== '' && before.pinned !== now.pinned)

const keyOf = ({ address, visitor, source }: Pick<Pass, 'address' | 'visitor' | 'source'>): string => {
  const who =
    visitor.kind === 'user'
      ? `${visitor.user_id} ${visitor.epoch} ${visitor.token_id}`
      : visitor.kind === 'link'
        ? visitor.link_hash
        : ''
  return `${address} ${source} ${who}`
}
