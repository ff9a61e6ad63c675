// Composition of the server itself: whether people can sign in, the set-up, announcements, and the sweeps that remove
// what is too old.
import { endOldClaims } from '../domain/people/identity.ts'
import { closeLost } from '../domain/sessions/live-sessions.ts'
import { announcements } from '../domain/system/announcements.ts'
import { health, readiness, signInChecks } from '../domain/system/health.ts'
import { sweeps } from '../domain/system/sweeps.ts'
import { system, type SystemParts } from '../domain/system/system.ts'
import type { EvidenceRooms } from './evidence.ts'
import type { Foundation } from './foundation.ts'

export async function openSweeps(
  { stores, clock, log, background }: Foundation,
  { audit, auditLog }: EvidenceRooms,
  recordings: () => Promise<void>,
): Promise<void> {
  background.own(
    await sweeps({
      stores,
      clock,
      claims: (before) => endOldClaims(audit, before),
      recordings,
      sessions: (moments) => closeLost({ stores, audit }, moments),
      audit: auditLog.trim,
      onError: (err) => log.error({ event: 'sweep.failed', err }),
    }),
  )
}

export function openSystem(
  foundation: Foundation,
  parts: Pick<SystemParts, 'lockout' | 'signIn' | 'presence' | 'users' | 'namespaces'>,
) {
  const { config, stores, vault, clock, bus, node, disks, log } = foundation
  const { ready, drain } = readiness({
    bus,
    isWritable: () => disks?.data.writable !== false,
    healthy: health({
      checks: signInChecks(stores, clock, node),
      onChange: (part, err) =>
        err === undefined
          ? log.info({ event: 'health.restored', part })
          : log.error({ event: 'health.failed', part, err }),
    }),
  })
  const rules = system({
    ...parts,
    stores,
    vault,
    clock,
    url: config.HAWSER_URL,
    sshPort: config.HAWSER_SSH_PUBLIC_PORT || config.HAWSER_SSH.port,
    hasMail: config.HAWSER_SMTP !== '',
    disk: () => disks?.data.state ?? 'ok',
    ready,
  })
  return {
    rules: { system: rules, announcements: announcements({ stores }) },
    ready,
    drain,
    addressOf: rules.addressOf,
    setupCode: rules.setupCode,
  }
}

export type SystemRooms = ReturnType<typeof openSystem>
