// One terminal: first the login, then the screen with what can be done around it, and when it has ended a way
// to begin again. What the login needs is kept in memory while the tab is open, so that a lost connection
// costs one press and no typing.
import { useEffect, useId, useRef, useState } from 'react'
import { sentenceOf } from '../api.ts'
import { Button } from '../parts/button.tsx'
import { copy } from '../parts/copy.tsx'
import { tell } from '../parts/toast.tsx'
import { Files } from './files.tsx'
import { openLine, type Login, type TerminalLine } from './line.ts'
import { LoginForm } from './login-form.tsx'
import { fontSizes, likelySize, openScreen, type Screen } from './screen.ts'

interface TabProps {
  device: string
  pixels: number
  setPixels: (pixels: number) => void
  /** Tells who is logged in, and whether a session is going on. */
  change: (user: string, live: boolean) => void
  close: () => void
}

type State = { readonly line: TerminalLine; readonly login: Login; readonly ended?: string }

export function TerminalTab({ device, pixels, setPixels, change, close }: TabProps) {
  const [state, setState] = useState<State>()
  const [finding, setFinding] = useState(false)
  const [files, setFiles] = useState(false)
  const [busy, setBusy] = useState(false)
  const whole = useRef<HTMLDivElement>(null)
  const screen = useRef<Screen>(undefined)
  const live = state !== undefined && state.ended === undefined

  async function open(login: Login): Promise<void> {
    const line = await openLine(login, screen.current?.size ?? likelySize(whole.current, pixels))
    setState({ line, login })
    change(login.username, true)
  }

  async function again(): Promise<void> {
    setBusy(true)
    await open(state!.login).catch((error: unknown) => tell(sentenceOf(error)))
    setBusy(false)
  }

  // The tab is closed, and with it the session.
  const current = useRef<TerminalLine>(undefined)
  current.current = state?.line
  useEffect(() => () => current.current?.close(), [])

  async function paste(): Promise<void> {
    try {
      screen.current?.paste(await navigator.clipboard.readText())
      screen.current?.focus()
    } catch {
      tell('The browser keeps the clipboard to itself here: press Ctrl+Shift+V in the terminal.')
    }
  }

  function copySelection(): void {
    const text = screen.current?.selection() ?? ''
    if (text === '') tell('Nothing is selected in the terminal.')
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
          <Button kind="quiet" small onPress={() => state.line.close()}>
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
              Log in anew
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
      <Place
        line={state.line}
        pixels={pixels}
        shown={(opened) => (screen.current = opened)}
        shortcut={(name) => (name === 'copy' ? copySelection() : setFinding(true))}
        ended={(sentence = 'The session has ended.') => {
          setState((now) => now && { ...now, ended: sentence })
          setFiles(false)
          change(state.login.username, false)
        }}
      />
      {files && live && <Files session={state.line.session} />}
    </div>
  )
}

interface PlaceProps {
  line: TerminalLine
  pixels: number
  shown: (screen: Screen | undefined) => void
  shortcut: (name: 'copy' | 'find') => void
  ended: (sentence: string | undefined) => void
}

/** Where the screen is. It stays when the line is another one: what was shown can still be read. */
function Place({ line, pixels, shown, shortcut, ended }: PlaceProps) {
  const place = useRef<HTMLDivElement>(null)
  const screen = useRef<Screen>(undefined)
  const events = useRef({ line, shortcut, ended })
  events.current = { line, shortcut, ended }
  useEffect(() => {
    const opened = openScreen(
      place.current!,
      {
        typed: (text) => events.current.line.type(text),
        resized: (size) => events.current.line.resize(size),
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
    line.listen({
      output: (bytes, done) => opened.write(bytes, done),
      ended: (sentence) => events.current.ended(sentence),
    })
    line.resize(opened.size)
    opened.focus()
  }, [line])
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
