// One terminal: the login form, then the screen, and after its end a button to reconnect. The login stays in
// memory while the terminal is open, so that a second terminal costs one press and no typing. When the connection
// breaks, as when a laptop sleeps, the session is held by the server, and the pane continues it by itself.
import { useEffect, useId, useRef, useState } from 'react'
import { ApiError } from '@hawser/contract/client'
import type { OwnerMessage, OwnPresence } from '@hawser/contract/sharing'
import { api } from '../api.ts'
import { auth } from '../auth.ts'
import { Button, SmallButton } from '../components/button.tsx'
import { Loading } from '../components/query-content.tsx'
import { attempt } from '../namespace-query.ts'
import {
  attachConnection,
  openConnection,
  OpenError,
  type Ending,
  type TerminalLogin,
  type TerminalConnection,
} from './connection.ts'
import { LoginForm } from './login-form.tsx'
import { OwnSharing } from './own-sharing.tsx'
import { usePreferences } from './preferences.ts'
import { likelySize, openScreen, type Screen, type Shortcut } from './screen.ts'
import { t } from '../language/language.ts'

export interface PaneNews {
  readonly user: string
  readonly live: boolean
  /** The login of the pane. */
  readonly login?: TerminalLogin | undefined
  /** Also while its connection is lost and retried. */
  readonly session?: string | undefined
}

export interface PaneHandle {
  screen(): Screen | undefined
  disconnect(): void
}

interface PaneProps {
  device: string
  /** Logs in with this, without asking. */
  given: TerminalLogin | undefined
  /** Continues this session, without asking. */
  attach: string | undefined
  finding: boolean
  stopFinding: () => void
  handle: (handle: PaneHandle | undefined) => void
  change: (news: PaneNews) => void
  shortcut: (name: Shortcut) => void
  released: () => void
  latency: (ms: number) => void
}

type State = {
  readonly connection: TerminalConnection
  /** Undefined: a session was continued. */
  readonly login: TerminalLogin | undefined
  readonly ended?: string
  /** A `lost` connection is retried. */
  readonly how?: Ending
}

