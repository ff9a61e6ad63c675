// One session: who, where, when. A live one can be watched; afterwards its recording can be played,
// downloaded and deleted. The player and the watcher are loaded when they are needed.
import { Link, useParams, useSearch } from '@tanstack/react-router'
import { lazy, Suspense, useState } from 'react'
import { ApiError, readResult } from '@hawser/contract/client'
import type { RecordedTerminal } from '@hawser/contract/recordings'
import type { Session } from '@hawser/contract/sessions'
import { api, useMay, useMe, fetchWithToken } from '../api.ts'
import { attempt, useBodyQuery } from '../namespace-query.ts'
import { Button, SmallButton } from '../components/button.tsx'
import { ContinueHere, Continues } from '../components/continue-session.tsx'
import { Page, Panel } from '../components/page.tsx'
import { Fact } from '../components/row.tsx'
import { methods, Person, ways } from '../components/person.tsx'
import { saveFile } from '../components/save-file.ts'
import { SessionEvents } from '../components/session-events.tsx'
import { InviteButton } from '../components/session-invitations.tsx'
import { useSessionActions, whose } from '../components/session-actions.tsx'
import { QueryContent, Empty, Loading } from '../components/query-content.tsx'
import { inFull, Lamp, Pill } from '../components/status.tsx'
import { WebFacts } from '../components/web-traffic.tsx'
import { momentOf_ms, readSessionSearch } from '../session-search.ts'
import { kinds, lasted, SessionPills } from './sessions.tsx'
import { megabytes } from '../language/format.ts'
import { msg, t } from '../language/language.ts'

const Player = lazy(() => import('../player/player.tsx'))
const Watcher = lazy(() => import('../player/watcher.tsx'))

export function SessionPage() {
  const { uid } = useParams({ from: '/shell/sessions/$uid' })
  const session = useBodyQuery(['session', uid], () => api.sessions.get({ params: { uid } }))
  if (session.data) return <Shown session={session.data} />
  return (
    <Page title={t('Session')}>
      <QueryContent query={session}>{() => null}</QueryContent>
      <p>
        <Link to="/sessions">{t('All sessions')}</Link>
      </p>
    </Page>
  )
}

function Shown({ session }: { session: Session }) {
  const may = useMay('administrator')
  const acts = useSessionActions(session)
  const me = useMe()
  const { active, recorded, unrecorded, person, web } = session
  const isOwn = person.kind === 'user' && person.id === me.id
  return (
    <Page
      title={whose(session)}
      lead={
        <span className="signs">
          <Lamp on={active} />{' '}
          {!active ? t('ended, lasted {time}', { time: lasted(session) }) : !session.held && t('connected')}{' '}
          <SessionPills session={session} />
        </span>
      }
      acts={
        active && (
          <>
            <ContinueHere session={session} />
            {(may || isOwn) && !web && <InviteButton uid={session.uid} />}
            {may && (
              <Button kind="danger" onPress={acts.close}>
                {t('Close the session')}
              </Button>
            )}
          </>
        )
      }
    >
      {acts.dialogs}
      {may && recorded && active && (
        <Panel title={t('Live')}>
          <Suspense fallback={<Loading />}>
            <Watcher uid={session.uid} held={session.held} />
          </Suspense>
        </Panel>
      )}
      {may && recorded && !active && <Recording uid={session.uid} remove={acts.removeRecording} />}
      {!web && (!recorded || unrecorded || !may) && (
        <Panel title={active ? t('Live') : t('Recording')}>
          <p className="soft">{wordsFor(session, may)}</p>
          {!may && recorded && active && <Joining uid={session.uid} />}
        </Panel>
      )}
      {may && (
        <SessionEvents uid={session.uid} title={web ? t('Requests') : t('Files, commands and forwards')} />
      )}
      <Panel title={t('Details')}>
        <dl className="facts-list">
          <Fact name={t('Who')}>
            <Person person={session.person} />
          </Fact>
          <Fact name={t('Device')}>
            <Link to="/devices/$uid" params={{ uid: session.device_uid }}>
              {session.device.name}
            </Link>
          </Fact>
          {web ? <WebFacts web={web} /> : <Fact name={t('User on the device')}>{session.username}</Fact>}
          <Fact name={t('From')}>{session.ip_address}</Fact>
          {!web && <Fact name={t('Via')}>{t(ways[session.via] ?? '')}</Fact>}
          <Fact name={t('With')}>{t(methods[session.method] ?? '')}</Fact>
          <Fact name={t('Key')}>
            {session.key && (
              <>
                {session.key.name} <code>{session.key.fingerprint}</code>
              </>
            )}
          </Fact>
          <Fact name={t('Client')}>{session.client}</Fact>
          {!web && (
            <>
              <Fact name={t('Program')}>
                {session.resumes ? <Continues session={session} /> : t(kinds[session.type] ?? session.type)}
              </Fact>
              <Fact name={t('Terminal')}>{session.term}</Fact>
            </>
          )}
          <Fact name={t('Also in the session')}>
            {session.participants?.map(({ name }) => name).join(', ')}
          </Fact>
          {session.secrets_masked > 0 && <Fact name={t('Secrets masked')}>{session.secrets_masked}</Fact>}
          <Fact name={t('Started')}>{inFull(session.started_at)}</Fact>
          <Fact name={t('Last seen')}>{inFull(session.last_seen)}</Fact>
          <Fact name={t('Uid')}>
            <code>{session.uid}</code>
          </Fact>
        </dl>
      </Panel>
    </Page>
  )
}

