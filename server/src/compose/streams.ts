// Composition of audit streams: their rules, and what delivers them.
import os from 'node:os'
import { auditStreams } from '../domain/audit/audit-streams.ts'
import type { Audit } from '../domain/audit/audit.ts'
import { streamDelivery, type StreamDelivery } from '../domain/audit/stream-delivery.ts'
import type { Rules } from '../domain/callers/rules.ts'
import { minute_ms } from '../kit/clock.ts'
import { receivers } from '../receivers/receivers.ts'
import type { Foundation } from './foundation.ts'

/** Test messages that a namespace may send. */
const testsPerNamespace = { max: 10, window_ms: minute_ms }
/** Changes of streams after which a namespace’s receivers are tried at once. */
const attemptsPerNamespace = { max: 30, window_ms: minute_ms }

export interface StreamRooms {
  readonly rules: Rules<'auditStreams'>
  readonly delivery: StreamDelivery
}

export function openStreams(foundation: Foundation, audit: Audit): StreamRooms {
  const { config, stores, vault, clock, node, serving, self, limiter, log, background } = foundation
  const { HAWSER_HTTP, HAWSER_HTTPS, HAWSER_SSH, HAWSER_METRICS, HAWSER_NODE_ADDRESS } = config
  const listening = [HAWSER_HTTP, HAWSER_HTTPS, HAWSER_SSH, HAWSER_METRICS, HAWSER_NODE_ADDRESS]
  const configured = listening.flatMap((where) => (where && 'port' in where ? where.port : []))
  const ownHost = config.HAWSER_URL ? new URL(config.HAWSER_URL).hostname : ''
  const shared = {
    stores,
    audit,
    vault,
    clock,
    receivers: receivers({
      allow: config.HAWSER_STREAM_ALLOW,
      ownPorts: () => [...configured, ...(self.ports?.() ?? [])],
      ownHost,
      hostName: ownHost || os.hostname(),
      clock,
    }),
  }
  const delivery = background.own(
    streamDelivery({
      ...shared,
      node,
      isServing: serving,
      onEvent: ({ event, tenant_id: tenant, ...about }) =>
        log[event === 'recovered' ? 'info' : 'warn']({ event: `audit-stream.${event}`, tenant, ...about }),
      onError: (err) => log.error({ event: 'audit-stream.failed', err }),
    }),
  )
  const rules = auditStreams({
    ...shared,
    testsPerNamespace: limiter('audit stream tests', testsPerNamespace),
    attemptsPerNamespace: limiter('audit stream attempts', attemptsPerNamespace),
    wake: delivery.wake,
  })
  return { delivery, rules }
}
