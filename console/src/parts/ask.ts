// How pages ask the server and act on it: what is asked belongs to the namespace one is in, is asked again
// while somebody looks, and once more after every change; a refused change is told in words.
import { keepPreviousData, useQuery, type UseQueryResult } from '@tanstack/react-query'
import { look_again_ms, queries, sentenceOf, useMe } from '../api.ts'
import { tell } from './toast.tsx'

/** `again`: whether to keep asking; what seldom changes need not be. */
export function useAsk<T>(key: readonly unknown[], ask: () => Promise<T>, again = true): UseQueryResult<T> {
  const { tenant } = useMe()
  return useQuery({
    queryKey: ['in', tenant, ...key],
    queryFn: ask,
    refetchInterval: again ? look_again_ms : false,
    // The former page stays until the next one is there, within one list.
    placeholderData: (before, query) =>
      query?.queryKey[2] === key[0] && query?.queryKey[1] === tenant ? keepPreviousData(before) : undefined,
  })
}

/** After a change: says so, and everything on the page is asked for anew. */
export async function settled(sentence: string): Promise<void> {
  tell(sentence)
  await queries.invalidateQueries({ queryKey: ['in'] })
}

/** For a button: does it and says so, or says why not. */
export async function attempt(act: () => Promise<unknown>, sentence: string): Promise<void> {
  try {
    await act()
  } catch (error) {
    tell(sentenceOf(error))
    return
  }
  await settled(sentence)
}
