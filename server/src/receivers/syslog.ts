// Syslog: RFC 5424 over TCP (RFC 6587) or TLS (RFC 5425), each message with its length in front. Syslog has
// no acknowledgement, so every batch has its own connection: we write everything and close our side, and the
// batch counts as taken when the receiver, having read all, closes its side in order; one that leaves early
// resets the connection.
import { hash } from 'node:crypto'
import net, { isIP } from 'node:net'
import { setTimeout as wait } from 'node:timers/promises'
import tls, { type SecureContext } from 'node:tls'
import type { AuditEntry } from '@hawser/contract/audit'
import { shortened } from '@hawser/contract/audit-detail'
import { version } from '@hawser/contract/version'
import { DeliveryFailed, talkative, type Destination } from './destination.ts'

/** The size that receivers should take by RFC 5425. */
const largestMessage = 8192
/** "Log audit". */
const facility = 13
const severity = { warning: 4, notice: 5 }
/** Longest fields of RFC 5424. */
const longestHost = 255
const longestMessageId = 32
/** Ignored bytes of a receiver. */
const mostHeard = 64 * 1024
/** The least time to distinguish a receiver that closes at once from one that reads. */
const listening_ms = 50

/** In ASCII receivers need no byte order mark, and none of their lines can be broken. */
export function asciiJson(value: unknown): string {
  return JSON.stringify(value).replaceAll(
    /[\u007f-\uffff]/g,
    (character) => `\\u${character.charCodeAt(0).toString(16).padStart(4, '0')}`,
  )
}

const header = (host: string, level: number, at: string, id: string): string =>
  `<${facility * 8 + level}>1 ${at} ${plain(host, longestHost)} hawser - ${plain(id, longestMessageId)} ` +
  `[origin software="Hawser" swVersion="${plain(version, longestMessageId)}"]`

/** Printable ASCII without spaces, as the fields of the header are; `-`: there is none. */
const plain = (text: string, longest: number): string =>
  text.replaceAll(/[^\x21-\x7e]|["\\\]]/g, '').slice(0, longest) || '-'

/** An entry that would be too long has digests instead of the detail's longest values. */
export function messageOf(host: string, entry: AuditEntry): string {
  const level = /\.(refused|conflict|gave-up)$/.test(entry.action) ? severity.warning : severity.notice
  const start = header(host, level, entry.at, entry.action)
  const whole = `${start} ${asciiJson(entry)}`
  if (whole.length <= largestMessage) return whole
  const room = largestMessage - (whole.length - asciiJson(entry.detail).length)
  const form = { json: asciiJson, sha256: (text: string) => hash('sha256', text) }
  return `${start} ${asciiJson({ ...entry, detail: shortened(entry.detail, room, form) })}`
}

export function testMessage(host: string, at: string, about: object): string {
  return `${header(host, severity.notice, at, 'test')} ${asciiJson(about)}`
}

export const framed = (message: string): string => `${Buffer.byteLength(message)} ${message}`

export interface SyslogBatch {
  readonly destination: Destination
  /** The checked address of its host. */
  readonly address: string
  /** Undefined without TLS. */
  readonly tls: SecureContext | undefined
  readonly messages: readonly string[]
  readonly signal: AbortSignal
}

/** Resolves when the receiver has taken all messages. */
export async function sendSyslog(batch: SyslogBatch): Promise<void> {
  const { destination, address, messages, signal } = batch
  const { host, port } = destination
  const began = performance.now()
  const socket = batch.tls
    ? tls.connect({
        host: address,
        port,
        secureContext: batch.tls,
        servername: isIP(host) ? '' : host,
        checkServerIdentity: (_, certificate) => tls.checkServerIdentity(host, certificate),
      })
    : net.connect({ host: address, port, allowHalfOpen: true })
  const abort = (): void => void socket.destroy(new Error('aborted'))
  signal.addEventListener('abort', abort, { once: true })
  if (signal.aborted) abort()
  let finished = false
  let ended = false
  const closed = new Promise<void>((resolve, reject) => {
    socket.on('error', reject)
    socket.on('end', () => {
      ended = true
      if (!finished) socket.destroy(new DeliveryFailed('The receiver closed the connection too early.'))
    })
    socket.on('close', () =>
      ended && finished
        ? resolve()
        : reject(new DeliveryFailed('The receiver closed the connection too early.')),
    )
  })
  // Awaited below; it may fail before.
  closed.catch(() => undefined)
  // Input is discarded, so that its end is seen.
  let heard = 0
  socket.on('data', (bytes: Buffer) => {
    heard += bytes.length
    if (heard > mostHeard) socket.destroy(new DeliveryFailed(talkative))
  })
  try {
    await Promise.race([
      closed,
      new Promise<void>((resolve) => socket.once(batch.tls ? 'secureConnect' : 'connect', resolve)),
    ])
    const roundTrip_ms = performance.now() - began
    await Promise.race([
      closed,
      new Promise<void>((resolve) => socket.write(messages.map(framed).join(''), () => resolve())),
    ])
    // A receiver that has closed already answers with a reset, which takes a round trip to arrive.
    await Promise.race([closed, wait(listening_ms + 2 * roundTrip_ms)])
    finished = true
    socket.end()
    await closed
  } finally {
    signal.removeEventListener('abort', abort)
    socket.destroy()
  }
}
