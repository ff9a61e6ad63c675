// The states of a query: loading, error, empty, content. Every list of the console uses `QueryList`, so that
// no list can forget one of them.
import type { UseQueryResult } from '@tanstack/react-query'
import type { ReactNode } from 'react'
import { errorText } from '../error-text.ts'
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

export function ErrorNotice({ error, again }: { error: unknown; again?: () => void }) {
  return (
    <div className="says" role="alert">
      <p>{errorText(error)}</p>
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

/** The content of a query, or its loading or error state. Old content stays while new content is fetched. */
export function QueryContent<T>({
  query,
  children,
}: {
  query: UseQueryResult<T>
  children: (data: T) => ReactNode
}) {
  if (query.data !== undefined) {
    return (
      <>
        {query.isRefetchError && <ErrorNotice error={query.error} />}
        {children(query.data)}
      </>
    )
  }
  return query.isError ? <ErrorNotice error={query.error} again={() => void query.refetch()} /> : <Loading />
}

interface QueryListProps<T> {
  query: UseQueryResult<{ body: T[]; total: number }>
  label: string
  empty: ReactNode
  row: (item: T) => ReactNode
  page?: { number: number; size: number; turn: (to: number) => void }
}

export function QueryList<T>({ query, label, empty, row, page }: QueryListProps<T>) {
  return (
    <QueryContent query={query}>
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
    </QueryContent>
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
