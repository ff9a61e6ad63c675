// A webhook: one signed POST with JSON for each batch. Only the status of its answer counts; the body is not
// read, and no redirect is followed.
import { createHmac } from 'node:crypto'
import http from 'node:http'
import https from 'node:https'
import { isIP } from 'node:net'
import type { SecureContext } from 'node:tls'
import { signatureHeader, webhookText } from '@hawser/contract/audit-streams'
import { version } from '@hawser/contract/version'
import { DeliveryFailed, talkative, type Destination } from './destination.ts'

const largestHeaders = 16 * 1024
/** Answers like `100 Continue`, which nobody asked for. */
const mostInterim = 4

/** `t=<seconds>,v1=<hex>`: HMAC-SHA256 of the time, a dot and the body, by the secret of the stream. */
export function signatureOf(secret: string, time_s: number, body: string): string {
  return `t=${time_s},v1=${createHmac('sha256', secret).update(webhookText(time_s, body)).digest('hex')}`
}

export interface WebhookRequest {
  readonly destination: Destination
  /** The checked address of its host. */
  readonly address: string
  /** Undefined without TLS. */
  readonly tls: SecureContext | undefined
  readonly secret: string
  readonly body: string
  readonly time_s: number
  readonly signal: AbortSignal
}

/** Resolves when the receiver has taken it. */
export async function postWebhook(request: WebhookRequest): Promise<void> {
  const { destination, address, tls, body, secret, time_s, signal } = request
  const { host, port, path, secure } = destination
  const named = isIP(host) === 6 ? `[${host}]` : host
  const status = await new Promise<number>((resolve, reject) => {
    const call = (secure ? https : http).request({
      host: address,
      port,
      path,
      method: 'POST',
      agent: false,
      signal,
      maxHeaderSize: largestHeaders,
      headers: {
        host: port === (secure ? 443 : 80) ? named : `${named}:${port}`,
        'content-type': 'application/json',
        'content-length': Buffer.byteLength(body),
        'user-agent': `hawser/${version}`,
        [signatureHeader]: signatureOf(secret, time_s, body),
      },
      ...(tls ? { secureContext: tls, servername: isIP(host) ? '' : host } : {}),
    })
    call.on('error', reject)
    let interim = 0
    call.on('information', () => {
      if (++interim > mostInterim) call.destroy(new DeliveryFailed(talkative))
    })
    call.on('response', (response) => {
      resolve(response.statusCode ?? 0)
      response.destroy()
    })
    call.end(body)
  })
  if (status >= 300 && status <= 399)
    throw new DeliveryFailed(`The receiver answered with status ${status}; redirects are not followed.`)
  if (status < 200 || status > 299) throw new DeliveryFailed(`The receiver answered with status ${status}.`)
}
