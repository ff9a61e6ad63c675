// Billing: the number of devices and its limit, payment methods, the subscription and its invoices, and the
// choice of devices when there are too many. Cards are entered on the payment provider's own pages, never
// here. Without a provider nothing is limited and there is nothing to pay, and the page says so.
import { ApiError } from '@hawser/contract/client'
import type { Namespace } from '@hawser/contract/namespaces'
import { api } from '../api.ts'
import { attempt, useNamespace, useNamespaceQuery } from '../namespace-query.ts'
import { Button, QuietButton, SmallButton } from '../components/button.tsx'
import { DeviceChoice } from '../components/device-choice.tsx'
import { ConfirmButton, DialogButton } from '../components/dialog-button.tsx'
import { Page, Panel } from '../components/page.tsx'
import { Row } from '../components/row.tsx'
import { QueryContent, Empty, Loading, ErrorNotice } from '../components/query-content.tsx'
import { inFull, Pill, type Tone } from '../components/status.tsx'
import { locale, msg, rich, t } from '../language/language.ts'

type Customer = Awaited<ReturnType<typeof api.billing.getCustomer>>['body']
type Subscription = Awaited<ReturnType<typeof api.billing.getSubscription>>['body']
type Method = Customer['payment_methods'][number]

/** A response, or a refusal that the page shows as a state of its own. */
type Outcome<T> = { body: T } | { refused: ApiError }

async function outcome<T>(call: Promise<{ body: T }>): Promise<Outcome<T>> {
  try {
    return { body: (await call).body }
  } catch (error) {
    // Not a customer yet, unpaid and not billed are states of the page; anything else is an error.
    if (
      error instanceof ApiError &&
      (error.kind === 'paymentRequired' ||
        error.kind === 'notFound' ||
        error.code === 'provider_not_configured')
    )
      return { refused: error }
    throw error
  }
}

export function BillingPage() {
  const namespace = useNamespace()
  const customer = useNamespaceQuery(['billing', 'customer'], () => outcome(api.billing.getCustomer()), false)
  const unbilled =
    customer.data && 'refused' in customer.data && customer.data.refused.code === 'provider_not_configured'
  return (
    <Page
      title={t('Billing')}
      lead={
        unbilled === false ? t('Three devices are free; with a subscription there is no limit.') : undefined
      }
    >
      {unbilled ? (
        <Panel title={t('Subscription')}>
          <Empty title={t('No payment is needed.')}>
            <p className="soft">
              {t('This server has no payment provider, so nothing is billed and there are no limits.')}
            </p>
          </Empty>
        </Panel>
      ) : (
        <>
          <QueryContent query={namespace}>{(here) => <Devices namespace={here} />}</QueryContent>
          {customer.data ? (
            'refused' in customer.data ? (
              <Beginning />
            ) : (
              <Account customer={customer.data.body} />
            )
          ) : (
            <Panel title={t('Subscription')}>
              {customer.isPending ? (
                <Loading />
              ) : (
                <ErrorNotice error={customer.error} again={() => customer.refetch()} />
              )}
            </Panel>
          )}
        </>
      )}
    </Page>
  )
}

function Devices({ namespace: { device_count, max_devices } }: { namespace: Namespace }) {
  const over = max_devices > 0 && device_count > max_devices
  return (
    <Panel title={over ? t('Over the free device limit') : t('Devices')} tone={over ? 'wanting' : undefined}>
      <p>
        {max_devices > 0
          ? rich('{count} accepted, {free} are free.', {
              count: <strong>{device_count}</strong>,
              free: <strong>{max_devices}</strong>,
            })
          : rich(
              device_count === 1
                ? '{count} accepted device, no limit.'
                : '{count} accepted devices, no limit.',
              { count: <strong>{device_count}</strong> },
            )}
        {over && ` ${t('Nobody can connect to any of them until you choose which ones stay, or subscribe.')}`}
      </p>
      {over && (
        <div>
          <DialogButton dialog={(close) => <DeviceChoice limit={Math.min(3, max_devices)} close={close} />}>
            {t('Choose devices …')}
          </DialogButton>
        </div>
      )}
    </Panel>
  )
}

/** For a namespace that is no customer yet. */
function Beginning() {
  return (
    <Panel title={t('Subscription')}>
      <Empty title={t('There is no subscription yet.')}>
        <p className="soft">
          {t(
            'To add more devices, first register the namespace with the payment provider. Registration is free.',
          )}
        </p>
        <Button
          onPress={() =>
            attempt(
              () => api.billing.createCustomer(),
              t('The namespace is now registered with the payment provider.'),
            )
          }
        >
          {t('Begin')}
        </Button>
      </Empty>
    </Panel>
  )
}

const openPortal = () => attempt(async () => location.assign((await api.billing.portal()).body.url))

