// Calls to the server: the contract's client with the token of whoever is signed in. A change of role ends a
// token, but not the sign-in: then a fresh one is fetched, once for all calls that were refused together, and
// the call is made again. Whatever goes wrong becomes a sentence that can be shown.
import { QueryClient, useQuery, useSuspenseQuery } from '@tanstack/react-query'
import { rank, type Role } from '@hawser/contract/access'
import { ApiError, client } from '@hawser/contract/client'
import { failureHeader, failureKindOf } from '@hawser/contract/failures'
import type { UserSession } from '@hawser/contract/users'
import { Told } from './parts/told.ts'
import { session } from './session.ts'

/** For people who are not signed in. */
export const open = client({ url: '' })

export const api = client({ url: '', fetch: withToken })

export const queries = new QueryClient({
  defaultOptions: {
    // A refusal stays one, however often one asks; a lost connection may come back.
    queries: { retry: (times, error) => !(error instanceof ApiError) && times < 2, staleTime: 0 },
    mutations: { retry: false },
  },
})

/** For what the contract's client would take into memory whole. */
export async function withToken(input: string | URL | Request, init: RequestInit = {}): Promise<Response> {
  const used = session.token()
  const answer = await send(input, init, used)
  if (!saysTokenEnded(answer)) return answer
  // Another call may have brought a fresh one meanwhile.
  if (session.token() === used) await renew()
  return session.token() === '' ? answer : send(input, init, session.token())
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
      queries.setQueryData(['me'], me)
      void queries.invalidateQueries({ predicate: ({ queryKey }) => queryKey[0] !== 'me' })
    })
    .finally(() => (renewing = undefined))
  return renewing
}

const ended = 'Your sign-in has ended. Please sign in again.'

/** Who is signed in, with a fresh token. */
async function fetchMe(): Promise<UserSession> {
  try {
    const { body } = await client({ url: '', token: session.token() }).users.refresh()
    if (session.token() !== '') session.keep(body)
    return body
  } catch (error) {
    if (error instanceof ApiError && error.kind === 'unauthenticated') session.end(ended)
    throw error
  }
}

const meOptions = { queryKey: ['me'], queryFn: fetchMe, staleTime: 60_000 } as const
export const useMeLoading = () => useQuery(meOptions)
/** Inside of the shell, which shows itself when it is known. */
export const useMe = (): UserSession => useSuspenseQuery(meOptions).data

/** Whether the person's role in the namespace is at least this one. */
export function useMay(role: Role): boolean {
  const { role: mine } = useMe()
  return mine !== '' && rank(mine as Role) >= rank(role)
}

/** Changes to another namespace: everything that was known belongs to the former one. */
export async function enterNamespace(tenant: string): Promise<void> {
  const { body } = await api.users.namespaceToken({ params: { tenant } })
  session.keep(body)
  queries.setQueryData(['me'], body)
  queries.removeQueries({ queryKey: ['in'], type: 'inactive' })
}

/** How often pages ask again while somebody looks at them. */
export const look_again_ms = 5000

/** What the server said, or what kept it from saying anything, for people. */
export function sentenceOf(error: unknown): string {
  if (error instanceof Told) return error.message
  if (!(error instanceof ApiError))
    return 'The server cannot be reached. Look at your connection and try again.'
  if (error.status >= 500) return 'The server is in trouble. Please try again in a moment.'
  if (error.sentence === undefined && error.fields === undefined)
    return `The server refused this (${error.status}).`
  return error.message
}
