// The states of a query: loading, error, empty, content. Every list of the console uses `QueryList`, so that
// no list can forget one of them.
import type { UseQueryResult } from '@tanstack/react-query'
import type { ReactNode } from 'react'
import { errorText } from '../error-text.ts'
import { Button, QuietButton, SmallButton } from './button.tsx'
import type { Act } from './one-at-a-time.ts'
import { t } from '../language/language.ts'

export function Loading() {
  return (
    <p className="loading" role="status">
      <span className="unseen">{t('Loading …')}</span>
      <span className="bar" />
      <span className="bar" />
      <span className="bar" />
    </p>
  )
}

export function ErrorNotice({ error, again }: { error: unknown; again?: Act }) {
  return (
    <div className="says" role="alert">
      <p>{errorText(error)}</p>
      {again && <SmallButton onPress={again}>{t('Try again')}</SmallButton>}
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
  return query.isError ? <ErrorNotice error={query.error} again={() => query.refetch()} /> : <Loading />
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
          {body.length === 0 && page && page.number > 1 ? (
            <Empty title={t('Page {number} does not exist.', { number: page.number })}>
              <QuietButton onPress={() => page.turn(1)}>{t('To the first page')}</QuietButton>
            </Empty>
          ) : body.length === 0 ? (
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
    <nav className="pages" aria-label={t('Pages')}>
      <Button kind="quiet" small isDisabled={number === 1} onPress={() => turn(number - 1)}>
        {t('Previous')}
      </Button>
      <span>
        {shown === 0
          ? t('none of {total}', { total })
          : t('{first} to {last} of {total}', { first: before + 1, last: before + shown, total })}
      </span>
      <Button kind="quiet" small isDisabled={before + shown >= total} onPress={() => turn(number + 1)}>
        {t('Next')}
      </Button>
    </nav>
  )
}
