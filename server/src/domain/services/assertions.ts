// The signed text in which a device reads who opened its service: a JSON Web Token for that service alone,
// good for some minutes, signed with an Ed25519 key of its own that all nodes share.
import { createHash, createPublicKey, type KeyObject } from 'node:crypto'
import { SignJWT } from 'jose'
import { hostAndPort } from '../../kit/address.ts'
import { minute_ms, second_ms, type Clock } from '../../kit/clock.ts'
import type { Admitted } from '../access/service-access.ts'
import type { Rules } from '../callers/rules.ts'
import type { ServiceAddresses } from './addresses.ts'

const life_ms = 5 * minute_ms

export interface AssertionParts {
  readonly key: KeyObject
  readonly clock: Clock
  readonly addresses: ServiceAddresses
  /** The address of the console, which the text names as its issuer. */
  readonly url: string
}

export interface Assertions extends Pick<Rules<'services'>, 'keys'> {
  of(admitted: Admitted): Promise<string>
}

export function assertions({ key, clock, addresses, url }: AssertionParts): Assertions {
  const { kty = '', crv = '', x = '' } = createPublicKey(key).export({ format: 'jwk' })
  const kid = createHash('sha256').update(x).digest('base64url').slice(0, 16)
  return {
    keys: async () => ({ keys: [{ kty, crv, x, kid, alg: 'EdDSA', use: 'sig' }] }),
    of({ service, namespace, device, person, role }) {
      const now_s = Math.floor(clock.now() / second_ms)
      const target = `${service.scheme}://${hostAndPort(service)}`
      return new SignJWT({ name: person.name, role, namespace: namespace.name, device: device.uid, target })
        .setProtectedHeader({ alg: 'EdDSA', typ: 'JWT', kid })
        .setIssuer(url)
        .setAudience(addresses.urlOf(service.address))
        .setSubject(person.id)
        .setIssuedAt(now_s)
        .setExpirationTime(now_s + life_ms / second_ms)
        .sign(key)
    },
  }
}
