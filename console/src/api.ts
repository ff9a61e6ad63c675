// Calls to the server: the contract's client with the token of the signed-in user. A change of role ends a
// token but not the sign-in. This file then fetches a new token, once for all calls that were refused
// together, and repeats the calls.
import { QueryClient, useQuery, useSuspenseQuery } from '@tanstack/react-query'
import { rank, type Role } from '@hawser/contract/access'
import { ApiError, client } from '@hawser/contract/client'
import { failureHeader, failureKindOf } from '@hawser/contract/failures'
import type { UserSession } from '@hawser/contract/users'
import { auth, claimsOf } from './auth.ts'
import { showToast } from './components/toast.tsx'
import { fetchWho } from './early.ts'
import { t } from './language/language.ts'

export { publicApi } from './public-api.ts'

export const api = client({ url: '', fetch: fetchWithToken })

/** Data fetched this recently, by a link under the pointer, is not fetched again when its page opens. */
const fresh_ms = 1000

export const queryClient = new QueryClient({
  defaultOptions: {
    queries: {
      // Retry lost connections, not refusals.
      retry: (times, error) => !(error instanceof ApiError) && times < 2,
      staleTime: fresh_ms,
      refetchOnWindowFocus: 'always',
    },
    mutations: { retry: false },
  },
})

/** For responses that the contract's client would read into memory whole. */
export async function fetchWithToken(
  input: string | URL | Request,
  init: RequestInit = {},
): Promise<Response> {
  const used = auth.token()
  const answer = await send(input, init, used)
  if (!saysTokenEnded(answer)) return answer
  // Another call may have renewed it.
  if (auth.token() === used) await renew()
  // A call for one namespace must not run in another.
  const now = auth.token()
  return claimsOf(now).tenant === claimsOf(used).tenant ? send(input, init, now) : answer
}

async function send(input: string | URL | Request, init: RequestInit, token: string): Promise<Response> {
  const headers = new Headers(init.headers)
  headers.set('authorization', `Bearer ${token}`)
  return fetch(input, { ...init, headers })
}

/** A wrong code of the second factor is a 401 as well, which a fresh token would not help. */
function saysTokenEnded({ ok, status, headers }: Response): boolean {
  return !ok && failureKindOf(status, headers.get(failureHeader)) === 'unauthenticated'
}

let renewing: Promise<void> | undefined

async function renew(): Promise<void> {
  renewing ??= fetchMe()
    .then((me) => {
      queryClient.setQueryData(['me'], me)
      void queryClient.invalidateQueries({ predicate: ({ queryKey }) => queryKey[0] !== 'me' })
    })
    .finally(() => (renewing = undefined))
  return renewing
}

/** With a fresh token, which it saves. */
async function fetchMe(): Promise<UserSession> {
  const used = auth.token()
  try {
    const { body } = await client({ url: '', token: used, fetch: fetchWho }).users.refresh({
      query: { keep_namespace: true },
    })
    // The person may have switched to another namespace.
    if (auth.token() !== used && auth.token() !== '') return await fetchMe()
    if (auth.token() !== '') auth.save(body)
    return body
  } catch (error) {
    // A sign-out has been reported already.
    if (!(error instanceof ApiError) || error.kind !== 'unauthenticated' || auth.token() === '') throw error
    // Another call may have replaced it.
    if (auth.token() !== used) return fetchMe()
    if (auth.takeNewest()) {
      if (claimsOf(auth.token()).tenant !== claimsOf(used).tenant)
        showToast(
          t(
            'This window switched to the namespace of your other window, because you are no longer signed in to its own.',
          ),
        )
      return fetchMe()
    }
    auth.signOut(t('Your sign-in has expired. Sign in again.'), 'ended')
    throw error
  }
}

const meOptions = { queryKey: ['me'], queryFn: fetchMe, staleTime: 60_000 } as const
export const useMeLoading = () => useQuery(meOptions)
/** For components inside of the shell, which renders them once it is loaded. */
export const useMe = (): UserSession => useSuspenseQuery(meOptions).data

export function useMay(role: Role): boolean {
  const { role: mine } = useMe()
  return mine !== '' && rank(mine as Role) >= rank(role)
}

/** Drops the cached data of the former namespace. */
export async function switchNamespace(tenant: string): Promise<void> {
  enterNamespace((await api.users.namespaceToken({ params: { tenant } })).body)
}

export function enterNamespace(session: UserSession): void {
  auth.save(session)
  queryClient.setQueryData(['me'], session)
  queryClient.removeQueries({ queryKey: ['in'], type: 'inactive' })
}

export const refetch_ms = 5000

/** Fetches the data of a page early, as `useNamespaceQuery` will. Failures are left to the page. */
export function prefetch(key: readonly unknown[], ask: () => Promise<unknown>): void {
  const { tenant = '' } = claimsOf(auth.token())
  if (tenant !== '') void queryClient.prefetchQuery({ queryKey: ['in', tenant, ...key], queryFn: ask })
}
