// "Continue here": brings a terminal session of the person who looks at it into this browser, whether it is
// held or open elsewhere. The server judges again whose it is.
import { Link } from '@tanstack/react-router'
import type { Session } from '@hawser/contract/sessions'
import { api, useMe } from '../api.ts'
import { rich, t } from '../language/language.ts'
import { useNamespace, useNamespaceQuery } from '../namespace-query.ts'
import { LinkButton } from './button.tsx'
import { Panel } from './page.tsx'
import { Row } from './row.tsx'
import { inFull, Lamp, Pill } from './status.tsx'

const most = 10

/** Whether a session has a terminal that its person can continue; `holds`: the namespace holds sessions. */
const isContinuable = (session: Session, holds: boolean): boolean =>
  session.active &&
  session.type !== 'none' &&
  session.web === undefined &&
  session.term !== 'none' &&
  session.resumes === undefined &&
  (session.held || holds)

const useHolds = (): boolean => (useNamespace(false).data?.settings.hold_sessions ?? 0) > 0

function ContinueLink({ session, small = false }: { session: Session; small?: boolean }) {
  return (
    <LinkButton
      to="/devices/$uid/terminal"
      params={{ uid: session.device_uid }}
      search={{ continue: session.uid }}
      small={small}
    >
      {t('Continue here')}
    </LinkButton>
  )
}

/** Empty for other people's sessions, and for those that cannot be continued. */
export function ContinueHere({ session }: { session: Session }) {
  const me = useMe()
  const holds = useHolds()
  const isMine = session.person.kind === 'user' && session.person.id === me.id
  return isMine && isContinuable(session, holds) ? <ContinueLink session={session} /> : null
}

/** The viewer's own sessions on the device that can be continued. */
export function OwnSessions({ device }: { device: string }) {
  const { id } = useMe()
  const holds = useHolds()
  const sessions = useNamespaceQuery(['own-sessions', device], () =>
    api.sessions.list({ query: { device_uid: device, active: true, person: id, per_page: most } }),
  )
  const mine = (sessions.data?.body ?? []).filter((session) => isContinuable(session, holds))
  if (mine.length === 0) return null
  return (
    <Panel title={t('Your sessions here')}>
      <ul className="rows" aria-label={t('Your sessions here')}>
        {mine.map((session) => (
          <Row
            key={session.uid}
            sign={<Lamp on={!session.held} />}
            name={
              <>
                <Link to="/sessions/$uid" params={{ uid: session.uid }}>
                  <strong>{session.username}</strong>
                </Link>{' '}
                {session.held && <Pill tone="wait">{t('held')}</Pill>}
              </>
            }
            facts={
              session.held_until === undefined
                ? t('open since {moment}, from {address}', {
                    moment: inFull(session.started_at),
                    address: session.ip_address,
                  })
                : t('held for you until {moment}', { moment: inFull(session.held_until) })
            }
            acts={<ContinueLink session={session} small />}
          />
        ))}
      </ul>
    </Panel>
  )
}

/** For a session that only continues another; undefined: it runs a program of its own. */
export function Continues({ session: { resumes } }: { session: Session }) {
  if (resumes === undefined) return null
  return rich('continues <session>another session</session>', {
    session: (words) => (
      <Link to="/sessions/$uid" params={{ uid: resumes }}>
        {words}
      </Link>
    ),
  })
}
