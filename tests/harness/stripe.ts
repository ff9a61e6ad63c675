// A double of Stripe's HTTP interface that behaves as the real one where billing looks: form-encoded bodies
// with nested keys, lists in pages with has_more and starting_after, errors as `{error: {type, code,
// decline_code, param, message}}`, idempotency keys that replay the first answer, refuse other parameters and
// are busy while the first call runs, and events signed as `t=…,v1=…`. Everything that was asked is written
// down; it can be slow, broken, away, or lose its answer after the deed; `meet` delays calls and answers, so
// that answers overtake each other, or does something between two calls.
import { createHmac } from 'node:crypto'
import { once } from 'node:events'
import { createServer, type IncomingMessage, type ServerResponse } from 'node:http'
import type { AddressInfo } from 'node:net'
import { text } from 'node:stream/consumers'
import { invalid, stripeAccount, stripePrice, type Params, type StripeAnswer } from './stripe-account.ts'

export { stripePrice }
export const stripeKey = 'sk_test_4eC39HqLyjWDarjtT1zdp7dc'
export const webhookSecret = 'whsec_c3RyaXBlIGRvdWJsZSBzZWNyZXQ'

export interface Asked {
  readonly method: string
  readonly path: string
  readonly params: Params
  readonly headers: IncomingMessage['headers']
}

/** Failures of a call: no answer, a bad one, or an answer that is lost after the deed. */
export type Trouble = 'hang' | 'reset' | 'lose' | 'error' | 'busy' | 'wrong key'

/** Runs before a call takes effect and before it is answered. */
export type Meeting = (when: 'asked' | 'done', call: Asked) => Promise<void>

/** `a[b][0]=c` */
function decode(body: string): Params {
  const result: Params = {}
  for (const [name, value] of new URLSearchParams(body)) {
    const keys = [name.split('[')[0]!, ...[...name.matchAll(/\[([^\]]*)\]/g)].map((match) => match[1]!)]
    let at = result
    for (const key of keys.slice(0, -1)) at = (at[key] ??= {}) as Params
    at[keys.at(-1)!] = value
  }
  return result
}

function idempotent(act: (call: Asked) => StripeAnswer) {
  const answers = new Map<string, { fingerprint: string; answer: Promise<StripeAnswer>; done: boolean }>()
  let held: Promise<void> | undefined

  return {
    /** Repeats the first answer to the same call with the same key. */
    async answer(call: Asked): Promise<StripeAnswer & { replayed?: boolean }> {
      const key = call.headers['idempotency-key']
      if (call.method !== 'POST' || typeof key !== 'string') return act(call)
      const fingerprint = JSON.stringify([call.path, call.params])
      const known = answers.get(key)
      if (!known) {
        const entry = { fingerprint, answer: Promise.resolve(held).then(() => act(call)), done: false }
        answers.set(key, entry)
        return entry.answer.finally(() => (entry.done = true))
      }
      const wrong = (status: number, code: string | undefined, message: string) => ({
        status,
        body: { error: { type: 'idempotency_error', message, ...(code ? { code } : {}) } },
      })
      if (known.fingerprint !== fingerprint)
        return wrong(
          400,
          undefined,
          'Keys for idempotent requests can only be used with the same parameters they were first used with.',
        )
      if (!known.done)
        return wrong(
          409,
          'idempotency_key_in_use',
          'There is currently another in-progress request using this Idempotent Key.',
        )
      return { ...(await known.answer), replayed: true }
    },
    /** Holds calls with an idempotency key until the returned function is called. */
    hold(): () => void {
      const { promise, resolve } = Promise.withResolvers<void>()
      held = promise
      return () => {
        held = undefined
        resolve()
      }
    },
  }
}

