// Enrolment tokens as devices present them: whether one is known, why it is refused, and the name it gives.
import { Failure } from '@hawser/contract/failures'
import { beyond, deviceLimits } from '@hawser/contract/limits'
import { neighbourhood } from '../../kit/address.ts'
import { iso, type Clock } from '../../kit/clock.ts'
import type { Limiter } from '../../kit/limiter.ts'
import { hashOf } from '../../kit/secrets.ts'
import type { DeviceRow } from '../../storage/devices.ts'
import type { EnrolmentTokenRow } from '../../storage/enrolment-tokens.ts'
import type { Stores } from '../../storage/stores.ts'
import { stranger } from '../audit/audit.ts'
import type { AuditRefusals } from '../audit/refusals.ts'
import { asName, type EnrolmentOrigin } from './device-facts.ts'

export interface TokenLookupParts {
  stores: Pick<Stores, 'presentedTokens'>
  clock: Clock
  wrongTokens: Limiter
  auditedRefusals: Pick<AuditRefusals, 'add'>
  /** A known token was presented that has expired or is used up. */
  onRefused(refused: { tenant_id: string; token: string; why: string; source: string }): void
}

export interface TokenLookup {
  /** Refuses an unknown token. */
  present(token: string, source: string): Promise<EnrolmentTokenRow>
  /** Throws why the token could not be used, which its holder may know. */
  refuse(token: EnrolmentTokenRow, source: string): Promise<never>
}

/** A device that has used the token before is not counted again, whatever its status is now. */
const hasUsed = ({ enrolled_with }: DeviceRow, { id }: EnrolmentTokenRow): boolean =>
  enrolled_with !== null && (JSON.parse(enrolled_with) as EnrolmentOrigin).id === id

/** Whether the token would change anything: a person's decision about a device counts more than a token. */
export const mayUse = (row: DeviceRow, token: EnrolmentTokenRow): boolean =>
  row.status === 'pending' && !hasUsed(row, token)

/** The name that a token gives to its nth device. */
export function patternName(
  pattern: string,
  device: { readonly n: number; readonly hostname: string; readonly mac: string },
): string {
  const digits = device.mac.replaceAll(/[^0-9a-fA-F]/g, '')
  return asName(
    pattern.replaceAll(/\{(\w+)\}/g, (_, word: string) => {
      if (/^n+$/.test(word)) return String(device.n).padStart(word.length, '0')
      if (word === 'hostname') return device.hostname
      return word === 'mac4' ? digits.slice(-4) : device.mac
    }),
  )
}

export function presentedTokens(parts: TokenLookupParts): TokenLookup {
  const { stores, clock } = parts
  const notValid = () => new Failure('wrongToken', { message: 'The enrolment token is not valid.' })

  return {
    async present(text, source) {
      const token = await stores.presentedTokens.find(hashOf(text))
      if (token) return token
      // Wrong tokens count against their address. The right one is never locked out by them: nobody guesses
      // its 160 bits.
      const wait = parts.wrongTokens.take(neighbourhood(source))
      if (wait === 0) throw notValid()
      throw beyond(deviceLimits.wrongTokens, wait)
    },

    async refuse({ hash }, source) {
      const token = await stores.presentedTokens.find(hash)
      if (!token) throw notValid()
      const isExpired = token.expires_at !== null && token.expires_at <= iso(clock.now())
      const why = isExpired ? 'has expired' : 'has been used for as many devices as it may be'
      parts.auditedRefusals.add({
        scope: { tenant_id: token.tenant_id },
        by: stranger(source),
        action: 'enrolment-token.refused',
        target: { kind: 'enrolment token', id: '', name: token.name },
        reason: why,
      })
      parts.onRefused({ tenant_id: token.tenant_id, token: token.name, why, source })
      throw new Failure('wrongToken', { message: `The enrolment token ${why}.` })
    },
  }
}