/** For operators, who see the session once its person allows them to type. */
function Joining({ uid }: { uid: string }) {
  const may = useMay('operator')
  const [isAsked, setAsked] = useState(false)
  if (!may) return null
  if (!isAsked)
    return (
      <Button kind="main" onPress={() => setAsked(true)}>
        {t('Request to type')}
      </Button>
    )
  return (
    <Suspense fallback={<Loading />}>
      <Watcher uid={uid} join />
    </Suspense>
  )
}

function wordsFor({ unrecorded, recorded, active }: Session, may: boolean): string {
  if (unrecorded)
    return t(
      'Recording stopped before the session ended. The session continued, as set in the namespace settings.',
    )
  if (recorded && !may)
    return t('It is recorded. Only administrators of the namespace can see the recording.')
  return active
    ? t('This session is not being recorded, so it cannot be watched.')
    : t('This session was not recorded.')
}

const endings: Readonly<Record<string, string>> = {
  failed: msg('Recording stopped before the session ended.'),
  'cut off': msg('The server stopped before the session ended; the last moments may be missing.'),
}

function Recording({ uid, remove }: { uid: string; remove: () => void }) {
  // Not refetched: the player must not change while somebody uses it.
  const terminals = useBodyQuery(['recording', uid], () => api.recordings.list({ params: { uid } }), false)
  // The router keeps parameters that were dropped.
  const search = readSessionSearch({ ...useSearch({ from: '/shell/sessions/$uid' }) })
  const { channel = 0 } = search
  const [chosen, setChosen] = useState(channel)
  return (
    <QueryContent query={terminals}>
      {(all) => {
        const terminal = all.find(({ channel }) => channel === chosen) ?? all[0]
        return (
          <Panel
            title={t('Recording')}
            acts={
              <div className="acts">
                {terminal && <Download uid={uid} terminal={terminal} />}
                <SmallButton onPress={remove}>{t('Delete the recording')}</SmallButton>
              </div>
            }
          >
            {all.length > 1 && (
              <label className="inline">
                {t('Terminal')}
                <select
                  value={terminal?.channel}
                  onChange={(event) => setChosen(Number(event.currentTarget.value))}
                >
                  {all.map((one) => (
                    <option key={one.channel} value={one.channel}>
                      {`${one.channel + 1}: ${one.command || one.program || t('terminal')}, ${inFull(one.started_at)}`}
                    </option>
                  ))}
                </select>
              </label>
            )}
            {terminal?.command && (
              <p>
                <span className="soft">{t('Command:')}</span> <code>{terminal.command}</code>
              </p>
            )}
            {terminal && endings[terminal.ending] && (
              <p>
                <Pill tone="wait">{t('incomplete')}</Pill> {t(endings[terminal.ending] ?? '')}
              </p>
            )}
            {terminal ? (
              <Suspense fallback={<Loading />}>
                <Player
                  key={terminal.channel}
                  uid={uid}
                  terminal={terminal}
                  at_ms={terminal.channel === channel ? momentOf_ms(search) : 0}
                />
              </Suspense>
            ) : (
              <Empty title={t('The recording no longer exists.')} />
            )}
          </Panel>
        )
      }}
    </QueryContent>
  )
}

/** The browser stores blobs on disk, so that a large recording need not fit into memory. */
function Download({ uid, terminal }: { uid: string; terminal: RecordedTerminal }) {
  const [got, setGot] = useState<number>()
  async function download(): Promise<void> {
    setGot(0)
    await attempt(async () => {
      const answer = await fetchWithToken(`/api/sessions/${uid}/cast?channel=${terminal.channel}`)
      if (!answer.ok || !answer.body) throw new ApiError(await readResult(answer))
      let bytes = 0
      const counted = answer.body.pipeThrough(
        new TransformStream<Uint8Array, Uint8Array>({
          transform(chunk, next) {
            bytes += chunk.length
            setGot(bytes)
            next.enqueue(chunk)
          },
        }),
      )
      const part = terminal.channel > 0 ? `-${terminal.channel}` : ''
      saveFile(`${uid.slice(0, 12)}${part}.cast`, await new Response(counted).blob())
    })
    setGot(undefined)
  }
  return (
    <Button kind="quiet" small isPending={got !== undefined} onPress={download}>
      {got === undefined ? t('Download') : t('Downloading … {size}', { size: megabytes(got) })}
    </Button>
  )
}
