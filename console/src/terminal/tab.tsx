// One terminal: the login form, then the screen with its toolbar, and after its end a button to reconnect.
// The login stays in memory while the tab is open, so that a lost connection costs one press and no typing.
import { useEffect, useId, useRef, useState } from 'react'
import { errorText } from '../error-text.ts'
import { Button } from '../components/button.tsx'
import { copy } from '../components/copy.tsx'
import { showToast } from '../components/toast.tsx'
import { Files } from './files.tsx'
import { openConnection, type TerminalLogin, type TerminalConnection } from './connection.ts'
import { LoginForm } from './login-form.tsx'
import { fontSizes, likelySize, openScreen, type Screen } from './screen.ts'

interface TabProps {
  device: string
  pixels: number
  setPixels: (pixels: number) => void
  /** Called with the user who is logged in, and whether the session is live. */
  change: (user: string, live: boolean) => void
  close: () => void
}

type State = {
  readonly connection: TerminalConnection
  readonly login: TerminalLogin
  readonly ended?: string
}

export function TerminalTab({ device, pixels, setPixels, change, close }: TabProps) {
  const [state, setState] = useState<State>()
  const [finding, setFinding] = useState(false)
  const [files, setFiles] = useState(false)
  const [busy, setBusy] = useState(false)
  const whole = useRef<HTMLDivElement>(null)
  const screen = useRef<Screen>(undefined)
  const live = state !== undefined && state.ended === undefined

  async function open(login: TerminalLogin): Promise<void> {
    const connection = await openConnection(login, screen.current?.size ?? likelySize(whole.current, pixels))
    setState({ connection, login })
    change(login.username, true)
  }

  async function again(): Promise<void> {
    setBusy(true)
    await open(state!.login).catch((error: unknown) => showToast(errorText(error)))
    setBusy(false)
  }

  // Closing the tab ends the session.
  const current = useRef<TerminalConnection>(undefined)
  current.current = state?.connection
  useEffect(() => () => current.current?.close(), [])

  async function paste(): Promise<void> {
    try {
      screen.current?.paste(await navigator.clipboard.readText())
      screen.current?.focus()
    } catch {
      showToast('The browser keeps the clipboard to itself here: press Ctrl+Shift+V in the terminal.')
    }
  }

  function copySelection(): void {
    const text = screen.current?.selection() ?? ''
    if (text === '') showToast('Nothing is selected in the terminal.')
    else void copy(text)
  }

  if (!state)
    return (
      <div className="terminal-login" ref={whole}>
        <LoginForm device={device} open={open} />
      </div>
    )
  const larger = (by: number) => setPixels(Math.min(fontSizes.most, Math.max(fontSizes.least, pixels + by)))
  return (
    <div className="terminal" ref={whole}>
      <div className="terminal-tools" role="toolbar" aria-label="Terminal">
        <Button kind="quiet" small onPress={copySelection}>
          Copy
        </Button>
        <Button kind="quiet" small onPress={() => void paste()}>
          Paste
        </Button>
        <Button kind="quiet" small aria-expanded={finding} onPress={() => setFinding(!finding)}>
          Find
        </Button>
        <Button kind="quiet" small isDisabled={pixels <= fontSizes.least} onPress={() => larger(-1)}>
          Smaller
        </Button>
        <Button kind="quiet" small isDisabled={pixels >= fontSizes.most} onPress={() => larger(1)}>
          Larger
        </Button>
        <Button kind="quiet" small aria-expanded={files} isDisabled={!live} onPress={() => setFiles(!files)}>
          Files
        </Button>
        <Button
          kind="quiet"
          small
          onPress={() =>
            void (document.fullscreenElement ? document.exitFullscreen() : whole.current?.requestFullscreen())
          }
        >
          Full screen
        </Button>
        {live ? (
          <Button kind="quiet" small onPress={() => state.connection.close()}>
            Disconnect
          </Button>
        ) : (
          <Button kind="quiet" small onPress={close}>
            Close
          </Button>
        )}
      </div>
      {!live && (
        <div className="terminal-ended" role="alert">
          <p>{state.ended}</p>
          <div className="acts">
            <Button small isPending={busy} onPress={() => void again()}>
              Reconnect
            </Button>
            <Button kind="quiet" small onPress={() => setState(undefined)}>
              Log in again
            </Button>
          </div>
        </div>
      )}
      {finding && (
        <Find
          find={(text, back) => screen.current?.find(text, back) ?? false}
          close={() => setFinding(false)}
        />
      )}
      <ScreenHost
        connection={state.connection}
        pixels={pixels}
        shown={(opened) => (screen.current = opened)}
        shortcut={(name) => (name === 'copy' ? copySelection() : setFinding(true))}
        ended={(sentence = 'The session has ended.') => {
          setState((now) => now && { ...now, ended: sentence })
          setFiles(false)
          change(state.login.username, false)
        }}
      />
      {files && live && <Files session={state.connection.session} />}
    </div>
  )
}

interface ScreenHostProps {
  connection: TerminalConnection
  pixels: number
  shown: (screen: Screen | undefined) => void
  shortcut: (name: 'copy' | 'find') => void
  ended: (sentence: string | undefined) => void
}

/** Holds the screen. A new connection keeps the screen, so that earlier output can still be read. */
function ScreenHost({ connection, pixels, shown, shortcut, ended }: ScreenHostProps) {
  const place = useRef<HTMLDivElement>(null)
  const screen = useRef<Screen>(undefined)
  const events = useRef({ connection, shortcut, ended })
  events.current = { connection, shortcut, ended }
  useEffect(() => {
    const opened = openScreen(
      place.current!,
      {
        typed: (text) => events.current.connection.type(text),
        resized: (size) => events.current.connection.resize(size),
        shortcut: (name) => events.current.shortcut(name),
      },
      pixels,
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
      ended: (sentence) => events.current.ended(sentence),
    })
    connection.resize(opened.size)
    opened.focus()
  }, [connection])
  useEffect(() => screen.current?.fontSize(pixels), [pixels])
  return <div className="terminal-place" ref={place} />
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
      <label htmlFor={id}>Find in the output</label>
      <input
        id={id}
        autoFocus
        value={text}
        autoComplete="off"
        spellCheck={false}
        onChange={(event) => setText(event.currentTarget.value)}
      />
      <Button kind="quiet" small type="submit">
        Above
      </Button>
      <Button kind="quiet" small onPress={() => look(false)}>
        Below
      </Button>
      <span role="status" className="soft">
        {none ? 'Not found' : ''}
      </span>
      <Button kind="quiet" small onPress={close}>
        Done
      </Button>
    </form>
  )
}