export async function startStripe(now: () => number = Date.now) {
  const { kept, seconds, newId, addInvoice, card, act } = stripeAccount(now)
  const calls = idempotent(act)
  const asked: Asked[] = []
  const hanging = new Set<ServerResponse>()
  const troubles: { what: Trouble; where: RegExp; times: number }[] = []
  let meet: Meeting = async () => undefined

  function troubleFor(call: Asked): Trouble | undefined {
    const found = troubles.find(({ where, times }) => times > 0 && where.test(`${call.method} ${call.path}`))
    if (found) found.times--
    return found?.what
  }

  async function answer(request: IncomingMessage, response: ServerResponse): Promise<void> {
    const url = new URL(request.url ?? '/', 'http://stripe.test')
    const body = await text(request)
    const call: Asked = {
      method: request.method ?? '',
      path: url.pathname.replace(/^\/v1\//, ''),
      params: decode(body === '' ? url.search.slice(1) : body),
      headers: request.headers,
    }
    asked.push(call)
    const send = (status: number, said: object, headers: Record<string, string> = {}) =>
      response
        .writeHead(status, {
          'content-type': 'application/json',
          'request-id': newId('req'),
          'stripe-version': String(request.headers['stripe-version'] ?? ''),
          ...headers,
        })
        .end(JSON.stringify(said))
    if (request.headers.authorization !== `Bearer ${stripeKey}`)
      return void send(401, {
        error: { type: 'invalid_request_error', message: 'Invalid API Key provided: sk_wrong_****.' },
      })
    if (!/^\d{4}-\d\d-\d\d\.\w+$/.test(String(request.headers['stripe-version'])))
      return void send(400, invalid('Invalid Stripe API version').body)
    if (body !== '' && !request.headers['content-type']?.startsWith('application/x-www-form-urlencoded'))
      return void send(400, invalid('Invalid request: the body must be form-encoded.').body)
    await meet('asked', call)
    const trouble = troubleFor(call)
    if (trouble === 'hang') return void hanging.add(response)
    if (trouble === 'reset') return void request.socket.destroy()
    if (trouble === 'error')
      return void send(500, { error: { type: 'api_error', message: 'An unknown error occurred' } })
    if (trouble === 'busy')
      return void send(429, {
        error: { type: 'invalid_request_error', code: 'rate_limit', message: 'Request rate limit exceeded.' },
      })
    if (trouble === 'wrong key')
      return void send(401, {
        error: { type: 'invalid_request_error', message: `Invalid API Key provided: ${stripeKey}` },
      })
    const { status, body: said, replayed } = await calls.answer(call)
    await meet('done', call)
    if (trouble === 'lose') return void request.socket.destroy()
    send(status, said, replayed ? { 'idempotent-replayed': 'true' } : {})
  }

  const server = createServer((request, response) => void answer(request, response))
  server.listen(0, '127.0.0.1')
  await once(server, 'listening')
  const { port } = server.address() as AddressInfo
  const url = `http://127.0.0.1:${port}`

  const sign = (
    payload: string,
    { secret = webhookSecret, at = seconds() }: { secret?: string; at?: number } = {},
  ) => `t=${at},v1=${createHmac('sha256', secret).update(`${at}.${payload}`).digest('hex')}`

  return {
    url,
    /** For a server that is billed here. */
    env: {
      HAWSER_STRIPE_URL: url,
      HAWSER_STRIPE_KEY: stripeKey,
      HAWSER_STRIPE_PRICE: stripePrice,
      HAWSER_STRIPE_WEBHOOK_SECRET: webhookSecret,
    },
    asked,
    kept,
    addInvoice,
    card,
    sign,
    /** Makes the next calls to such an address (`POST subscriptions`) fail. */
    trouble(what: Trouble, where: RegExp = /./, times = Infinity): void {
      troubles.unshift({ what, where, times })
    },
    meet(meeting: Meeting): void {
      meet = meeting
    },
    well(): void {
      meet = async () => undefined
      troubles.length = 0
      for (const response of hanging) response.destroy()
      hanging.clear()
    },
    hold: calls.hold,
    event(type: string, object: object, id = newId('evt')): string {
      return JSON.stringify(
        {
          id,
          object: 'event',
          api_version: '2026-10-28.endive',
          created: seconds(),
          type,
          livemode: false,
          data: { object },
        },
        null,
        2,
      )
    },
    async send(
      to: string,
      payload: string,
      signature = sign(payload),
    ): Promise<{ status: number; body: { message?: string; code?: string } }> {
      const response = await fetch(`${to}/api/webhook-billing`, {
        method: 'POST',
        headers: {
          'content-type': 'application/json; charset=utf-8',
          ...(signature ? { 'stripe-signature': signature } : {}),
        },
        body: payload,
      })
      const said = await response.text()
      return { status: response.status, body: said === '' ? {} : (JSON.parse(said) as object) }
    },
    async [Symbol.asyncDispose]() {
      server.closeAllConnections()
      if (server.listening) await new Promise((resolve) => server.close(resolve))
    },
  }
}

export type StripeDouble = Awaited<ReturnType<typeof startStripe>>
