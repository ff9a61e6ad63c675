// The sessions of the namespace, live ones first, then held ones, then those that are over: who was on which
// device, from where, and whether it can be watched or played; and the logins that were refused.
import { Link, useSearch } from '@tanstack/react-router'
import { lazy, Suspense, useState, type ReactNode } from 'react'
import type { Session } from '@hawser/contract/sessions'
import { api, useMay } from '../api.ts'
import { useBodyQuery, useNamespaceQuery } from '../namespace-query.ts'
import { Button, LinkButton } from '../components/button.tsx'
import { Continues } from '../components/continue-session.tsx'
import { Page, Panel } from '../components/page.tsx'
import { Icon } from '../components/icon.tsx'
import { Person } from '../components/person.tsx'
import { accountOf, useSessionActions, whose } from '../components/session-actions.tsx'
import { Empty, QueryList } from '../components/query-content.tsx'
import { RefusedLogins } from '../components/refused-logins.tsx'
import { SessionFilters } from '../components/session-filters.tsx'
import { msg, rich, t } from '../language/language.ts'
import { spanOf } from '../search-params.ts'
import { readSessionsSearch, type SessionsSearch } from '../session-search.ts'
import { inFull, Lamp, Pill, When } from '../components/status.tsx'
import { TimeLeft } from '../components/time-left.tsx'
import { WebSummary } from '../components/web-traffic.tsx'

const page_size = 20

/** Lazy because it brings a terminal with it. */
const FilmstripLinks = lazy(() => import('../player/filmstrip.tsx'))

export const kinds: Readonly<Record<string, string>> = {
  shell: msg('a shell'),
  exec: msg('a command'),
  subsystem: msg('files'),
  web: msg('a service'),
  none: msg('no program'),
}

const exactly = { exact: true, includeSearch: true }

export function SessionsPage() {
  // The router keeps parameters that were dropped.
  const search = readSessionsSearch({ ...useSearch({ from: '/shell/sessions' }) })
  const { live: _live, past: _past, refused: _refused, ...filter } = search
  const administers = useMay('administrator')
  const stats = useBodyQuery(['stats'], () => api.system.stats()).data
  const tab = (which: SessionsSearch, text: ReactNode) => (
    <Link to="/sessions" search={{ ...which, ...filter }} activeOptions={exactly}>
      {text}
    </Link>
  )
  return (
    <Page
      title={t('Sessions')}
      lead={t('Connections to devices through this server, live ones first.')}
      hides={{ from: 'administrator', what: t('watch, replay and close sessions') }}
    >
      <nav className="tabs" aria-label={t('Which sessions')}>
        {tab({}, t('All'))}
        {tab(
          { live: true },
          <>
            {t('Live')}
            {stats && (
              <span className="count" aria-hidden="true">
                {stats.active_sessions}
              </span>
            )}
          </>,
        )}
        {tab({ past: true }, t('Past'))}
        {administers && tab({ refused: true }, t('Refused'))}
        <Link to="/search">{t('Search')}</Link>
      </nav>
      <SessionFilters search={search} />
      {search.refused ? (
        <RefusedLogins key={JSON.stringify(search)} search={search} />
      ) : (
        <Some key={JSON.stringify(search)} search={search} />
      )}
    </Page>
  )
}

function nothing({ live, past, ...filter }: SessionsSearch): string {
  if (live) return t('No live sessions.')
  if (past) return t('No past sessions yet.')
  return Object.keys(filter).length > 0 ? t('No sessions match these filters.') : t('No sessions yet.')
}

function Some({ search }: { search: SessionsSearch }) {
  const { live, past, person, device, method, recorded, since, from, until } = search
  const [page, setPage] = useState(1)
  const query = {
    page,
    per_page: page_size,
    active: live ? true : past ? false : undefined,
    live_first: true,
    person,
    device_uid: device,
    method,
    recorded,
  }
  const key = live ? 'live-sessions' : past ? 'past-sessions' : 'sessions'
  const sessions = useNamespaceQuery([key, query, since, from, until], () =>
    api.sessions.list({ query: { ...query, ...spanOf(search) } }),
  )
  const may = useMay('administrator')
  return (
    <Panel>
      <QueryList
        query={sessions}
        label={live ? t('Live sessions') : past ? t('Past sessions') : t('Sessions')}
        empty={<Empty title={nothing(search)} />}
        page={{ number: page, size: page_size, turn: setPage }}
        row={(session) => <SessionRow key={session.uid} session={session} may={may} />}
      />
    </Panel>
  )
}

