// The events of a session outside of its terminal: files, commands, forwarded connections and requests to a
// service.
import { useState } from 'react'
import type { SessionEvent } from '@hawser/contract/session-events'
import { api } from '../api.ts'
import { useBodyQuery } from '../namespace-query.ts'
import { SmallButton } from './button.tsx'
import { Panel } from './page.tsx'
import { QueryContent } from './query-content.tsx'
import { Pill, When } from './status.tsx'
import { megabytes } from '../language/format.ts'
import { isolated, msg, rich, t } from '../language/language.ts'

const few = 10
const all = 500

const words: Readonly<Record<SessionEvent['kind'], string>> = {
  exec: msg('ran {subject}'),
  subsystem: msg('started the subsystem {subject}'),
  upload: msg('wrote {subject}'),
  download: msg('read {subject}'),
  remove: msg('removed {subject}'),
  'make-folder': msg('created the folder {subject}'),
  'remove-folder': msg('removed the folder {subject}'),
  rename: msg('renamed {subject}'),
  link: msg('linked {subject}'),
  change: msg('changed {subject}'),
  copy: msg('copied {subject}'),
  request: msg('requested {subject}'),
  forward: msg('connected to {subject}'),
  listen: msg('let the device listen on {subject}'),
  'remote-forward': msg('received a connection from {subject}'),
  web: msg('requested {subject}'),
  unread: msg('could no longer be tracked: {subject}'),
  more: msg('and more: {subject}'),
}

const sizeText = (bytes: number): string =>
  bytes < 1_000_000 ? t('{count} bytes', { count: bytes }) : megabytes(bytes)

export function SessionEvents({ uid, title }: { uid: string; title: string }) {
  const [limit, setLimit] = useState(few)
  const found = useBodyQuery(['session events', uid, limit], () =>
    api.sessions.events({ params: { uid }, query: { limit } }),
  )
  return (
    <QueryContent query={found}>
      {({ events, next }) =>
        events.length === 0 ? null : (
          <Panel title={title}>
            <ul className={limit === few ? 'rows' : 'rows scrolled'} aria-label={t('Events')}>
              {events.map((event) => (
                <EventRow key={event.seq} event={event} />
              ))}
            </ul>
            {next !== null && limit === few && (
              <SmallButton onPress={() => setLimit(all)}>{t('Show all')}</SmallButton>
            )}
            {next !== null && limit === all && (
              <p className="soft">
                {t('The first {count} are shown; run hawser sessions events for all of them.', {
                  count: all,
                })}
              </p>
            )}
          </Panel>
        )
      }
    </QueryContent>
  )
}

function EventRow({ event }: { event: SessionEvent }) {
  const { kind, subject, target, outcome, received, sent, sha256, why, at } = event
  return (
    <li className="row">
      <span className="about">
        {rich(words[kind], { subject: <code>{isolated(subject)}</code> })}
        {target !== undefined && (
          <>
            {' → '}
            <code>{isolated(target)}</code>
          </>
        )}{' '}
        {outcome !== 'done' && <Pill tone="wait">{t(outcome)}</Pill>}{' '}
        <span className="soft">
          {received + sent > 0 && sizeText(received + sent)}{' '}
          {sha256 !== undefined && <code title={`SHA-256 ${sha256}`}>{sha256.slice(0, 12)}…</code>}{' '}
          {isolated(why ?? '')}
        </span>
      </span>
      <span className="soft">
        <When at={at} />
      </span>
    </li>
  )
}
