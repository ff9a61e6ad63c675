// One session: who, where, when. A live one can be watched; afterwards its recording can be played,
// downloaded and deleted. The player and the watcher are loaded when they are needed.
import { Link, useParams } from '@tanstack/react-router'
import { lazy, Suspense, useState, type ReactNode } from 'react'
import { ApiError, readResult } from '@hawser/contract/client'
import type { RecordedTerminal } from '@hawser/contract/recordings'
import type { Session } from '@hawser/contract/sessions'
import { api, useMay, fetchWithToken } from '../api.ts'
import { errorText } from '../error-text.ts'
import { useNamespaceQuery } from '../namespace-query.ts'
import { Button } from '../components/button.tsx'
import { Page, Panel } from '../components/page.tsx'
import { useSessionActions, whose } from '../components/session-actions.tsx'
import { QueryContent, Empty, Loading } from '../components/query-content.tsx'
import { inFull, Lamp, Pill } from '../components/status.tsx'
import { showToast } from '../components/toast.tsx'
import { kinds, lasted, SessionPills } from './sessions.tsx'

const Player = lazy(() => import('../player/player.tsx'))
const Watcher = lazy(() => import('../player/watcher.tsx'))

export function SessionPage() {
  const { uid } = useParams({ from: '/shell/sessions/$uid' })
  const session = useNamespaceQuery(
    ['session', uid],
    async () => (await api.sessions.get({ params: { uid } })).body,
  )
  if (session.data) return <Shown session={session.data} />
  return (
    <Page title="Session">
      <QueryContent query={session}>{() => null}</QueryContent>
      <p>
        <Link to="/sessions">All sessions</Link>
      </p>
    </Page>
  )
}

function Shown({ session }: { session: Session }) {
  const may = useMay('administrator')
  const acts = useSessionActions(session)
  const { active, recorded, unrecorded } = session
  return (
    <Page
      title={whose(session)}
      lead={
        <span className="signs">
          <Lamp on={active} /> {active ? 'connected' : `over, it lasted ${lasted(session)}`}{' '}
          <SessionPills session={session} />
        </span>
      }
      acts={
        may &&
        active && (
          <Button kind="danger" onPress={acts.close}>
            Close the session
          </Button>
        )
      }
    >
      {acts.dialogs}
      {may && recorded && active && (
        <Panel title="Live">
          <Suspense fallback={<Loading />}>
            <Watcher uid={session.uid} />
          </Suspense>
        </Panel>
      )}
      {may && recorded && !active && <Recording uid={session.uid} remove={acts.removeRecording} />}
      {(!recorded || unrecorded || !may) && (
        <Panel title={active ? 'Live' : 'Recording'}>
          <p className="soft">{wordsFor(session, may)}</p>
        </Panel>
      )}
      <Panel title="Facts">
        <dl className="facts-list">
          <Fact name="User on the device">{session.username}</Fact>
          <Fact name="Device">
            <Link to="/devices/$uid" params={{ uid: session.device_uid }}>
              {session.device.name}
            </Link>
          </Fact>
          <Fact name="From">{session.ip_address}</Fact>
          <Fact name="Program">{kinds[session.type] ?? session.type}</Fact>
          <Fact name="Terminal">{session.term}</Fact>
          <Fact name="Started">{inFull(session.started_at)}</Fact>
          <Fact name="Seen last">{inFull(session.last_seen)}</Fact>
          <Fact name="Uid">
            <code>{session.uid}</code>
          </Fact>
        </dl>
      </Panel>
    </Page>
  )
}

function wordsFor({ unrecorded, recorded, active }: Session, may: boolean): string {
  if (unrecorded)
    return 'It could not be recorded to its end and went on, as the settings of the namespace have it.'
  if (recorded && !may) return 'It is recorded. Administrators of the namespace may see what it showed.'
  return active ? 'Nothing of it is recorded, so there is nothing to watch.' : 'Nothing of it was recorded.'
}

function Fact({ name, children }: { name: string; children: ReactNode }) {
  if (children === '') return null
  return (
    <div>
      <dt>{name}</dt>
      <dd>{children}</dd>
    </div>
  )
}

const endings: Readonly<Record<string, string>> = {
  failed: 'It could not be recorded to its end.',
  'cut off': 'The server stopped before its end; the last moments may be missing.',
}

function Recording({ uid, remove }: { uid: string; remove: () => void }) {
  // Not refetched: the player must not change while somebody uses it.
  const terminals = useNamespaceQuery(
    ['recording', uid],
    async () => (await api.recordings.list({ params: { uid } })).body,
    false,
  )
  const [chosen, setChosen] = useState(0)
  return (
    <QueryContent query={terminals}>
      {(all) => {
        const terminal = all.find(({ channel }) => channel === chosen) ?? all[0]
        return (
          <Panel
            title="Recording"
            acts={
              <div className="acts">
                {terminal && <Download uid={uid} terminal={terminal} />}
                <Button kind="quiet" small onPress={remove}>
                  Delete the recording
                </Button>
              </div>
            }
          >
            {all.length > 1 && (
              <label className="inline">
                Terminal
                <select
                  value={terminal?.channel}
                  onChange={(event) => setChosen(Number(event.currentTarget.value))}
                >
                  {all.map((one) => (
                    <option key={one.channel} value={one.channel}>
                      {`${one.channel + 1}: ${one.command || one.program || 'terminal'}, ${inFull(one.started_at)}`}
                    </option>
                  ))}
                </select>
              </label>
            )}
            {terminal?.command && (
              <p>
                <span className="soft">Command:</span> <code>{terminal.command}</code>
              </p>
            )}
            {terminal && endings[terminal.ending] && (
              <p>
                <Pill tone="wait">not whole</Pill> {endings[terminal.ending]}
              </p>
            )}
            {terminal ? (
              <Suspense fallback={<Loading />}>
                <Player key={terminal.channel} uid={uid} terminal={terminal} />
              </Suspense>
            ) : (
              <Empty title="There is no recording any more." />
            )}
          </Panel>
        )
      }}
    </QueryContent>
  )
}

const megabytes = (bytes: number): string => `${(bytes / 1_000_000).toFixed(1)} MB`

/** Downloads a recording. The browser stores blobs on disk, so that a large one need not fit into memory. */
function Download({ uid, terminal }: { uid: string; terminal: RecordedTerminal }) {
  const [got, setGot] = useState<number>()
  async function download(): Promise<void> {
    setGot(0)
    try {
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
      const address = URL.createObjectURL(await new Response(counted).blob())
      const link = document.createElement('a')
      link.href = address
      link.download = `${uid.slice(0, 12)}${terminal.channel > 0 ? `-${terminal.channel}` : ''}.cast`
      link.click()
      setTimeout(() => URL.revokeObjectURL(address), 60_000)
    } catch (error) {
      showToast(errorText(error))
    } finally {
      setGot(undefined)
    }
  }
  return (
    <Button kind="quiet" small isPending={got !== undefined} onPress={() => void download()}>
      {got === undefined ? 'Download' : `Downloading … ${megabytes(got)}`}
    </Button>
  )
}