export function lasted({ started_at, last_seen }: Session): string {
  const seconds = Math.max(0, Math.round((Date.parse(last_seen) - Date.parse(started_at)) / 1000))
  if (seconds < 60) return `${seconds} s`
  return seconds < 3600
    ? t('{count} min', { count: Math.floor(seconds / 60) })
    : t('{hours} h {minutes} min', {
        hours: Math.floor(seconds / 3600),
        minutes: Math.floor((seconds % 3600) / 60),
      })
}

export function SessionPills({ session }: { session: Session }) {
  return (
    <>
      {session.active && !session.held && <Pill tone="good">{t('live')}</Pill>}{' '}
      {session.held && <Pill tone="wait">{t('held')}</Pill>}{' '}
      {session.held_until !== undefined && <TimeLeft until={session.held_until} />}{' '}
      {!session.authenticated && <Pill tone="wait">{t('login refused')}</Pill>}{' '}
      {session.recorded && <Pill>{t('recorded')}</Pill>}{' '}
      {session.unrecorded && <Pill tone="bad">{t('continued unrecorded')}</Pill>}
    </>
  )
}

function SessionRow({ session, may }: { session: Session; may: boolean }) {
  const acts = useSessionActions(session)
  const [isOpen, setOpen] = useState(false)
  const { device, active, recorded, uid, web } = session
  const name = whose(session)
  return (
    <li className="row">
      <Lamp on={active} />
      <div className="about">
        <p className="name">
          {rich('{user} on {device}', {
            user: (
              <Link to="/sessions/$uid" params={{ uid }} aria-label={t('Session of {name}', { name })}>
                <strong>{accountOf(session)}</strong>
              </Link>
            ),
            device: (
              <Link to="/devices/$uid" params={{ uid: session.device_uid }}>
                {device.name}
              </Link>
            ),
          })}{' '}
          <SessionPills session={session} />
        </p>
        <p className="facts">
          <Person person={session.person} /> · <When at={session.started_at} />
          {', '}
          {active
            ? t('since {moment}', { moment: inFull(session.started_at) })
            : t('lasted {time}', { time: lasted(session) })}
          {' · '}
          {t('from {address}', { address: session.ip_address })}
          {' · '}
          {web ? (
            <WebSummary web={web} />
          ) : session.resumes ? (
            <Continues session={session} />
          ) : (
            t(kinds[session.type] ?? session.type)
          )}
        </p>
        {isOpen && (
          <Suspense fallback={<p className="soft">{t('Loading …')}</p>}>
            <FilmstripLinks uid={uid} name={name} />
          </Suspense>
        )}
      </div>
      {may && (active || recorded) && (
        <div className="acts">
          {recorded && (
            <LinkButton
              kind="bare"
              small
              to="/sessions/$uid"
              params={{ uid }}
              aria-label={t(active ? 'Watch the session of {name}' : 'Replay the session of {name}', {
                name,
              })}
            >
              <Icon name="play" /> {active ? t('Watch') : t('Replay')}
            </LinkButton>
          )}
          {recorded && !active && (
            <Button
              kind="bare"
              small
              aria-expanded={isOpen}
              aria-label={t('Preview of the session of {name}', { name })}
              onPress={() => setOpen(!isOpen)}
            >
              {t('Preview')}
            </Button>
          )}
          {active && (
            <Button
              kind="bare"
              small
              aria-label={t('Close the session of {name}', { name })}
              onPress={acts.close}
            >
              {t('Close')}
            </Button>
          )}
          {acts.dialogs}
        </div>
      )}
    </li>
  )
}
