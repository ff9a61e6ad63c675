// Billing, as the server answers it: without a payment provider there is nothing to pay and nothing is limited, and the
// page says so; with one it shows customer, subscription and invoices.
import { ApiError } from '@hawser/contract/client'
import { api, sentenceOf } from '../api.ts'
import { attempt, useAsk } from '../parts/ask.ts'
import { Button } from '../parts/button.tsx'
import { Page, Panel } from '../parts/page.tsx'
import { Empty, Loading, Trouble } from '../parts/states.tsx'
import { inFull, Pill } from '../parts/status.tsx'

export function BillingPage() {
  const subscription = useAsk(['billing', 'subscription'], async () => (await api.billing.getSubscription()).body, false)
  return (
    <Page title="Billing">
      <Panel title="Subscription">
        {subscription.isPending ? (
          <Loading />
        ) : subscription.data ? (
          <Shown subscription={subscription.data} />
        ) : (
          <Refused error={subscription.error} again={() => void subscription.refetch()} />
        )}
      </Panel>
    </Page>
  )
}

function Refused({ error, again }: { error: unknown; again: () => void }) {
  if (error instanceof ApiError && error.code === 'provider_not_configured')
    return (
      <Empty title="Nothing has to be paid here.">
        <p className="soft">This server has no payment provider, so nothing is billed and nothing is limited.</p>
      </Empty>
    )
  if (error instanceof ApiError && error.status === 404)
    return (
      <Empty title="There is no subscription yet.">
        <p className="soft">{sentenceOf(error)}</p>
        <Button onPress={() => void attempt(() => api.billing.createSubscription(), 'The subscription has begun.')}>Subscribe</Button>
      </Empty>
    )
  return <Trouble error={error} again={again} />
}

type Subscription = Awaited<ReturnType<typeof api.billing.getSubscription>>['body']

function Shown({ subscription }: { subscription: Subscription }) {
  return (
    <>
      <p>
        <Pill tone={subscription.active ? 'good' : 'bad'}>{subscription.status}</Pill> until{' '}
        {inFull(new Date(subscription.end_at * 1000).toISOString())}
      </p>
      <ul className="rows" aria-label="Invoices">
        {subscription.invoices.map(({ id, status, currency, amount }) => (
          <li key={id} className="row">
            <div className="about">
              <p className="name">
                {(amount / 100).toFixed(2)} {currency.toUpperCase()} <Pill>{status}</Pill>
              </p>
            </div>
          </li>
        ))}
      </ul>
      <div>
        <Button
          kind="quiet"
          onPress={() =>
            void attempt(async () => {
              location.assign((await api.billing.portal()).body.url)
            }, 'You are led to the payment provider.')
          }
        >
          Manage payment
        </Button>
      </div>
    </>
  )
}
