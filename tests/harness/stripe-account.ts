// The data and calls of the double of Stripe: customers, their payment methods, subscriptions and invoices, and
// which calls it refuses as Stripe does. stripe.ts speaks HTTP around it.
import { randomBytes } from 'node:crypto'

export const stripePrice = 'price_device_month'
const cents = 500

export type Params = { [key: string]: string | Params }
type Thing = Record<string, unknown> & { id: string; object: string; created: number }

/** A call: its effect, given its parameters, the id in its path, and its path. */
type Route = [method: string, pattern: RegExp, act: (params: Params, id: string, path: string) => object]

export interface StripeAnswer {
  readonly status: number
  readonly body: object
}

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
export const invalid = (message: string, param?: string, code?: string) =>
  new Refusal(400, {
    type: 'invalid_request_error',
    message,
    ...(param ? { param } : {}),
    ...(code ? { code } : {}),
  })
const declined = (code: string, decline_code: string, message: string) =>
  new Refusal(402, { type: 'card_error', code, decline_code, message, param: '' })

/** By outcome, like Stripe's own test cards. */
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

function openRecords(now: () => number) {
  const kept = {
    customer: new Map<string, Thing>(),
    payment_method: new Map<string, Thing>(),
    subscription: new Map<string, Thing>(),
    invoice: new Map<string, Thing>(),
  }
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

  return { kept, seconds, newId, keep, find, page, customerOf, addInvoice }
}
type Records = ReturnType<typeof openRecords>

const cardOf = (method: Thing) => cards[method['kind'] as string]!

const customerRoutes = ({ kept, seconds, newId, keep, find, page, customerOf }: Records): Route[] => [
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
          find('payment_method', plain(method), 'invoice_settings[default_payment_method]')['customer'] !== id
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

function subscriptionRoutes(records: Records): Route[] {
  const { kept, seconds, newId, keep, find, page, customerOf, addInvoice } = records

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

  return [
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
  ]
}

export function stripeAccount(now: () => number) {
  const records = openRecords(now)
  const { kept, seconds, newId, keep, addInvoice } = records
  const routes = [...customerRoutes(records), ...subscriptionRoutes(records)]

  return {
    kept,
    seconds,
    newId,
    addInvoice,
    /** As made by a browser, without a customer. */
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
    act({ method, path, params }: { method: string; path: string; params: Params }): StripeAnswer {
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
    },
  }
}