export function TerminalPane(props: PaneProps) {
  const { device, given, attach, finding, stopFinding, handle, change, ...events } = props
  const { pixels } = usePreferences()
  const [state, setState] = useState<State>()
  const [shared, setShared] = useState<readonly OwnPresence[]>([])
  const [busy, setBusy] = useState(given !== undefined || attach !== undefined)
  const whole = useRef<HTMLDivElement>(null)
  const screen = useRef<Screen>(undefined)
  const live = state !== undefined && state.ended === undefined

  const size = () => screen.current?.size ?? likelySize(whole.current, pixels)
  const [user, setUser] = useState('')
  function begin(connection: TerminalConnection, login: TerminalLogin | undefined, name: string): void {
    setUser(name)
    setShared([])
    setState({ connection, login })
    change({ user: name, live: true, login, session: connection.session })
  }
  async function continueSession(uid: string): Promise<void> {
    const { username } = (await api.sessions.get({ params: { uid } })).body
    begin(await attachConnection(uid, size()), undefined, username)
  }
  async function open(login: TerminalLogin): Promise<void> {
    begin(await openConnection(login, size()), login, login.username)
  }
  async function quietly(work: () => Promise<void>): Promise<void> {
    setBusy(true)
    await attempt(work)
    setBusy(false)
  }
  useEffect(() => {
    if (given) void quietly(async () => open(given))
    else if (attach !== undefined) void quietly(async () => continueSession(attach))
  }, [])

  function ended(sentence: string | undefined, how: Ending): void {
    setState((now) => now && { ...now, ended: sentence ?? t('The session has ended.'), how })
    const session = how === 'lost' ? state?.connection.session : undefined
    change({ user, live: false, login: state?.login, session })
  }
  /** Continues the session on the same screen. */
  function goOn(connection: TerminalConnection): void {
    screen.current?.clear()
    begin(connection, state?.login, user)
  }
  const isLost = state?.how === 'lost'
  useEffect(() => {
    if (!isLost || !state) return undefined
    return continued(
      async () => attachConnection(state.connection.session, size(), state.connection.ticket),
      goOn,
      (error) => {
        if (error instanceof OpenError && error.how === 'moved') return ended(error.message, 'moved')
        setState((now) => now && { ...now, how: 'over' })
        change({ user, live: false, login: state.login })
      },
    )
  }, [isLost])

  // Closing the pane ends the session.
  const current = useRef<TerminalConnection>(undefined)
  current.current = state?.connection
  useEffect(() => {
    handle({ screen: () => screen.current, disconnect: () => current.current?.close() })
    // Signing out leaves nothing behind; after a reload the session continues.
    const onUnload = (): void => {
      if (auth.token() === '') current.current?.close()
    }
    addEventListener('beforeunload', onUnload)
    return () => {
      removeEventListener('beforeunload', onUnload)
      handle(undefined)
      current.current?.close()
    }
  }, [])

  const decide = (decision: OwnerMessage): void => {
    state?.connection.decide(decision)
    // The focused button is usually gone then. A choice of the size may take several keys.
    if (decision.kind !== 'size') screen.current?.focus()
  }

  if (!state)
    return (
      <div className="terminal-login" ref={whole}>
        {busy ? <Loading /> : <LoginForm device={device} open={open} />}
      </div>
    )
  return (
    <div className="terminal" ref={whole}>
      {!live && (
        <Ended
          state={state}
          busy={busy}
          goOnHere={() => quietly(async () => goOn(await attachConnection(state.connection.session, size())))}
          reconnect={(login) => quietly(async () => open(login))}
          logInAgain={() => {
            setState(undefined)
            change({ user: '', live: false })
          }}
        />
      )}
      {finding && (
        <Find find={(text, back) => screen.current?.find(text, back) ?? false} close={stopFinding} />
      )}
      {live && <OwnSharing shared={shared} decide={decide} />}
      <ScreenHost
        connection={state.connection}
        shared={(presence) =>
          setShared((now) => [...now.filter(({ channel }) => channel !== presence.channel), presence])
        }
        shown={(opened) => (screen.current = opened)}
        ended={ended}
        {...events}
      />
    </div>
  )
}

interface EndedProps {
  state: State
  busy: boolean
  goOnHere: () => Promise<void>
  reconnect: (login: TerminalLogin) => Promise<void>
  logInAgain: () => void
}

/** After the end of a connection: the sentence, and the ways to go on. */
function Ended({ state: { ended, how, login }, busy, goOnHere, reconnect, logInAgain }: EndedProps) {
  return (
    <div className="terminal-ended" role="alert">
      <p>
        {ended} {how === 'lost' && t('Continuing the session …')}
      </p>
      <div className="acts">
        {how === 'moved' && (
          <Button small isPending={busy} onPress={goOnHere}>
            {t('Continue here')}
          </Button>
        )}
        {login && (
          <Button small isPending={busy} onPress={() => reconnect(login)}>
            {how === 'over' ? t('Reconnect') : t('New session')}
          </Button>
        )}
        <SmallButton onPress={logInAgain}>{t('Log in again')}</SmallButton>
      </div>
    </div>
  )
}

/** An answer of the server; without one, the way there is still broken. */
function isFinal(error: unknown): boolean {
  if (error instanceof OpenError) return error.how !== 'lost'
  return error instanceof ApiError && error.status >= 400 && error.status < 500 && error.status !== 429
}

const firstTry_ms = 500
const lastTry_ms = 15_000

