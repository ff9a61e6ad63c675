// Receivers of audit streams for tests: a webhook over TLS that checks every signature as a receiver does,
// and a syslog server over TCP or TLS that reads strictly by RFC 5424 and RFC 6587. Both run on 127.0.0.1,
// and can be down or misbehave as told.
import { createHmac, timingSafeEqual } from 'node:crypto'
import { once } from 'node:events'
import http, { type IncomingMessage, type ServerResponse } from 'node:http'
import https from 'node:https'
import net, { type AddressInfo, type Socket } from 'node:net'
import tls from 'node:tls'
import type { AuditEntry } from '@hawser/contract/audit'
import { certificates } from './engine.ts'

export const receiverCa = certificates.ca
const identity = { key: certificates.engineKey, cert: certificates.engineCert }

export interface WebhookBody {
  readonly stream: string
  readonly tenant_id: string
  readonly redelivery: boolean
  readonly test: boolean
  readonly entries: readonly AuditEntry[]
}

export interface TestWebhook extends AsyncDisposable {
  readonly url: string
  readonly port: number
  /** Accepted bodies, in order. */
  readonly taken: WebhookBody[]
  /** All requests, accepted or not. */
  readonly requests: number
  /** Replaces the answer. Undefined: accepts everything that is signed. */
  answer: ((request: IncomingMessage, response: ServerResponse) => void) | undefined
  /** Numbers of accepted entries, in order. */
  seqs(): number[]
}

/** As in the guide. */
export function isSigned(header: string, body: Buffer, secret: string, now_s: number): boolean {
  const [, time = '', signature = ''] = /^t=(\d+),v1=([0-9a-f]{64})$/.exec(header) ?? []
  const right = createHmac('sha256', secret).update(`${time}.`).update(body).digest()
  const given = Buffer.from(signature, 'hex')
  return (
    given.length === right.length && timingSafeEqual(given, right) && Math.abs(now_s - Number(time)) <= 300
  )
}

export async function startWebhook({
  secret,
  secure = true,
  port = 0,
  host = '127.0.0.1',
  now = Date.now,
}: {
  secret: () => string
  secure?: boolean
  port?: number
  host?: string
  now?: () => number
}): Promise<TestWebhook> {
  const taken: WebhookBody[] = []
  let requests = 0
  const take = async (request: IncomingMessage, response: ServerResponse): Promise<void> => {
    requests++
    if (webhook.answer) return webhook.answer(request, response)
    const chunks: Buffer[] = []
    for await (const chunk of request) chunks.push(chunk as Buffer)
    const body = Buffer.concat(chunks)
    const header = String(request.headers['hawser-signature'])
    if (!isSigned(header, body, secret(), now() / 1000)) return void response.writeHead(401).end()
    taken.push(JSON.parse(body.toString()) as WebhookBody)
    response.writeHead(204).end()
  }
  const listener = (request: IncomingMessage, response: ServerResponse): void =>
    void take(request, response).catch(() => response.destroy())
  const server = secure ? https.createServer(identity, listener) : http.createServer(listener)
  server.on('clientError', (_, socket) => socket.destroy()).on('tlsClientError', () => undefined)
  server.listen(port, host)
  await once(server, 'listening')
  const at = (server.address() as AddressInfo).port
  const webhook: TestWebhook = {
    url: `${secure ? 'https' : 'http'}://${host}:${at}/hook`,
    port: at,
    taken,
    get requests() {
      return requests
    },
    answer: undefined,
    seqs: () => taken.flatMap(({ entries }) => entries.map(({ seq }) => seq)),
    async [Symbol.asyncDispose]() {
      server.closeAllConnections()
      server.close()
      await once(server, 'close')
    },
  }
  return webhook
}

export interface SyslogMessage {
  readonly facility: number
  readonly severity: number
  readonly at: string
  readonly host: string
  readonly application: string
  readonly id: string
  readonly structured: string
  readonly entry: AuditEntry & { readonly test?: boolean }
}

