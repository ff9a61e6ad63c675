// The player of a recording: the screen, a seek bar, speed, skipping of pauses, and a search whose results
// are links into the recording. Everything works by keyboard while the focus is inside.
import { useEffect, useId, useRef, useState, type KeyboardEvent } from 'react'
import { defined } from '@hawser/contract/defined'
import type { Found, RecordedTerminal } from '@hawser/contract/recordings'
import { api } from '../api.ts'
import { errorText } from '../error-text.ts'
import { Button, SmallButton } from '../components/button.tsx'
import { ErrorNotice } from '../components/query-content.tsx'
import { clock, engine, speeds, type Engine, type Playing } from './engine.ts'
import { CopyMoment } from './copy-moment.tsx'
import { InterruptionList, InterruptionMarks } from './interruptions.tsx'
import { Filmstrip } from './filmstrip.tsx'
import { openReadOnlyScreen } from './read-only-screen.ts'
import { rich, t, tn } from '../language/language.ts'

const small_ms = 5_000
const large_ms = 30_000

const scheduler = {
  now: () => performance.now(),
  soon(call: () => void) {
    const id = requestAnimationFrame(call)
    return () => cancelAnimationFrame(id)
  },
}

function useEngine(uid: string, terminal: RecordedTerminal, at_ms: number) {
  const place = useRef<HTMLDivElement>(null)
  const [playing, setPlaying] = useState<Playing>()
  const running = useRef<Engine>(undefined)
  const { channel, duration_ms, interruptions } = terminal
  useEffect(() => {
    const screen = openReadOnlyScreen(place.current!)
    const params = { uid, channel: String(channel) }
    const source = {
      duration_ms,
      interruptions,
      at: async (at: number) => (await api.recordings.window({ params, query: { at } })).body,
      from: async (from: number) => (await api.recordings.window({ params, query: { from } })).body,
    }
    const made = engine(source, screen, setPlaying, scheduler)
    running.current = made
    if (at_ms > 0) made.seek(at_ms)
    const watch = new ResizeObserver(() => screen.fit())
    watch.observe(place.current!.parentElement!)
    return () => {
      watch.disconnect()
      made.dispose()
      screen.dispose()
      running.current = undefined
    }
  }, [uid, channel, duration_ms, interruptions, at_ms])
  return { place, running, playing }
}

type Acting = (what: (engine: Engine, state: Playing) => void) => void

interface PlayerProps {
  uid: string
  terminal: RecordedTerminal
  at_ms: number
}