/** Retries until the session continues or is over; returns what stops that. */
function continued(
  attach: () => Promise<TerminalConnection>,
  goesOn: (connection: TerminalConnection) => void,
  isOver: (error: unknown) => void,
): () => void {
  let stopped = false
  let trying = false
  let wait_ms = firstTry_ms
  let timer: ReturnType<typeof setTimeout> | undefined
  async function attempt(): Promise<void> {
    if (stopped || trying) return
    trying = true
    clearTimeout(timer)
    try {
      const connection = await attach()
      if (stopped) return connection.leave()
      goesOn(connection)
    } catch (error) {
      if (stopped) return
      if (isFinal(error)) return isOver(error)
      timer = setTimeout(() => void attempt(), wait_ms)
      wait_ms = Math.min(lastTry_ms, wait_ms * 2)
    } finally {
      trying = false
    }
  }
  // A laptop that wakes up retries at once.
  const now = (): void => void attempt()
  addEventListener('online', now)
  document.addEventListener('visibilitychange', now)
  now()
  return () => {
    stopped = true
    clearTimeout(timer)
    removeEventListener('online', now)
    document.removeEventListener('visibilitychange', now)
  }
}

interface ScreenHostProps {
  connection: TerminalConnection
  shown: (screen: Screen | undefined) => void
  shared: (presence: OwnPresence) => void
  shortcut: (name: Shortcut) => void
  ended: (sentence: string | undefined, how: Ending) => void
  released: () => void
  latency: (ms: number) => void
}

/** A new connection keeps the screen, so that earlier output stays readable. */
function ScreenHost({ connection, shown, ...all }: ScreenHostProps) {
  const preferences = usePreferences()
  const place = useRef<HTMLDivElement>(null)
  const screen = useRef<Screen>(undefined)
  const events = useRef({ connection, ...all })
  events.current = { connection, ...all }
  useEffect(() => {
    const opened = openScreen(
      place.current!,
      {
        typed: (text) => events.current.connection.type(text),
        resized: (size) => events.current.connection.resize(size),
        shortcut: (name) => events.current.shortcut(name),
        released: () => events.current.released(),
        latency: (ms) => events.current.latency(ms),
        // No message is shown, because this happens with every selection.
        selected: (text) => void navigator.clipboard?.writeText(text).catch(() => undefined),
      },
      preferences,
    )
    screen.current = opened
    shown(opened)
    return () => {
      shown(undefined)
      opened[Symbol.dispose]()
    }
  }, [])
  useEffect(() => {
    const opened = screen.current!
    connection.listen({
      output: (bytes, done) => opened.write(bytes, done),
      shared: (presence) => events.current.shared(presence),
      ended: (sentence, how) => events.current.ended(sentence, how),
    })
    connection.resize(opened.size)
    opened.focus()
  }, [connection])
  useEffect(() => screen.current?.prefer(preferences), [preferences])
  // Two elements, because the inner one is filled with whole lines and must have no padding.
  return (
    <div className="terminal-place">
      <div className="terminal-fit" ref={place} />
    </div>
  )
}

function Find({ find, close }: { find: (text: string, back: boolean) => boolean; close: () => void }) {
  const [text, setText] = useState('')
  const [none, setNone] = useState(false)
  const id = useId()
  const look = (back: boolean) => setNone(text !== '' && !find(text, back))
  return (
    <form
      className="terminal-find"
      role="search"
      onSubmit={(event) => {
        event.preventDefault()
        look(true)
      }}
      onKeyDown={(event) => {
        if (event.key === 'Escape') close()
      }}
    >
      <label htmlFor={id}>{t('Find in the output')}</label>
      <input
        id={id}
        autoFocus
        value={text}
        autoComplete="off"
        spellCheck={false}
        onChange={(event) => setText(event.currentTarget.value)}
      />
      <Button kind="quiet" small type="submit">
        {t('Above')}
      </Button>
      <SmallButton onPress={() => look(false)}>{t('Below')}</SmallButton>
      <span role="status" className="soft">
        {none ? t('Not found') : ''}
      </span>
      <SmallButton onPress={close}>{t('Done')}</SmallButton>
    </form>
  )
}
