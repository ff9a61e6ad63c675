// Composition of who may do what: API keys and public keys, firewall rules, policies, logins, and why a login is
// refused.
import { fingerprintMd5, parsePublicKeyLine, publicKeyLine } from '@hawser/ssh'
import { apiKeys } from '../domain/access/api-keys.ts'
import { explain, type ExplainParts } from '../domain/access/explain.ts'
import { firewall } from '../domain/access/firewall.ts'
import { identityCertificates } from '../domain/access/identity-certificates.ts'
import { logins } from '../domain/access/logins.ts'
import { policies } from '../domain/access/policies.ts'
import { publicKeys } from '../domain/access/public-keys.ts'
import type { Deactivated } from '../domain/access/tag-use.ts'
import { tags } from '../domain/devices/tags.ts'
import type { IdentityCertificates } from '../gateway/login/certificates.ts'
import { neighbourhood } from '../kit/address.ts'
import { deviceName } from '../tunnel/registry.ts'
import type { EvidenceRooms } from './evidence.ts'
import type { Foundation } from './foundation.ts'

export const keyReader = { parse: parsePublicKeyLine, line: publicKeyLine, fingerprint: fingerprintMd5 }

interface AccessParts extends Pick<ExplainParts, 'waitingReason'> {
  readonly identitySigner: IdentityCertificates
  readonly billed: boolean
}

export function openAccess(
  foundation: Foundation,
  { audit, refusals, timeline }: EvidenceRooms,
  { identitySigner, waitingReason, billed }: AccessParts,
) {
  const { config, stores, clock, bus, limiter, log, isHeld } = foundation
  const keys = keyReader
  const identities = identityCertificates({ stores, clock, keys, signer: identitySigner })
  const failedLogins = limiter('failed logins', config.HAWSER_SSH_FAILURE_LIMIT)
  const loginRules = logins({
    stores,
    clock,
    billed,
    onUnrunnable: (tenant_id, rules) =>
      log.warn({ event: 'firewall.unrunnable', tenant_id, rules: rules.slice(0, 10) }),
  })
  const onDeactivated = (about: Deactivated): void => log.warn({ event: 'firewall.deactivated', ...about })
  return {
    rules: {
      apiKeys: apiKeys({ stores, audit, bus, clock }),
      publicKeys: publicKeys({ stores, audit, clock, bus, keys }),
      identityCertificates: identities,
      firewall: firewall({ stores, audit, onDeactivated }),
      policies: policies({ stores, audit, bus }),
      tags: tags({ stores, audit, onDeactivated }),
      logins: {
        ...refusals.rules,
        explain: explain({
          stores,
          logins: loginRules,
          keys,
          isConnected: (uid) => isHeld(deviceName(uid)),
          offlineReason: timeline.offlineReason,
          waitingReason,
          mustWait: (source) => failedLogins.peek(neighbourhood(source)),
        }),
      },
    },
    logins: loginRules,
    identities: { ...identitySigner, ...identities.identities },
    failedLogins,
  }
}

export type AccessRooms = ReturnType<typeof openAccess>
