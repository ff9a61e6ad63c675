// Composition of audit streams: their rules, and what delivers them.
import os from 'node:os'
import { peopleLimits } from '@hawser/contract/limits'
import { auditStreams } from '../domain/audit/audit-streams.ts'
import type { Audit } from '../domain/audit/audit.ts'
import { streamDelivery } from '../domain/audit/stream-delivery.ts'
import { receivers } from '../receivers/receivers.ts'
import type { Foundation } from './foundation.ts'

export function openStreams(foundation: Foundation, audit: Audit) {
  const { config, stores, vault, clock, node, serving, ports, limiter, log, background } = foundation
  const ownHost = config.HAWSER_URL ? new URL(config.HAWSER_URL).hostname : ''
  const shared = {
    stores,
    audit,
    vault,
    clock,
    receivers: receivers({
      allow: config.HAWSER_STREAM_ALLOW,
      ownPorts: () => [...ports],
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
    testsPerNamespace: limiter('audit stream tests', peopleLimits.streamTests),
    attemptsPerNamespace: limiter('audit stream attempts', peopleLimits.streamAttempts),
    wake: delivery.wake,
  })
  return { delivery, rules }
}

export type StreamRooms = ReturnType<typeof openStreams>
