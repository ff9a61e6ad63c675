// A double of Stripe's HTTP interface that behaves as the real one where billing looks: form-encoded bodies
// with nested keys, lists in pages with has_more and starting_after, errors as `{error: {type, code,
// decline_code, param, message}}`, idempotency keys that replay the first answer, refuse other parameters and
// are busy while the first call runs, and events signed as `t=…,v1=…`. Everything that was asked is written
// down; it can be slow, broken, away, or lose its answer after the deed; `meet` delays calls and answers, so
// that answers overtake each other, or does something between two calls.
import { createHmac, randomBytes } from 'node:crypto'
import { once } from 'node:events'
import { createServer, type IncomingMessage, type ServerResponse } from 'node:http'
import type { AddressInfo } from 'node:net'
import { text } from 'node:stream/consumers'

export const stripeKey = 'sk_test_4eC39HqLyjWDarjtT1zdp7dc'
export const stripePrice = 'price_device_month'
export const webhookSecret = 'whsec_c3RyaXBlIGRvdWJsZSBzZWNyZXQ'
const cents = 500

type Params = { [key: string]: string | Params }
type Thing = Record<string, unknown> & { id: string; object: string; created: number }

export interface Asked {
  readonly method: string
  readonly path: string
  readonly params: Params
  readonly headers: IncomingMessage['headers']
}

/** What goes wrong with a call: no answer, a bad one, or the deed is done and the answer lost. */
export type Trouble = 'hang' | 'reset' | 'lose' | 'error' | 'busy' | 'wrong key'

/** Runs before a call is acted on and before it is answered. */
export type Meeting = (when: 'asked' | 'done', call: Asked) => Promise<void>

class Refusal extends Error {
  readonly status: number
  readonly body: object
  constructor(
    status: number,
    error: { type: string; message: string; code?: string; decline_code?: string; param?: string },
  ) {
    super(error.message)
    this.status = status
    this.body = { error }
  }
}

const missing = (what: string, id: string, param: string) =>
  new Refusal(404, {
    type: 'invalid_request_error',
    code: 'resource_missing',
    message: `No such ${what}: '${id}'`,
    param,
  })
const invalid = (message: string, param?: string, code?: string) =>
  new Refusal(400, {
    type: 'invalid_request_error',
    message,
    ...(param ? { param } : {}),
    ...(code ? { code } : {}),
  })
const declined = (code: string, decline_code: string, message: string) =>
  new Refusal(402, { type: 'card_error', code, decline_code, message, param: '' })

/** Cards by what becomes of them, as Stripe's own test cards. */
const cards: Record<string, { last4: string; attach?: () => Refusal; charge?: () => Refusal }> = {
  good: { last4: '4242' },
  poor: {
    last4: '9995',
    charge: () => declined('card_declined', 'insufficient_funds', 'Your card has insufficient funds.'),
  },
  expired: {
    last4: '0069',
    attach: () => declined('expired_card', 'expired_card', 'Your card has expired.'),
  },
  miscopied: {
    last4: '0127',
    attach: () => declined('incorrect_cvc', 'incorrect_cvc', "Your card's security code is incorrect."),
  },
}

const plain = (value: string | Params | undefined): string =>
  typeof value === 'string' ? value : (JSON.stringify(value) ?? '')

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

