// Creates something at the payment provider once, however many calls and nodes want it: a row of the
// namespace has an idempotency key that all share for a day.
import { Failure } from '@hawser/contract/failures'
import type { Provider } from '../../billing/provider.ts'
import { day_ms, iso } from '../../kit/clock.ts'
import { newUuid } from '../../kit/ids.ts'
import type { With } from '../audit/parts.ts'

const most_turns = 3

const underWay = () =>
  new Failure('providerFailed', {
    message: 'Another request is in progress; try again in a moment.',
    code: 'provider_busy',
  })

export function creatingOnce({
  stores,
  clock,
  provider,
}: With<'stores' | 'clock'> & { provider: Pick<Provider, 'isPassing'> }) {
  /**
   * Takes the key that all calls of a namespace share, on all nodes, for a day: the provider creates nothing
   * more for a known key. Callers then look what exists, so what others created is either in that answer or
   * has the same key.
   */
  async function takeKey(
    tenant_id: string,
    what: string,
    isSpent: (key: string) => Promise<boolean>,
  ): Promise<string> {
    for (let turn = 0; turn < most_turns; turn++) {
      const { key, began_at } = await stores.billing.attempt(tenant_id, what, newUuid())
      const isOld = began_at !== '' && began_at < iso(clock.now() - day_ms)
      if (!(await isSpent(key)) && !isOld) return key
      await stores.billing.endAttempt(tenant_id, what, key)
    }
    throw underWay()
  }

  /**
   * A retry sends the parameters of the first call, since the provider refuses others. A refusal frees the
   * key; a lost answer does not.
   */
  async function create<P, T>(
    { tenant_id, what, key }: { tenant_id: string; what: string; key: string },
    params: P,
    make: (params: P) => Promise<T>,
  ): Promise<T> {
    const first = await stores.billing.beginAttempt(tenant_id, what, {
      key,
      params: JSON.stringify(params),
      began_at: iso(clock.now()),
    })
    if (first === undefined) throw underWay()
    try {
      return await make(JSON.parse(first) as P)
    } catch (error) {
      if (error instanceof Failure && !provider.isPassing(error))
        await stores.billing.endAttempt(tenant_id, what, key)
      throw error
    }
  }

  return { takeKey, create }
}
