// The sessions of the namespace, newest first: who was on which device, from where, and what is live now.
import { Link } from '@tanstack/react-router'
import { useState } from 'react'
import type { Session } from '@hawser/contract/sessions'
import { api, useMay } from '../api.ts'
import { settled, useAsk } from '../parts/ask.ts'
import { Button } from '../parts/button.tsx'
import { Ask } from '../parts/dialog.tsx'
import { Page, Panel } from '../parts/page.tsx'
import { Empty, Listing } from '../parts/states.tsx'
import { inFull, Lamp, Pill, When } from '../parts/status.tsx'

const page_size = 20

const kinds: Readonly<Record<string, string>> = { shell: 'a shell', exec: 'a command', subsystem: 'files', none: 'no program' }

export function SessionsPage() {
  const [page, setPage] = useState(1)
  const sessions = useAsk(['sessions', page], () => api.sessions.list({ query: { page, per_page: page_size } }))
  const may = useMay('administrator')
  return (
    <Page title="Sessions" lead="Connections to devices through this server, newest first.">
      <Panel>
        <Listing
          query={sessions}
          label="Sessions"
          empty={<Empty title="Nobody has connected to a device yet." />}
          page={{ number: page, size: page_size, turn: setPage }}
          row={(session) => <SessionRow key={session.uid} session={session} may={may} />}
        />
      </Panel>
    </Page>
  )
}

function lasted({ started_at, last_seen }: Session): string {
  const seconds = Math.max(0, Math.round((Date.parse(last_seen) - Date.parse(started_at)) / 1000))
  if (seconds < 60) return `${seconds} s`
  return seconds < 3600 ? `${Math.floor(seconds / 60)} min` : `${Math.floor(seconds / 3600)} h ${Math.floor((seconds % 3600) / 60)} min`
}

function SessionRow({ session, may }: { session: Session; may: boolean }) {
  const [asking, setAsking] = useState(false)
  const { username, device, active } = session
  const name = `${username} on ${device.name}`
  return (
    <li className="row">
      <Lamp on={active} />
      <div className="about">
        <p className="name">
          <strong>{username}</strong> on{' '}
          <Link to="/devices/$uid" params={{ uid: session.device_uid }}>
            {device.name}
          </Link>{' '}
          {active && <Pill tone="good">live</Pill>} {!session.authenticated && <Pill tone="wait">not let in</Pill>}{' '}
          {session.recorded && <Pill>recorded</Pill>}
        </p>
        <p className="facts">
          <When at={session.started_at} />
          {active ? `, since ${inFull(session.started_at)}` : `, for ${lasted(session)}`} · from {session.ip_address} ·{' '}
          {kinds[session.type] ?? session.type}
        </p>
      </div>
      {may && active && (
        <div className="acts">
          <Button kind="quiet" small aria-label={`Close the session of ${name}`} onPress={() => setAsking(true)}>
            Close
          </Button>
          {asking && (
            <Ask
              close={() => setAsking(false)}
              question={{
                title: 'Close this session?',
                says: `${name} is cut off at once.`,
                yes: 'Close it',
                no: 'Leave it open',
                act: async () => {
                  await api.sessions.close({ params: { uid: session.uid }, body: { device: session.device_uid } })
                  await settled('The session is closed.')
                },
              }}
            />
          )}
        </div>
      )}
    </li>
  )
}