export default function Player({ uid, terminal, at_ms }: PlayerProps) {
  const { place, running, playing } = useEngine(uid, terminal, at_ms)
  const whole = useRef<HTMLDivElement>(null)
  const find = useRef<HTMLInputElement>(null)
  const { duration_ms, interruptions } = terminal
  const act: Acting = (what) => {
    const found = running.current
    if (found) what(found, found.state())
  }
  const jump = (by_ms: number) => act((one, { time_ms }) => one.seek(time_ms + by_ms))
  const faster = (by: number) =>
    act((one, { speed }) => {
      const at = speeds.indexOf(speed as (typeof speeds)[number]) + by
      if (speeds[at] !== undefined) one.setSpeed(speeds[at])
    })
  const fullScreen = () => {
    if (document.fullscreenElement) void document.exitFullscreen()
    else void whole.current?.requestFullscreen().catch(() => undefined)
  }
  const keys: Readonly<Record<string, () => void>> = {
    ' ': () => act((one) => one.toggle()),
    k: () => act((one) => one.toggle()),
    ArrowLeft: () => jump(-small_ms),
    ArrowRight: () => jump(small_ms),
    PageUp: () => jump(-large_ms),
    PageDown: () => jump(large_ms),
    Home: () => act((one) => one.seek(0)),
    End: () => act((one) => one.seek(duration_ms)),
    '<': () => faster(-1),
    '>': () => faster(1),
    i: () => act((one, { skipIdle }) => one.setSkipIdle(!skipIdle)),
    f: fullScreen,
    '/': () => find.current?.focus(),
  }
  const onKey = (event: KeyboardEvent<HTMLDivElement>) => {
    const at = event.target as HTMLElement
    const act = event.ctrlKey || event.metaKey || event.altKey ? undefined : keys[event.key]
    // Inputs, buttons and selects keep their keys.
    const typing =
      (at instanceof HTMLInputElement && at.type !== 'range' && at.type !== 'checkbox') ||
      at instanceof HTMLSelectElement
    const pressing = event.key === ' ' && (at.tagName === 'BUTTON' || at instanceof HTMLInputElement)
    if (!act || typing || pressing) return
    event.preventDefault()
    act()
  }
  return (
    <div className="player" ref={whole} onKeyDown={onKey}>
      <div className="screen-room" tabIndex={0} role="region" aria-label={t('Terminal output')}>
        <div className="screen" ref={place} aria-busy={playing?.loading ?? true} />
      </div>
      {playing?.error !== undefined && <ErrorNotice error={playing.error} again={() => jump(0)} />}
      <PlayBar terminal={terminal} playing={playing} act={act} />
      <div className="player-bar wrap">
        <Options playing={playing} act={act} hasInterruptions={interruptions.length > 0} />
        <SmallButton onPress={fullScreen}>{t('Full screen')}</SmallButton>
        <CopyMoment uid={uid} channel={terminal.channel} time_ms={playing?.time_ms ?? 0} />
      </div>
      <Filmstrip
        uid={uid}
        channel={terminal.channel}
        isReady={playing !== undefined && !playing.loading}
        go={(time_ms) => act((one) => one.seek(time_ms))}
      />
      {interruptions.length > 0 && (
        <InterruptionList interruptions={interruptions} go={(time_ms) => act((one) => one.seek(time_ms))} />
      )}
      <Search uid={uid} terminal={terminal} input={find} go={(time_ms) => act((one) => one.seek(time_ms))} />
      <details className="soft">
        <summary>{t('Keys')}</summary>
        <p>
          {rich(
            'Inside of the player: <kbd>Space</kbd> plays and pauses, <kbd>←</kbd> <kbd>→</kbd> go 5 seconds, <kbd>Page up</kbd> <kbd>Page down</kbd> 30, <kbd>Home</kbd> and <kbd>End</kbd> to the start and the end, <kbd><</kbd> <kbd>></kbd> change the speed, <kbd>i</kbd> skips pauses, <kbd>/</kbd> searches, <kbd>f</kbd> fills the screen.',
            { kbd: (inside) => <kbd>{inside}</kbd> },
          )}
        </p>
      </details>
    </div>
  )
}

interface PlayBarProps {
  terminal: RecordedTerminal
  playing: Playing | undefined
  act: Acting
}

function PlayBar({ terminal, playing, act }: PlayBarProps) {
  const { duration_ms } = terminal
  const now = playing?.time_ms ?? 0
  return (
    <div className="player-bar">
      <Button
        kind="main"
        small
        aria-label={playing?.playing ? t('Pause') : t('Play')}
        onPress={() => act((one) => one.toggle())}
      >
        <span className={playing?.playing ? 'sign-pause' : 'sign-play'} aria-hidden="true" />
      </Button>
      <span className="player-place">
        <input
          type="range"
          aria-label={t('Position in the recording')}
          aria-valuetext={t('{now} of {end}', { now: clock(now), end: clock(duration_ms) })}
          min={0}
          max={Math.max(1, duration_ms)}
          step={100}
          value={now}
          onChange={(event) => {
            const to = Number(event.currentTarget.value)
            act((one) => one.seek(to))
          }}
        />
        <InterruptionMarks interruptions={terminal.interruptions} duration_ms={duration_ms} />
      </span>
      <span className="player-time">
        <span data-testid="time">{clock(now)}</span> / {clock(duration_ms)}
      </span>
      {playing && playing.typist !== '' && playing.typist !== terminal.person && (
        <span className="player-time">{t('{typist} types', { typist: playing.typist })}</span>
      )}
    </div>
  )
}

