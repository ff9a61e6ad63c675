// The newest sessions on a device, with the way to their recordings.
import { Link } from '@tanstack/react-router'
import { api, useMay } from '../api.ts'
import { useNamespaceQuery } from '../namespace-query.ts'
import { Continues } from './continue-session.tsx'
import { Panel } from './page.tsx'
import { Person } from './person.tsx'
import { accountOf } from './session-actions.tsx'
import { Empty, QueryList } from './query-content.tsx'
import { Lamp, Pill, When } from './status.tsx'
import { rich, t } from '../language/language.ts'

const few = 5

export function DeviceSessions({ uid }: { uid: string }) {
  const may = useMay('administrator')
  const sessions = useNamespaceQuery(['device sessions', uid], () =>
    api.sessions.list({ query: { device_uid: uid, per_page: few } }),
  )
  const total = sessions.data?.total ?? 0
  return (
    <Panel
      title={t('Sessions')}
      acts={
        total > few && (
          <Link to="/sessions" search={{ past: true, device: uid }}>
            {t('All {total}', { total })}
          </Link>
        )
      }
    >
      <QueryList
        query={sessions}
        label={t('Sessions on this device')}
        empty={<Empty title={t('Nobody has connected to it yet.')} />}
        row={(session) => (
          <li className="row" key={session.uid}>
            <Lamp on={session.active} />
            <span className="about">
              <Link
                to="/sessions/$uid"
                params={{ uid: session.uid }}
                aria-label={t('Session of {username} on {name}', {
                  username: accountOf(session),
                  name: session.device.name,
                })}
              >
                <strong>{accountOf(session)}</strong>
              </Link>
              {', '}
              <span className="facts">
                {rich('by {name}', { name: <Person person={session.person} /> })} ·{' '}
                <When at={session.started_at} />
                {session.resumes && (
                  <>
                    {' · '}
                    <Continues session={session} />
                  </>
                )}
              </span>
            </span>
            {session.active && !session.held && <Pill tone="good">{t('live')}</Pill>}
            {session.held && <Pill tone="wait">{t('held')}</Pill>}
            {session.recorded && <Pill>{may ? t('recording') : t('recorded')}</Pill>}
          </li>
        )}
      />
    </Panel>
  )
}
