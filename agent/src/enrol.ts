// Enrolment: the device says who it is and gets its token. The same call, made again and again, keeps it
// known as online and brings the facts up to date.
import { createHash } from 'node:crypto'
import os from 'node:os'
import { call } from './call.ts'
import type { AgentConfig } from './config.ts'
import { facts, type Facts } from './facts.ts'
import { macAddress, type Identity } from './identity.ts'

export interface Enrolled {
  readonly uid: string
  readonly token: string
  readonly name: string
  readonly namespace: string
}

/** The server answered, and did not want us. */
export class Refused extends Error {
  override readonly name = 'Refused'
  readonly status: number
  readonly retryAfter_s: number | undefined
  constructor(status: number, message: string, retryAfter_s: number | undefined) {
    super(message)
    this.status = status
    this.retryAfter_s = retryAfter_s
  }
}

export function enrolment(
  config: AgentConfig,
  identity: Identity,
  told: () => Facts = facts,
): (signal: AbortSignal) => Promise<Enrolled> {
  const mac = config.preferredIdentity || macAddress()
  const hostname = config.preferredHostname || ownName(os.hostname(), identity.publicKey)
  return async (signal) => {
    const answer = await call({
      method: 'POST',
      url: `${config.server}/api/devices/auth`,
      body: {
        info: told(),
        hostname,
        ...(mac ? { identity: { mac } } : {}),
        public_key: identity.publicKey,
        tenant_id: config.tenant_id,
      },
      signal,
    })
    const { uid, token, name, namespace, message } = (answer.body ?? {}) as Partial<Enrolled> & {
      message?: string
    }
    if (answer.status !== 200 || !uid || !token || name === undefined || namespace === undefined)
      throw new Refused(
        answer.status,
        message ?? `The server answered ${answer.status}.`,
        answer.retryAfter_s,
      )
    return { uid, token, name, namespace }
  }
}

/** Machines made from one image have one host name, and names of accepted devices must differ. */
export function ownName(hostname: string, publicKey: string): string {
  const short = hostname
    .split('.', 1)[0]!
    .replaceAll(/[^a-zA-Z0-9_-]/g, '-')
    .slice(0, 57)
  const mark = createHash('sha256').update(publicKey).digest('hex').slice(0, 6)
  return short === '' || short === 'localhost' ? `device-${mark}` : `${short}-${mark}`
}
