// Composition of how new devices join and become accepted: Auth device, enrolment tokens and keys, accept
// rules, pairing, and devices without an agent.
import { createPublicKey } from 'node:crypto'
import { deviceLimits } from '@hawser/contract/limits'
import { blobOf, fingerprintSha256, publicKeyLine } from '@hawser/ssh'
import type { AllRules } from '../domain/callers/rules.ts'
import { acceptRules } from '../domain/devices/accept-rules.ts'
import { accepting } from '../domain/devices/accepting.ts'
import type { AgentUpdates } from '../domain/devices/agent-updates.ts'
import { agentless } from '../domain/devices/agentless.ts'
import { containers } from '../domain/devices/containers.ts'
import { enrolmentKeys } from '../domain/devices/enrolment-keys.ts'
import { enrolmentTokens } from '../domain/devices/enrolment-tokens.ts'
import { callLimits, enrolment } from '../domain/devices/enrolment.ts'
import { joining, type Joining } from '../domain/devices/joining.ts'
import { pairings } from '../domain/devices/pairings.ts'
import type { Presence } from '../domain/devices/presence.ts'
import { fiveTries } from '../domain/people/lockout.ts'
import type { SystemRules } from '../domain/system/system.ts'
import { neighbourhood } from '../kit/address.ts'
import { deviceName } from '../tunnel/registry.ts'
import { keyReader } from './access.ts'
import type { EvidenceRooms } from './evidence.ts'
import type { Foundation } from './foundation.ts'
import type { SignInRooms } from './people.ts'

interface JoiningParts extends Pick<SignInRooms, 'tokens' | 'lockout'>, Pick<SystemRules, 'addressOf'> {
  readonly presence: Presence
  readonly updates: AgentUpdates
  readonly billed: boolean
  readonly approvalKey: string
}

export function openJoining(foundation: Foundation, evidence: EvidenceRooms, parts: JoiningParts) {
  const { config, stores, vault, clock, bus, limiter, lines, log, isFull } = foundation
  const { audit, auditedRefusals } = evidence
  const { presence, tokens, updates, approvalKey } = parts
  const given = { stores, audit, vault, bus, clock, presence }
  const accepts = openAccepting(foundation, evidence, parts)
  const joins = joining({
    ...given,
    auditedRefusals,
    accepting: accepts.accepting,
    newPerSource: limiter('new devices', config.HAWSER_RATE_LIMIT),
    wrongTokens: limiter('wrong enrolment tokens', deviceLimits.wrongTokens),
    isFull,
    onJoined: ({ tenant_id: tenant, uid: device, enrolled_with, ...about }) =>
      log[about.why === undefined ? 'info' : 'warn']({
        event: 'device.joined',
        tenant,
        device,
        with: `${enrolled_with.kind} ${enrolled_with.name}`,
        ...about,
      }),
    onRefused({ tenant_id: tenant, ...about }) {
      if (lines.allows(neighbourhood(about.source)))
        log.warn({ event: 'enrolment.refused', tenant, ...about })
    },
  })
  const keyRules = enrolmentKeys({
    ...given,
    keys: keyReader,
    shown(key, comment) {
      const blob = blobOf(key)
      return {
        public_key: `${publicKeyLine('ssh-ed25519', blob)} ${comment}`,
        fingerprint: fingerprintSha256(blob),
      }
    },
  })
  return {
    rules: {
      enrolmentKeys: keyRules,
      enrolmentTokens: enrolmentTokens(given),
      acceptRules: acceptRules(given),
      pairings: openPairings(foundation, evidence, { ...parts, joining: joins }),
    },
    ...accepts,
    joining: joins,
    auth: enrolment({
      ...given,
      tokens,
      ...callLimits(limiter, config.HAWSER_DEVICE_RATE_LIMIT),
      joining: joins,
      updates,
      approvalKey,
    }),
    agentless: agentless({ ...given, joining: joins }),
    loginKeyOf: keyRules.loginKeyOf,
  }
}

export type JoiningRooms = ReturnType<typeof openJoining>

/** Accepts devices, for everything that decides it; devices of containers follow the names that this frees. */
function openAccepting(
  { stores, clock, bus, log, background, isHeld }: Foundation,
  { audit, timeline }: EvidenceRooms,
  { presence, billed }: Pick<JoiningParts, 'presence' | 'billed'>,
) {
  const changing = { stores, audit, bus, clock, presence, timeline }
  const containerRules = containers({
    ...changing,
    onTaken: (err) => log.info({ event: 'container.name_taken', err }),
  })
  const nameFreed = (tenant_id: string): void =>
    background.later('container.names', () => containerRules.followNames(tenant_id, null))
  const accepts = accepting({
    ...changing,
    billed,
    isConnected: (uid) => isHeld(deviceName(uid)),
    nameFreed,
    onReplaced: ({ tenant_id: tenant, uid: device, replaced: { uid: replaced, name }, ...about }) =>
      log.warn({ event: 'device.replaced', tenant, device, replaced, name, ...about }),
  })
  return { containers: containerRules, nameFreed, accepting: accepts }
}

const openPairings = (
  { stores, vault, clock, limiter, log }: Foundation,
  { audit }: EvidenceRooms,
  {
    lockout,
    addressOf,
    joining: joins,
  }: Pick<JoiningParts, 'lockout' | 'addressOf'> & { readonly joining: Joining },
): AllRules['pairings'] =>
  pairings({
    stores,
    audit,
    vault,
    clock,
    fiveTries: (subject, wrong, attempt) => lockout.judge(subject, fiveTries, wrong, attempt, () => true),
    wrongCodes: limiter('wrong pairing codes', deviceLimits.wrongCodes),
    addressOf,
    fingerprintOf: pemFingerprint,
    joining: joins,
    onConfirmed: ({ tenant_id: tenant, uid: device, ...about }) =>
      log.info({ event: 'device.paired', tenant, device, ...about }),
  })

/** As OpenSSH shows it. */
function pemFingerprint(pem: string): string | undefined {
  // Node would take a private key, too, and derive the public one.
  if (!pem.includes('PUBLIC KEY')) return undefined
  try {
    return fingerprintSha256(blobOf(createPublicKey(pem)))
  } catch {
    return undefined
  }
}