const shape =
  /^<(0|[1-9]\d{0,2})>1 (\d{4}-\d\d-\d\dT\d\d:\d\d:\d\d(?:\.\d{1,6})?Z) ([\x21-\x7e]{1,255}) ([\x21-\x7e]{1,48}) ([\x21-\x7e]{1,128}) ([\x21-\x7e]{1,32}) (-|(?:\[[^\s=\]"]{1,32}(?: [^\s=\]"]{1,32}="(?:[^"\\\]]|\\["\\\]])*")*\])+) ([\x20-\x7e]*)$/

/** RFC 5424 in ASCII; throws for anything else. */
export function parseSyslog(text: string): SyslogMessage {
  const match = shape.exec(text)
  if (!match) throw new Error(`not RFC 5424: ${text}`)
  const [, priority, at = '', host = '', application = '', , id = '', structured = '', message = ''] = match
  if (Number(priority) > 191) throw new Error(`no priority: ${priority}`)
  return {
    facility: Math.floor(Number(priority) / 8),
    severity: Number(priority) % 8,
    at,
    host,
    application,
    id,
    structured,
    entry: JSON.parse(message) as SyslogMessage['entry'],
  }
}

/** By their lengths; throws for anything else. */
export function takeFrames(bytes: Buffer): { messages: string[]; rest: Buffer } {
  const messages: string[] = []
  let rest = bytes
  for (;;) {
    const space = rest.indexOf(0x20)
    if (space === -1) {
      if (rest.length > 10) throw new Error('no length')
      return { messages, rest }
    }
    const length = rest.subarray(0, space).toString('latin1')
    if (!/^[1-9]\d{0,9}$/.test(length)) throw new Error(`no length: ${length}`)
    const end = space + 1 + Number(length)
    if (rest.length < end) return { messages, rest }
    messages.push(rest.subarray(space + 1, end).toString())
    rest = rest.subarray(end)
  }
}

export interface TestSyslog extends AsyncDisposable {
  readonly url: string
  readonly port: number
  readonly taken: SyslogMessage[]
  /** Errors. */
  readonly wrong: string[]
  /** Replaces reading from a connection. */
  instead: ((socket: Socket) => void) | undefined
}

export async function startSyslog({ secure = true, port = 0 } = {}): Promise<TestSyslog> {
  const taken: SyslogMessage[] = []
  const wrong: string[] = []
  const sockets = new Set<Socket>()
  const serve = (socket: Socket): void => {
    sockets.add(socket)
    socket.on('error', () => undefined).once('close', () => sockets.delete(socket))
    if (syslog.instead) return syslog.instead(socket)
    let rest: Buffer = Buffer.alloc(0)
    socket.on('data', (chunk: Buffer) => {
      try {
        const found = takeFrames(Buffer.concat([rest, chunk]))
        rest = found.rest
        taken.push(...found.messages.map(parseSyslog))
      } catch (error) {
        wrong.push((error as Error).message)
        socket.destroy()
      }
    })
    socket.on('end', () => {
      if (rest.length > 0) wrong.push(`half a message: ${rest.toString()}`)
      socket.end()
    })
  }
  const server = secure ? tls.createServer(identity, serve) : net.createServer({ allowHalfOpen: true }, serve)
  server.on('tlsClientError', () => undefined)
  server.listen(port, '127.0.0.1')
  await once(server, 'listening')
  const at = (server.address() as AddressInfo).port
  const syslog: TestSyslog = {
    url: `syslog+${secure ? 'tls' : 'tcp'}://127.0.0.1:${at}`,
    port: at,
    taken,
    wrong,
    instead: undefined,
    async [Symbol.asyncDispose]() {
      for (const socket of sockets) socket.destroy()
      server.close()
      await once(server, 'close')
    },
  }
  return syslog
}
