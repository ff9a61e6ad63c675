// Queries and mutations of pages. A query belongs to the current namespace, is refetched while its page is
// visible, and again after every mutation. Results of mutations are shown as toasts.
import { keepPreviousData, useQuery, type UseQueryResult } from '@tanstack/react-query'
import type { Namespace } from '@hawser/contract/namespaces'
import type { UserSession } from '@hawser/contract/users'
import { api, refetch_ms, queryClient, useMe } from './api.ts'
import { errorText } from './error-text.ts'
import { showToast } from './components/toast.tsx'

/** `again`: refetch at intervals. */
export function useNamespaceQuery<T>(
  key: readonly unknown[],
  ask: () => Promise<T>,
  again = true,
): UseQueryResult<T> {
  const { tenant } = useMe()
  return useQuery({
    queryKey: ['in', tenant, ...key],
    queryFn: ask,
    refetchInterval: again ? refetch_ms : false,
    // While a page of a list loads, show the previous page of the same list.
    placeholderData: (before, query) =>
      query?.queryKey[2] === key[0] && query?.queryKey[1] === tenant ? keepPreviousData(before) : undefined,
  })
}

/** The body of one answer, as a query in the current namespace. */
export const useBodyQuery = <T>(
  key: readonly unknown[],
  ask: () => Promise<{ body: T }>,
  again = true,
): UseQueryResult<T> => useNamespaceQuery(key, async () => (await ask()).body, again)

export function useNamespace(again = true): UseQueryResult<Namespace> {
  const { tenant } = useMe()
  return useBodyQuery(['namespace'], () => api.namespaces.get({ params: { tenant } }), again)
}

/** After a mutation: shows a toast and refetches everything on the page. */
export async function showSaved(sentence: string): Promise<void> {
  showToast(sentence)
  // Not queries of the previous namespace, which might be refused in this one.
  const { tenant } = queryClient.getQueryData<UserSession>(['me']) ?? {}
  await queryClient.invalidateQueries({ queryKey: ['in', tenant] })
}

/** Acts; shows a toast with the error, or after a mutation with the sentence. */
export async function attempt(act: () => Promise<unknown>, sentence?: string): Promise<void> {
  try {
    await act()
  } catch (error) {
    showToast(errorText(error))
    return
  }
  if (sentence !== undefined) await showSaved(sentence)
}