export async function startStripe(now: () => number = Date.now) {
  const asked: Asked[] = []
  const kept = {
    customer: new Map<string, Thing>(),
    payment_method: new Map<string, Thing>(),
    subscription: new Map<string, Thing>(),
    invoice: new Map<string, Thing>(),
  }
  const answers = new Map<
    string,
    { fingerprint: string; answer: Promise<{ status: number; body: object }>; done: boolean }
  >()
  const hanging = new Set<ServerResponse>()
  const troubles: { what: Trouble; where: RegExp; times: number }[] = []
  let held: Promise<void> | undefined
  let meet: Meeting = async () => undefined
  let number = 0
  const seconds = () => Math.floor(now() / 1000)
  const newId = (prefix: string) =>
    `${prefix}_${String(++number).padStart(4, '0')}${randomBytes(6).toString('hex')}`
  const keep = <T extends Thing>(kind: keyof typeof kept, thing: T): T => {
    kept[kind].set(thing.id, thing)
    return thing
  }
  const find = (kind: keyof typeof kept, id: string, param = 'id'): Thing => {
    const found = kept[kind].get(id)
    if (!found) throw missing(kind.replace('_', ''), id, param)
    return found
  }

  function page(things: Thing[], params: Params, url: string) {
    const limit = Number(params['limit'] ?? 10)
    if (!(limit >= 1 && limit <= 100)) throw invalid('This value must be between 1 and 100.', 'limit')
    const sorted = things.toReversed()
    const after = params['starting_after']
    const from = after === undefined ? 0 : sorted.findIndex((one) => one.id === after) + 1
    if (after !== undefined && from === 0) throw missing('object', plain(after), 'starting_after')
    const data = sorted.slice(from, from + limit)
    return { object: 'list', url, has_more: from + limit < sorted.length, data }
  }

  const cardOf = (method: Thing) => cards[method['kind'] as string]!
  const customerOf = (params: Params) => {
    const customer = find('customer', plain(params['customer']), 'customer')
    if (customer['deleted']) throw missing('customer', customer.id, 'customer')
    return customer
  }

  function addInvoice(customer: string, subscription: string, amount_due: number, status: string): Thing {
    const parent = { type: 'subscription_details', subscription_details: { subscription } }
    return keep('invoice', {
      id: newId('in'),
      object: 'invoice',
      created: seconds(),
      customer,
      parent,
      status,
      currency: 'usd',
      amount_due,
      total: amount_due,
    })
  }

  function subscribe(params: Params): Thing {
    const customer = customerOf(params)
    const method = (customer['invoice_settings'] as { default_payment_method: string | null })
      .default_payment_method
    const item = (params['items'] as Params | undefined)?.['0'] as Params | undefined
    if (item?.['price'] !== stripePrice) throw missing('price', plain(item?.['price']), 'items[0][price]')
    if (method === null)
      throw invalid(
        'This customer has no attached payment source or default payment method.',
        undefined,
        'resource_missing',
      )
    const quantity = Number(item['quantity'])
    const refused = cardOf(find('payment_method', method)).charge?.()
    if (refused && params['payment_behavior'] === 'error_if_incomplete') throw refused
    const id = newId('sub')
    const [current_period_start, current_period_end] = [seconds(), seconds() + 30 * 86_400]
    const price = {
      id: stripePrice,
      object: 'price',
      unit_amount: cents,
      recurring: { interval: 'month', usage_type: 'licensed' },
    }
    const made = keep('subscription', {
      id,
      object: 'subscription',
      created: seconds(),
      customer: customer.id,
      status: refused ? 'incomplete' : 'active',
      cancel_at: null,
      cancel_at_period_end: false,
      metadata: params['metadata'] ?? {},
      items: {
        object: 'list',
        has_more: false,
        url: `/v1/subscription_items?subscription=${id}`,
        data: [
          {
            id: newId('si'),
            object: 'subscription_item',
            price,
            quantity,
            current_period_start,
            current_period_end,
          },
        ],
      },
    })
    addInvoice(customer.id, id, quantity * cents, refused ? 'open' : 'paid')
    return made
  }

  const itemsOf = (subscription: Thing) =>
    (subscription['items'] as { data: { id: string; quantity: number }[] }).data

  function updateSubscription(subscription: Thing, params: Params): Thing {
    if (subscription['status'] === 'canceled')
      throw invalid('A canceled subscription can only update its cancellation_details and metadata.')
    for (const change of Object.values((params['items'] ?? {}) as Params) as Params[]) {
      const item = itemsOf(subscription).find((one) => one.id === change['id'])
      if (!item) throw missing('subscription item', plain(change['id']), 'items[0][id]')
      item.quantity = Number(change['quantity'])
    }
    return subscription
  }

  const routes: [
    method: string,
    pattern: RegExp,
    act: (params: Params, id: string, path: string) => object,
  ][] = [
    [
      'POST',
      /^customers$/,
      (params) => {
        if (typeof params['email'] !== 'string' || !params['email'].includes('@'))
          throw invalid(`Invalid email address: ${plain(params['email'])}`, 'email', 'email_invalid')
        const invoice_settings = { default_payment_method: null }
        return keep('customer', {
          id: newId('cus'),
          object: 'customer',
          created: seconds(),
          name: params['name'],
          email: params['email'],
          metadata: params['metadata'] ?? {},
          invoice_settings,
        })
      },
    ],
    [
      'GET',
      /^customers\/(\w+)$/,
      (_, id) => {
        const found = find('customer', id)
        return found['deleted'] ? { id, object: 'customer', deleted: true } : found
      },
    ],
    [
      'POST',
      /^customers\/(\w+)$/,
      (params, id) => {
        const customer = find('customer', id)
        const method = (params['invoice_settings'] as Params | undefined)?.['default_payment_method']
        if (method !== undefined) {
          if (
            find('payment_method', plain(method), 'invoice_settings[default_payment_method]')['customer'] !==
            id
          )
            throw invalid(
              'The customer does not have a payment method with that ID.',
              'invoice_settings[default_payment_method]',
              'resource_missing',
            )
          customer['invoice_settings'] = { default_payment_method: method }
        }
        return customer
      },
    ],
    [
      'GET',
      /^customers\/(\w+)\/payment_methods$/,
      (params, id, path) =>
        page(
          [...kept.payment_method.values()].filter((one) => one['customer'] === id),
          params,
          path,
        ),
    ],
    ['GET', /^payment_methods\/(\w+)$/, (_, id) => find('payment_method', id)],
    [
      'POST',
      /^payment_methods\/(\w+)\/attach$/,
      (params, id) => {
        const method = find('payment_method', id, 'payment_method')
        const customer = customerOf(params)
        if (method['customer'] !== null && method['customer'] !== customer.id)
          throw invalid('The payment method you provided has already been attached to a customer.')
        const refused = cardOf(method).attach?.()
        if (refused) throw refused
        method['customer'] = customer.id
        return method
      },
    ],
    [
      'POST',
      /^payment_methods\/(\w+)\/detach$/,
      (_, id) => {
        const method = find('payment_method', id, 'payment_method')
        const settings = kept.customer.get(String(method['customer']))?.['invoice_settings'] as
          | { default_payment_method: string | null }
          | undefined
        if (settings?.default_payment_method === id) settings.default_payment_method = null
        method['customer'] = null
        return method
      },
    ],
    [
      'GET',
      /^subscriptions$/,
      (params, _, path) => {
        const all = [...kept.subscription.values()].filter((one) => one['customer'] === params['customer'])
        // Without a status those that were canceled are left out.
        return page(
          params['status'] === 'all' ? all : all.filter((one) => one['status'] !== 'canceled'),
          params,
          path,
        )
      },
    ],
    ['POST', /^subscriptions$/, (params) => subscribe(params)],
    ['GET', /^subscriptions\/(\w+)$/, (_, id) => find('subscription', id)],
    ['POST', /^subscriptions\/(\w+)$/, (params, id) => updateSubscription(find('subscription', id), params)],
    [
      'DELETE',
      /^subscriptions\/(\w+)$/,
      (params, id) => {
        const subscription = find('subscription', id)
        if (subscription['status'] === 'canceled') throw missing('subscription', id, 'id')
        if (params['invoice_now'] === 'true') addInvoice(String(subscription['customer']), id, 100, 'paid')
        return Object.assign(subscription, { status: 'canceled' })
      },
    ],
    [
      'GET',
      /^invoices$/,
      (params, _, path) => {
        const fits = (one: Thing) =>
          (params['customer'] === undefined || one['customer'] === params['customer']) &&
          (params['status'] === undefined || one['status'] === params['status']) &&
          (params['subscription'] === undefined ||
            (one['parent'] as { subscription_details: { subscription: string } }).subscription_details
              .subscription === params['subscription'])
        return page([...kept.invoice.values()].filter(fits), params, path)
      },
    ],
    [
      'POST',
      /^billing_portal\/sessions$/,
      (params) => {
        const customer = customerOf(params)
        return {
          id: newId('bps'),
          object: 'billing_portal.session',
          customer: customer.id,
          return_url: params['return_url'],
          url: `https://billing.stripe.test/p/session/${customer.id}`,
        }
      },
    ],
  ]

  function act({ method, path, params }: Asked): { status: number; body: object } {
    for (const [wanted, pattern, deed] of routes) {
      const match = pattern.exec(path)
      if (method !== wanted || !match) continue
      try {
        return { status: 200, body: structuredClone(deed(params, match[1] ?? '', `/v1/${path}`)) }
      } catch (error) {
        if (error instanceof Refusal) return { status: error.status, body: error.body }
        throw error
      }
    }
    return { status: 404, body: invalid(`Unrecognized request URL (${method}: /v1/${path}).`).body }
  }

  /** The first answer again, for whoever asks the same with the same key. */
  async function actOnce(call: Asked): Promise<{ status: number; body: object; replayed?: boolean }> {
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
  }

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
    const { status, body: said, replayed } = await actOnce(call)
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
    /** The settings of a server that is billed here. */
    env: {
      HAWSER_STRIPE_URL: url,
      HAWSER_STRIPE_KEY: stripeKey,
      HAWSER_STRIPE_PRICE: stripePrice,
      HAWSER_STRIPE_WEBHOOK_SECRET: webhookSecret,
    },
    asked,
    kept,
    addInvoice,
    sign,
    /** A payment method as a browser makes one; nobody's yet. */
    card(kind: keyof typeof cards = 'good'): string {
      const id = newId('pm')
      const card = { brand: 'visa', last4: cards[kind]!.last4, exp_month: 12, exp_year: 2031 }
      return keep('payment_method', {
        id,
        object: 'payment_method',
        created: seconds(),
        type: 'card',
        kind,
        customer: null,
        card,
      }).id
    },
    /** The next calls to such an address (`POST subscriptions`) go wrong. */
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
    /** Calls with an idempotency key are under way until it is let go. */
    hold(): () => void {
      const { promise, resolve } = Promise.withResolvers<void>()
      held = promise
      return () => {
        held = undefined
        resolve()
      }
    },
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
    /** Sends an event to a server, as Stripe does. */
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
