// What stands in the place of something that is not there: while it loads, when it could not be had, and when
// there is none. Every list of the console goes through `Listing`, so none can forget one of them.
import type { UseQueryResult } from '@tanstack/react-query'
import type { ReactNode } from 'react'
import { sentenceOf } from '../api.ts'
import { Button } from './button.tsx'

export function Loading() {
  return (
    <p className="loading" role="status">
      <span className="unseen">Loading …</span>
      <span className="bar" />
      <span className="bar" />
      <span className="bar" />
    </p>
  )
}

export function Trouble({ error, again }: { error: unknown; again?: () => void }) {
  return (
    <div className="says" role="alert">
      <p>{sentenceOf(error)}</p>
      {again && (
        <Button kind="quiet" small onPress={again}>
          Try again
        </Button>
      )}
    </div>
  )
}

export function Empty({ title, children }: { title: string; children?: ReactNode }) {
  return (
    <div className="empty">
      <p className="empty-title">{title}</p>
      {children}
    </div>
  )
}

/** The answer of a query, or what stands in its place. Older content stays while newer is fetched. */
export function Answer<T>({
  query,
  children,
}: {
  query: UseQueryResult<T>
  children: (data: T) => ReactNode
}) {
  if (query.data !== undefined) {
    return (
      <>
        {query.isRefetchError && <Trouble error={query.error} />}
        {children(query.data)}
      </>
    )
  }
  return query.isError ? <Trouble error={query.error} again={() => void query.refetch()} /> : <Loading />
}

interface ListingProps<T> {
  query: UseQueryResult<{ body: T[]; total: number }>
  label: string
  empty: ReactNode
  row: (item: T) => ReactNode
  page?: { number: number; size: number; turn: (to: number) => void }
}

export function Listing<T>({ query, label, empty, row, page }: ListingProps<T>) {
  return (
    <Answer query={query}>
      {({ body, total }) => (
        <>
          {body.length === 0 ? (
            empty
          ) : (
            <ul className="rows" aria-label={label}>
              {body.map(row)}
            </ul>
          )}
          {page && (total > page.size || page.number > 1) && (
            <Pages {...page} shown={body.length} total={total} />
          )}
        </>
      )}
    </Answer>
  )
}

interface PagesProps {
  number: number
  size: number
  shown: number
  total: number
  turn: (to: number) => void
}

function Pages({ number, size, shown, total, turn }: PagesProps) {
  const before = (number - 1) * size
  return (
    <nav className="pages" aria-label="Pages">
      <Button kind="quiet" small isDisabled={number === 1} onPress={() => turn(number - 1)}>
        Previous
      </Button>
      <span>{shown === 0 ? `none of ${total}` : `${before + 1} to ${before + shown} of ${total}`}</span>
      <Button kind="quiet" small isDisabled={before + shown >= total} onPress={() => turn(number + 1)}>
        Next
      </Button>
    </nav>
  )
}
