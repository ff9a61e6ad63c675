// The sessions of the namespace, newest first, live and ended ones in separate tabs: who was on which device,
// from where, and whether it can be watched or played.
import { Link, useSearch } from '@tanstack/react-router'
import { useState } from 'react'
import type { Session } from '@hawser/contract/sessions'
import { api, useMay } from '../api.ts'
import { useNamespaceQuery } from '../namespace-query.ts'
import { Button, LinkButton } from '../components/button.tsx'
import { Page, Panel } from '../components/page.tsx'
import { useSessionActions, whose } from '../components/session-actions.tsx'
import { Empty, QueryList } from '../components/query-content.tsx'
import { inFull, Lamp, Pill, When } from '../components/status.tsx'

const page_size = 20

export const kinds: Readonly<Record<string, string>> = {
  shell: 'a shell',
  exec: 'a command',
  subsystem: 'files',
  none: 'no program',
}

/** Reads the search parameters of the URL. */
const exactly = { exact: true, includeSearch: true }

export interface SessionsSearch {
  past?: true
}

export const readSessionsSearch = (given: Record<string, unknown>): SessionsSearch =>
  given['past'] === true ? { past: true } : {}

export function SessionsPage() {
  const { past = false } = useSearch({ from: '/shell/sessions' })
  return (
    <Page title="Sessions" lead="Connections to devices through this server, newest first.">
      <nav className="tabs" aria-label="Which sessions">
        <Link to="/sessions" search={{}} activeOptions={exactly}>
          Live
        </Link>
        <Link to="/sessions" search={{ past: true }} activeOptions={exactly}>
          Past
        </Link>
      </nav>
      <Some key={String(past)} past={past} />
    </Page>
  )
}

function Some({ past }: { past: boolean }) {
  const [page, setPage] = useState(1)
  const query = { page, per_page: page_size, active: !past }
  const sessions = useNamespaceQuery([past ? 'past sessions' : 'live sessions', page], () =>
    api.sessions.list({ query }),
  )
  const may = useMay('administrator')
  return (
    <Panel>
      <QueryList
        query={sessions}
        label={past ? 'Past sessions' : 'Live sessions'}
        empty={<Empty title={past ? 'No session is over yet.' : 'Nobody is connected to a device now.'} />}
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
    ? `${Math.floor(seconds / 60)} min`
    : `${Math.floor(seconds / 3600)} h ${Math.floor((seconds % 3600) / 60)} min`
}

export function SessionPills({ session }: { session: Session }) {
  return (
    <>
      {session.active && <Pill tone="good">live</Pill>}{' '}
      {!session.authenticated && <Pill tone="wait">not let in</Pill>}{' '}
      {session.recorded && <Pill>recorded</Pill>}{' '}
      {session.unrecorded && <Pill tone="bad">went on unrecorded</Pill>}
    </>
  )
}

function SessionRow({ session, may }: { session: Session; may: boolean }) {
  const acts = useSessionActions(session)
  const { username, device, active, recorded, uid } = session
  const name = whose(session)
  return (
    <li className="row">
      <Lamp on={active} />
      <div className="about">
        <p className="name">
          <Link to="/sessions/$uid" params={{ uid }} aria-label={`Session of ${name}`}>
            <strong>{username}</strong>
          </Link>{' '}
          on{' '}
          <Link to="/devices/$uid" params={{ uid: session.device_uid }}>
            {device.name}
          </Link>{' '}
          <SessionPills session={session} />
        </p>
        <p className="facts">
          <When at={session.started_at} />
          {active ? `, since ${inFull(session.started_at)}` : `, for ${lasted(session)}`} · from{' '}
          {session.ip_address} · {kinds[session.type] ?? session.type}
        </p>
      </div>
      {may && (active || recorded) && (
        <div className="acts">
          {recorded && (
            <LinkButton
              kind="quiet"
              small
              to="/sessions/$uid"
              params={{ uid }}
              aria-label={`${active ? 'Watch' : 'Replay'} the session of ${name}`}
            >
              {active ? 'Watch' : 'Replay'}
            </LinkButton>
          )}
          {active && (
            <Button kind="quiet" small aria-label={`Close the session of ${name}`} onPress={acts.close}>
              Close
            </Button>
          )}
          {acts.dialogs}
        </div>
      )}
    </li>
  )
}