function Account({ customer }: { customer: Customer }) {
  const subscription = useNamespaceQuery(
    ['billing', 'subscription'],
    () => outcome(api.billing.getSubscription()),
    false,
  )
  const payable = customer.payment_methods.some((method) => method.default)
  return (
    <>
      <Panel
        title={t('Subscription')}
        acts={<SmallButton onPress={openPortal}>{t('Manage at the payment provider')}</SmallButton>}
      >
        <QueryContent query={subscription}>
          {(found) =>
            'refused' in found ? (
              <None refused={found.refused} payable={payable} />
            ) : (
              <Present subscription={found.body} payable={payable} />
            )
          }
        </QueryContent>
      </Panel>
      <Panel
        title={t('Payment methods')}
        acts={
          customer.payment_methods.length > 0 && (
            <SmallButton onPress={openPortal}>{t('Add a card')}</SmallButton>
          )
        }
      >
        {customer.payment_methods.length === 0 ? (
          <Empty title={t('No cards yet.')}>
            <p className="soft">
              {t('You add cards on the payment provider’s site; this server never sees card numbers.')}
            </p>
            <QuietButton onPress={openPortal}>{t('Add a card')}</QuietButton>
          </Empty>
        ) : (
          <ul className="rows" aria-label={t('Payment methods')}>
            {customer.payment_methods.map((method) => (
              <MethodRow key={method.id} method={method} />
            ))}
          </ul>
        )}
      </Panel>
    </>
  )
}

const words: Readonly<Record<string, readonly [string, Tone]>> = {
  active: [msg('active'), 'good'],
  trialing: [msg('trial'), 'good'],
  past_due: [msg('payment overdue'), 'wait'],
  to_cancel_at_end_of_period: [msg('ends soon'), 'wait'],
  canceled: [msg('ended'), 'plain'],
  incomplete_expired: [msg('never began'), 'plain'],
  paused: [msg('paused'), 'wait'],
}

const subscribe = () => attempt(() => api.billing.createSubscription(), t('The subscription has started.'))

function Subscribe({ payable }: { payable: boolean }) {
  return payable ? (
    <Button onPress={subscribe}>{t('Subscribe')}</Button>
  ) : (
    <p className="soft">{t('A valid card is required first: add one and make it the default.')}</p>
  )
}

function None({ refused, payable }: { refused: ApiError; payable: boolean }) {
  if (refused.kind === 'paymentRequired')
    return (
      <Empty title={t('An invoice is unpaid.')}>
        <p className="soft">{t('Pay it on the payment provider’s site to keep your subscription.')}</p>
        <Button onPress={openPortal}>{t('Pay it')}</Button>
      </Empty>
    )
  return (
    <Empty title={t('There is no subscription yet.')}>
      <Subscribe payable={payable} />
    </Empty>
  )
}

function Present({
  subscription: { active, status, end_at, invoices },
  payable,
}: {
  subscription: Subscription
  payable: boolean
}) {
  const [word, tone] = words[status] ?? [status, 'plain']
  const end = inFull(new Date(end_at * 1000).toISOString())
  return (
    <>
      <p>
        <Pill tone={tone}>{t(word)}</Pill>{' '}
        {status === 'active'
          ? t('paid until {end}', { end })
          : active && status !== 'past_due' && t('until {end}', { end })}
      </p>
      {!active && status !== 'paused' && (
        <div>
          <Subscribe payable={payable} />
        </div>
      )}
      <h3>{t('Invoices')}</h3>
      {invoices.length === 0 ? (
        <p className="soft">{t('None yet.')}</p>
      ) : (
        <ul className="rows scrolled" aria-label={t('Invoices')} tabIndex={0}>
          {invoices.map((invoice) => (
            <Row
              key={invoice.id}
              name={
                <>
                  <strong>{money(invoice)}</strong>{' '}
                  <Pill tone={invoiceTones[invoice.status] ?? 'plain'}>{t(invoice.status)}</Pill>
                </>
              }
              facts={invoice.id}
            />
          ))}
        </ul>
      )}
    </>
  )
}

const invoiceTones: Readonly<Record<string, Tone>> = { paid: 'good', open: 'wait', uncollectible: 'bad' }

function money({ amount, currency }: { amount: number; currency: string }): string {
  const code = currency.toUpperCase()
  try {
    const format = new Intl.NumberFormat(locale(), { style: 'currency', currency: code })
    // Stripe counts in the smallest unit of the currency; the yen, for one, has no smaller unit.
    return format.format(amount / 10 ** (format.resolvedOptions().maximumFractionDigits ?? 2))
  } catch {
    return `${amount} ${code}`
  }
}

function MethodRow({ method }: { method: Method }) {
  const { id, brand, number, exp_month, exp_year } = method
  const name = t('{brand} ending in {number}', {
    brand: brand.charAt(0).toUpperCase() + brand.slice(1),
    number,
  })
  const body = { id }
  return (
    <Row
      name={
        <>
          <strong>{name}</strong> {method.default && <Pill tone="good">{t('default')}</Pill>}
        </>
      }
      facts={t('valid until {month}/{year}', { month: String(exp_month).padStart(2, '0'), year: exp_year })}
      acts={
        !method.default && (
          <>
            <Button
              kind="quiet"
              small
              aria-label={t('Make default: {name}', { name })}
              onPress={() =>
                attempt(
                  () => api.billing.setDefaultPaymentMethod({ body }),
                  t('{name} is now the default card.', { name }),
                )
              }
            >
              {t('Make default')}
            </Button>
            <ConfirmButton
              kind="quiet"
              small
              aria-label={t('Remove {name}', { name })}
              question={{
                title: t('Remove {name}?', { name }),
                says: t('You can add it again later.'),
                yes: t('Remove it'),
                act: () => api.billing.detachPaymentMethod({ body }),
                done: t('{name} was removed.', { name }),
              }}
            >
              {t('Remove')}
            </ConfirmButton>
          </>
        )
      }
    />
  )
}