interface OptionsProps {
  playing: Playing | undefined
  act: Acting
  hasInterruptions: boolean
}

function Options({ playing, act, hasInterruptions }: OptionsProps) {
  const speedId = useId()
  return (
    <>
      <span className="player-choice">
        <label htmlFor={speedId}>{t('Speed')}</label>
        <select
          id={speedId}
          value={String(playing?.speed ?? 1)}
          onChange={(event) => {
            const to = Number(event.currentTarget.value)
            act((one) => one.setSpeed(to))
          }}
        >
          {speeds.map((speed) => (
            <option key={speed} value={String(speed)}>
              {speed}×
            </option>
          ))}
        </select>
      </span>
      <label className="tick">
        <input
          type="checkbox"
          checked={playing?.skipIdle ?? false}
          onChange={(event) => {
            const on = event.currentTarget.checked
            act((one) => one.setSkipIdle(on))
          }}
        />
        {t('Skip pauses')}
      </label>
      {hasInterruptions && (
        <label className="tick">
          <input
            type="checkbox"
            checked={playing?.skipInterruptions ?? true}
            onChange={(event) => {
              const on = event.currentTarget.checked
              act((one) => one.setSkipInterruptions(on))
            }}
          />
          {t('Skip interruptions')}
        </label>
      )}
    </>
  )
}

interface SearchProps {
  uid: string
  terminal: RecordedTerminal
  input: React.RefObject<HTMLInputElement | null>
  go: (time_ms: number) => void
}

const most = 200

function Search({ uid, terminal, input, go }: SearchProps) {
  const [found, setFound] = useState<readonly Found[]>()
  const [says, setSays] = useState('')
  const asked = useRef(0)
  useEffect(
    () => () => {
      asked.current++
    },
    [],
  )

  async function look(text: string): Promise<void> {
    const mine = ++asked.current
    setFound(undefined)
    setSays('')
    if (text === '') return
    const all: Found[] = []
    try {
      for (let from: number | null = 0; from !== null && all.length < most;) {
        setSays(
          t('Searching … {percent} %', {
            percent: Math.floor((from / Math.max(1, terminal.output_bytes)) * 100),
          }),
        )
        const params = { uid, channel: String(terminal.channel) }
        const { body } = await api.recordings.search({
          params,
          query: defined({ text, from: from > 0 ? from : undefined }),
        })
        if (mine !== asked.current) return
        all.push(...body.found)
        from = body.next
        setFound([...all])
      }
      setSays(
        all.length === 0
          ? t('Nothing was shown.')
          : all.length >= most
            ? t('The first {count} matches.', { count: all.length })
            : tn(all.length, '{count} match.', '{count} matches.'),
      )
    } catch (error) {
      if (mine === asked.current) setSays(errorText(error))
    }
  }

  return (
    <form
      role="search"
      className="player-search"
      onSubmit={(event) => {
        event.preventDefault()
        void look(input.current?.value.trim() ?? '')
      }}
    >
      <div className="with-button">
        <input
          ref={input}
          type="search"
          aria-label={t('Text in the recording')}
          placeholder={t('Text in the recording')}
          maxLength={200}
        />
        <Button type="submit" kind="quiet">
          {t('Search')}
        </Button>
      </div>
      <p className="facts" role="status">
        {says}
      </p>
      {found && found.length > 0 && (
        <ul className="finds" aria-label={t('Matches in the recording')} tabIndex={0}>
          {found.map((one, at) => (
            <li key={at}>
              <button type="button" className="find" onClick={() => go(one.time_ms)}>
                <span className="player-time">{clock(one.time_ms)}</span>
                <code>
                  {one.before}
                  <mark>{one.text}</mark>
                  {one.after}
                </code>
              </button>
            </li>
          ))}
        </ul>
      )}
    </form>
  )
}
