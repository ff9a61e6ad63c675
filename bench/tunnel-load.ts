// A program for bench/access.ts and bench/cluster.ts: many agents in one process. Each enrols over HTTP and
// then holds its tunnel with the agent's own code, proof of the key included. One that loses its tunnel is
// back at once; one that is refused, or finds nobody, waits ten seconds: so do agents in the field, and the
// server must stand it. Told to wait as ours do, they do that instead. Of several ports each agent takes any
// at every try, as a balancer would do for it, and the next where nobody is.
import { createPrivateKey, createPublicKey, type KeyObject } from 'node:crypto'
import { readFileSync } from 'node:fs'
import { setTimeout as wait } from 'node:timers/promises'
import { UpgradeFailed } from '@hawser/mux'
import { backoff } from '../agent/src/backoff.ts'
import { pingInterval } from '../agent/src/ping-interval.ts'
import type { WatchedReport } from '../agent/src/report.ts'
import { resumableStreams } from '../agent/src/resumable-streams.ts'
import { holdTunnel } from '../agent/src/tunnel.ts'
import { authBody, isAccepted } from './fleet.ts'
import { openLoad, requestBytes } from './load.ts'
import { takeOrders } from './programs.ts'

export type TunnelOrder =
  /** Until this number is reached. */
  | { readonly do: 'enrol'; readonly port: number; readonly keyFile: string; readonly count: number }
  /** Answered when this many are up. */
  | {
      readonly do: 'hold'
      readonly port: number | readonly number[]
      readonly count: number
      readonly asOurs?: boolean
    }
  /** How long agents were without a tunnel since the last question. */
  | { readonly do: 'outages' }
  | { readonly do: 'count' }
  | { readonly do: 'leave' }

export interface Count {
  readonly up: number
  readonly refusals: number
}

export interface Outages {
  /** In milliseconds. */
  readonly outages: readonly number[]
}

const refused_ms = 10_000
/** At first only, so that the server is measured and not a queue in front of it. */
const atOnce = 64

interface Agent {
  readonly uid: string
  readonly token: string
}

const agents: Agent[] = []
const held = new Map<Agent, AbortController>()
let key: KeyObject | undefined
let next = 0
let up = 0
let refusals = 0
let outages: number[] = []

async function enrol(port: number, keyFile: string, count: number): Promise<void> {
  key = createPrivateKey(readFileSync(keyFile))
  const publicKey = createPublicKey(key).export({ type: 'pkcs1', format: 'pem' })
  using load = await openLoad(port, atOnce)
  const enrolNext = async (): Promise<void> => {
    while (agents.length < count) {
      const i = next++
      if (!isAccepted(i)) continue
      const { body } = await load.call(
        requestBytes('POST', '/api/devices/auth', { body: authBody(i, publicKey) }),
      )
      const { uid, token } = JSON.parse(body) as Agent
      agents.push({ uid, token })
    }
  }
  await Promise.all(Array.from({ length: atOnce }, enrolNext))
}

/** One agent's life; `first`: its tunnel is up for the first time. */
async function live(
  agent: Agent,
  ports: readonly number[],
  asOurs: boolean,
  first: () => void,
): Promise<void> {
  const ending = new AbortController()
  held.set(agent, ending)
  const pause = backoff()
  let lost_at: number | undefined
  const arrived = (): void => {
    up++
    pause.reset()
    if (lost_at !== undefined) outages.push(performance.now() - lost_at)
    first()
  }
  while (!ending.signal.aborted) {
    let isUp = false
    let asked_s: number | undefined
    try {
      await tryAll(ports, agent, ending.signal, () => ((isUp = true), arrived()))
    } catch (error) {
      if (!asOurs || statusOf(error) !== undefined) refusals++
      asked_s = error instanceof UpgradeFailed ? Number(error.retryAfter) || 0 : undefined
      if (!asOurs) await wait(refused_ms, undefined, { signal: ending.signal }).catch(() => undefined)
    } finally {
      if (isUp) {
        up--
        lost_at = performance.now()
      }
    }
    if (asOurs) await pause.wait(ending.signal, asked_s).catch(() => undefined)
  }
}

/** These devices never change. */
const noReports: WatchedReport = {
  report: () => ({}),
  told: () => undefined,
  watch: () => ({ [Symbol.dispose]: () => undefined }),
}

/** The status of a server's answer. */
const statusOf = (error: unknown): number | undefined =>
  error instanceof UpgradeFailed ? error.status : undefined

/** To any of the ports where somebody listens. */
async function tryAll(
  ports: readonly number[],
  agent: Agent,
  signal: AbortSignal,
  onUp: () => void,
): Promise<void> {
  const from = Math.floor(Math.random() * ports.length)
  for (const [index] of ports.entries()) {
    const port = ports[(from + index) % ports.length]!
    const serve = (): Promise<void> => Promise.resolve()
    const parts = {
      server: `http://127.0.0.1:${port}`,
      key: key!,
      serve,
      resumable: resumableStreams(serve, signal),
      reports: noReports,
      interval: pingInterval(),
      connection: () => ({}),
      leaving: () => 'stopped' as const,
      isHangUp: () => Promise.resolve(false),
      hangUp: () => Promise.resolve(),
      onLost: () => undefined,
      log: () => undefined,
    }
    try {
      await holdTunnel(parts, agent, signal, onUp)
      return
    } catch (error) {
      if (statusOf(error) !== undefined || index === ports.length - 1) throw error
    }
  }
}

async function hold(port: number | readonly number[], count: number, asOurs: boolean): Promise<void> {
  const waiting = agents.filter((agent) => !held.has(agent)).slice(0, count)
  const holdNext = async (): Promise<void> => {
    for (let agent = waiting.pop(); agent; agent = waiting.pop()) {
      const { promise, resolve } = Promise.withResolvers<void>()
      void live(agent, [port].flat(), asOurs, resolve)
      await promise
    }
  }
  await Promise.all(Array.from({ length: atOnce }, holdNext))
}

takeOrders(async (order: TunnelOrder) => {
  if (order.do === 'enrol') await enrol(order.port, order.keyFile, order.count)
  if (order.do === 'hold') await hold(order.port, order.count, order.asOurs ?? false)
  if (order.do === 'leave') {
    for (const ending of held.values()) ending.abort()
    held.clear()
  }
  if (order.do === 'outages') {
    const answer = { outages } satisfies Outages
    outages = []
    return answer
  }
  return { up, refusals } satisfies Count
})
