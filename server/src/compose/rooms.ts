// Composition of everything but what listens: it opens every room, in order, and passes each what it needs. When the
// rooms are disposed they are closed in reverse order. The administrator's commands need no more than this.
import path from 'node:path'
import type { Config } from '../config.ts'
import type { AllRules } from '../domain/callers/rules.ts'
import { deviceView } from '../domain/devices/device-view.ts'
import { systemClock, type Clock } from '../kit/clock.ts'
import { lifetime } from '../kit/lifetime.ts'
import type { Log } from '../kit/log.ts'
import { mailer } from '../mail/mailer.ts'
import { openAccess } from './access.ts'
import { openAgents } from './agents.ts'
import { openApprovals } from './approvals.ts'
import { openBilling } from './billing.ts'
import { openDevices, openPresence, openTraffic } from './devices.ts'
import { openEvidence } from './evidence.ts'
import { openFoundation, type Setting } from './foundation.ts'
import { openJoining } from './joining.ts'
import { openNodes } from './nodes.ts'
import { openPeople, openSignIn } from './people.ts'
import { openRecordings } from './recordings.ts'
import { openServices } from './services.ts'
import { openLiveSessions, openRevocation, openSessions } from './sessions.ts'
import { openStreams } from './streams.ts'
import { openSweeps, openSystem } from './system.ts'

export interface ServerOptions {
  config: Config
  log: Log
  clock?: Clock
  serving?: boolean
  agents?: string | undefined
}

export async function openRooms({
  config,
  log,
  clock = systemClock,
  serving = false,
  agents,
}: ServerOptions): Promise<Rooms> {
  const background = lifetime((what, err) => log.error({ event: `${what}.failed`, err }))
  try {
    return await makeRooms({ config, log, clock, background, serving, agents })
  } catch (error) {
    await background[Symbol.asyncDispose]()
    throw error
  }
}

async function makeRooms(setting: Setting) {
  const { config, log, clock, background } = setting
  const foundation = await openFoundation(setting)
  const { stores } = foundation
  const mail = background.own(
    mailer({
      smtp: config.HAWSER_SMTP || undefined,
      from: config.HAWSER_MAIL_FROM,
      outbox: path.join(config.HAWSER_DATA, 'outbox'),
      log,
    }),
  )
  const evidence = await openEvidence(foundation)
  const { audit } = evidence
  const signIn = await openSignIn(foundation, evidence)
  const presence = await openPresence(foundation)
  const { live, detached } = await openLiveSessions(foundation, evidence)
  const nodes = await openNodes(foundation, audit, [presence, live])
  const recorded = await openRecordings(foundation, audit)
  const { budgets, traffic } = openTraffic(foundation, audit, mail)
  const { stopsRecordings } = budgets
  const revocation = openRevocation(foundation, recorded, budgets)
  await openSweeps(foundation, evidence, recorded.sweepRecordings)

  const streams = openStreams(foundation, audit)
  const paying = await openBilling(foundation, audit, mail)
  const { billed, usage, subscriptions } = paying
  const people = openPeople(foundation, { ...signIn, audit, mailer: mail, billed })
  const system = openSystem(foundation, { ...signIn, ...people, presence })
  const agents = await openAgents(foundation, audit)
  const { updates } = agents
  const { identitySigner, ...approving } = await openApprovals(foundation)
  const approvalKey = approving.approvals.publicKey
  const shared = { ...signIn, presence, updates, billed }
  const { addressOf } = system
  const joining = openJoining(foundation, evidence, { ...shared, approvalKey, addressOf })
  const { signer } = approving
  const devices = openDevices(foundation, evidence, { ...shared, ...joining, signer, traffic })
  const view = deviceView({ stores, presence, updates, clock })
  const sessions = openSessions(foundation, audit, recorded, { view, stopsRecordings })
  const access = openAccess(foundation, evidence, { ...devices, identitySigner, billed })

  const offered = openServices(foundation, evidence, { ...approving, ...access, view })

  const rules: AllRules = {
    ...people.rules,
    ...system.rules,
    ...joining.rules,
    ...devices.rules,
    ...sessions.rules,
    ...access.rules,
    ...offered.rules,
    agents: updates,
    budgets,
    billing: paying.rules,
    audit: evidence.auditLog,
    auditStreams: streams.rules,
  }

  return {
    ...foundation,
    ...evidence,
    ...signIn,
    ...recorded,
    ...people,
    ...system,
    ...agents,
    ...approving,
    ...joining,
    ...devices,
    ...sessions,
    ...access,
    ...offered,
    rules,
    signIns: signIn.signIn.counts,
    usage,
    subscriptions,
    streams: streams.delivery,
    sessions: live,
    detached,
    traffic,
    budgets,
    revocation,
    nodes,
    [Symbol.asyncDispose]: () => background[Symbol.asyncDispose](),
  }
}

/** Every room, but for those that listen. */
export type Rooms = Awaited<ReturnType<typeof makeRooms>>
