// Sessions as members see them, and the calls by which an agent reports on its own.
import { Failure } from '@hawser/contract/failures'
import type { Session } from '@hawser/contract/sessions'
import type { Bus } from '../bus/bus.ts'
import { iso, type Clock } from '../kit/clock.ts'
import type { SessionRow } from '../storage/sessions.ts'
import type { Stores } from '../storage/stores.ts'
import type { DeviceCaller, MemberCaller } from './callers.ts'
import type { DeviceView } from './devices.ts'
import type { Rules } from './rules.ts'

export interface SessionParts {
  stores: Stores
  view: DeviceView
  bus: Bus
  clock: Clock
}

export function sessions({ stores, view, bus, clock }: SessionParts): Rules<'sessions'> {
  async function present(tenant_id: string, rows: readonly SessionRow[]): Promise<Session[]> {
    const uids = [...new Set(rows.map((row) => row.device_uid))]
    const devices = await view.many(tenant_id, await stores.of(tenant_id).devices.findMany(uids))
    const byUid = new Map(devices.map((device) => [device.uid, device]))
    return rows.flatMap((row) => {
      const device = byUid.get(row.device_uid)
      if (!device) return []
      return {
        ...row,
        device,
        active: row.active === 1,
        authenticated: row.authenticated === 1,
        recorded: row.recorded === 1,
        position: JSON.parse(row.position) as Session['position'],
      }
    })
  }

  /** The session, in the caller's namespace; a device sees only its own. */
  async function mustFind(uid: string, caller: MemberCaller | DeviceCaller): Promise<SessionRow> {
    const row = await stores.of(caller.tenant_id).sessions.find(uid)
    if (!row || (caller.kind === 'device' && row.device_uid !== caller.uid)) throw new Failure('notFound')
    return row
  }

  return {
    async list({ query }, { tenant_id }) {
      const { items, total } = await stores.of(tenant_id).sessions.list(query)
      return { items: await present(tenant_id, items), total }
    },
    async get({ params }, caller) {
      const [session] = await present(caller.tenant_id, [await mustFind(params.uid, caller)])
      if (!session) throw new Failure('notFound')
      return session
    },
    async setAuthenticated({ params, body }, caller) {
      await mustFind(params.uid, caller)
      if (body.authenticated !== undefined)
        await stores.of(caller.tenant_id).sessions.save(params.uid, { authenticated: body.authenticated ? 1 : 0 })
    },
    async play({ params }, caller) {
      await mustFind(params.uid, caller)
      const frames = await stores.of(caller.tenant_id).sessions.frames(params.uid)
      return frames.map((frame) => ({ ...frame, uid: frame.session_uid }))
    },
    async close({ params, body }, caller) {
      const session = await mustFind(params.uid, caller)
      if (session.device_uid !== body.device) throw new Failure('notFound')
      const { tenant_id } = caller
      if (session.active === 1) await stores.of(tenant_id).sessions.save(params.uid, { active: 0, last_seen: iso(clock.now()) })
      bus.tell('session.closed', { tenant_id, uid: params.uid })
    },
    async record({ params, body }, caller) {
      if (body.uid !== params.uid) throw new Failure('unprocessable', { message: 'uid: the path names another session' })
      await mustFind(params.uid, caller)
      const { tenant_id } = caller
      if ((await stores.namespaces.find(tenant_id))?.session_record !== 1) return
      await stores.transaction(async (inside) => {
        const { sessions: mine } = inside.of(tenant_id)
        const { message, width, height } = body
        await mine.addFrame({ session_uid: params.uid, message, width, height, time: iso(clock.now()) })
        await mine.save(params.uid, { recorded: 1 })
      })
    },
    async removeRecording({ params }, caller) {
      await mustFind(params.uid, caller)
      await stores.transaction(async (inside) => {
        const { sessions: mine } = inside.of(caller.tenant_id)
        await mine.removeFrames(params.uid)
        await mine.save(params.uid, { recorded: 0 })
      })
    },
  }
}
