// Enrolment: the device identifies itself and gets its token. Repeated, the same call reports the device as
// online and updates its facts.
import { createHash } from 'node:crypto'
import os from 'node:os'
import type { AgentAnswer } from '@hawser/contract/agents'
import { defined } from '@hawser/contract/defined'
import { call, type Answer } from './call.ts'
import type { AgentConfig } from './config.ts'
import { facts, type Facts } from './facts.ts'
import { macAddress, type Identity } from './identity.ts'
import { rememberedNamespace, rememberNamespace } from './namespace.ts'
import type { Updates } from './update/updates.ts'

export interface Enrolled {
  readonly uid: string
  readonly token: string
  readonly name: string
  readonly namespace: string
  readonly tenant_id: string
  /** Whether the device was accepted; undefined: the server does not report it. */
  readonly status?: string | undefined
  /** Undefined: the server has no key for approvals. */
  readonly approval_key?: string | undefined
}

/** The server answered with a refusal. */
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

/** The facts that a device reports when it enrols or asks to be paired. */
export function aboutDevice(
  { preferredHostname, preferredIdentity }: Pick<AgentConfig, 'preferredHostname' | 'preferredIdentity'>,
  { publicKey }: Identity,
  told: () => Facts = facts,
) {
  const mac = preferredIdentity || macAddress()
  return defined({
    info: told(),
    hostname: preferredHostname || ownName(os.hostname(), publicKey),
    identity: mac ? { mac } : undefined,
    public_key: publicKey,
  })
}

/** `onJoined` stores the namespace of an enrolment token. */
export function enrolment(
  config: AgentConfig,
  identity: Identity,
  told: () => Facts = facts,
  updates?: Updates,
  onJoined: (config: AgentConfig, tenant_id: string) => void = rememberNamespace,
): (signal: AbortSignal) => Promise<Enrolled> {
  const known = config.enrolmentToken && rememberedNamespace(config.keyFile, config.enrolmentToken)
  let enrolment_token = known ? '' : config.enrolmentToken
  let tenant_id = known || config.tenant_id
  return async (signal) => {
    const url = `${config.server}/api/devices/auth`
    const answer = await call({
      method: 'POST',
      url,
      body: defined({
        // Made anew each time: a container may have been renamed.
        ...aboutDevice(config, identity, told),
        tenant_id: tenant_id || undefined,
        enrolment_token: enrolment_token || undefined,
        agent: updates?.report(),
      }),
      signal,
    })
    const { uid, token, name, namespace, status, approval_key, agent } = (answer.body ??
      {}) as Partial<Enrolled> & { agent?: AgentAnswer }
    if (answer.status !== 200 || !uid || !token || name === undefined || namespace === undefined)
      throw new Refused(answer.status, await reasonOf(answer, url), answer.retryAfter_s)
    updates?.told(agent)
    const joined = (answer.body as { tenant_id?: string }).tenant_id
    if (enrolment_token && joined !== undefined) {
      onJoined(config, joined)
      enrolment_token = ''
      tenant_id = joined
    }
    return { uid, token, name, namespace, status, tenant_id, approval_key }
  }
}

/** The server's own sentence, or else a description of the answer. */
export async function reasonOf({ status, body, location }: Answer, url: string): Promise<string> {
  const { message } = (body ?? {}) as { message?: string }
  if (message !== undefined) return message
  const { origin } = new URL(url)
  if (location !== undefined && URL.canParse(location, url))
    return `${origin} sends callers on to ${new URL(location, url).origin}: use that address.`
  const { plainRefused } = await import('./connection-errors.ts')
  return (
    (await plainRefused(status, url)) ??
    `What answers at ${origin} is no Hawser server (HTTP status ${status}).`
  )
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
