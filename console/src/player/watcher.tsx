// A live session of somebody: first the screen as it is, then all further output. A watcher with permission
// from the person of the session can type in it, too. The page retries a lost connection with growing delays, and
// shows when the session has ended.
import { useEffect, useRef, useState, type KeyboardEvent } from 'react'
import { ApiError } from '@hawser/contract/client'
import type { InvitationMode } from '@hawser/contract/session-invitations'
import type { LiveMessage, ParticipantMessage, Presence } from '@hawser/contract/sharing'
import { Closing } from '@hawser/contract/terminals'
import { api, queryClient } from '../api.ts'
import { errorText } from '../error-text.ts'
import { bytesOfKey } from './keys.ts'
import { openReadOnlyScreen } from './read-only-screen.ts'
import { SharingPanel } from './sharing-panel.tsx'
import { openTerminalSocket, type TerminalSocket } from '../terminal/terminal-socket.ts'
import { msg, t } from '../language/language.ts'

const first_ms = 1_000
const last_ms = 15_000

interface WatcherProps {
  uid: string
  /** The person is away, and may come back. */
  held?: boolean
  /** For guests who see nothing before they are allowed to type. */
  join?: boolean
  /** For invited guests. */
  invitation?: { readonly token: string; readonly mode: InvitationMode }
}

export default function Watcher({ uid, held = false, join = false, invitation }: WatcherProps) {
  const token = invitation?.token
  const place = useRef<HTMLDivElement>(null)
  const socket = useRef<TerminalSocket<ParticipantMessage>>(undefined)
  const [says, setSays] = useState(() => t('Connecting …'))
  const [note, setNote] = useState('')
  const [presence, setPresence] = useState<Presence>()
  useEffect(() => {
    const screen = openReadOnlyScreen(place.current!)
    const watch = new ResizeObserver(() => screen.fit())
    watch.observe(place.current!.parentElement!)
    let timer: ReturnType<typeof setTimeout> | undefined
    let wait_ms = first_ms
    let gone = false

    function again(): void {
      if (gone) return
      setPresence(undefined)
      setSays(t('Connection lost; reconnecting …'))
      timer = setTimeout(() => void connect(), wait_ms)
      wait_ms = Math.min(last_ms, wait_ms * 2)
      // The session may be over by now.
      void queryClient.invalidateQueries({ queryKey: ['in'] })
    }

    async function connect(): Promise<void> {
      // A ticket works once: each attempt needs a new one.
      const ask = join ? api.sessions.join : api.sessions.ticket
      let ticket: string
      try {
        const asked =
          token === undefined ? ask({ params: { uid } }) : api.sessions.acceptInvitation({ body: { token } })
        ticket = (await asked).body.token
      } catch (error) {
        // A person without the right need not try again.
        const isFinal = error instanceof ApiError && (error.status === 403 || error.status === 404)
        if (!isFinal) return again()
        if (!gone) setSays(errorText(error))
        return
      }
      if (gone) return
      socket.current = openTerminalSocket<ParticipantMessage, LiveMessage>(
        `/api/sessions/${uid}/live`,
        { ticket },
        {
          output: (bytes) => screen.write(bytes),
          news(news) {
            if (news.kind === 'present') {
              setPresence(news)
              setNote('')
              setSays('')
            } else if (news.kind === 'note') setNote(t(news.message))
            else if (news.kind === 'resize') screen.resize(news)
            else {
              screen.reset(news)
              wait_ms = first_ms
              setSays('')
            }
          },
          closed(code, sentence) {
            if (code !== Closing.done) return again()
            if (gone) return
            setPresence(undefined)
            setSays(sentence || t('The session is over.'))
            void queryClient.invalidateQueries({ queryKey: ['in'] })
          },
        },
      )
    }
    void connect()
    return () => {
      gone = true
      clearTimeout(timer)
      watch.disconnect()
      socket.current?.close()
      screen.dispose()
    }
  }, [uid, join, token])

  const say = (message: ParticipantMessage) => socket.current?.say(message)
  const type = (text: string) => socket.current?.type(text)
  const own = presence?.people.find(({ id }) => id === presence.you)
  const mayType = own?.state === 'typing'
  const onKey = (event: KeyboardEvent) => {
    // Shift and Tab leave the terminal, for people without a mouse.
    if (!mayType || event.nativeEvent.isComposing || (event.key === 'Tab' && event.shiftKey)) return
    const text = bytesOfKey(event)
    if (text === undefined) return
    event.preventDefault()
    type(text)
  }
  return (
    <div className="player">
      <div className="watch-bar">
        <p className="facts" role="status">
          {says || note || t(sentences[own?.state ?? 'watching'])}
        </p>
        {presence && own && (
          <SharingPanel presence={presence} held={held} say={say} mayAsk={invitation?.mode !== 'watch'} />
        )}
      </div>
      <div
        className="screen-room"
        tabIndex={0}
        role="region"
        aria-label={
          mayType ? t('The terminal; what you type goes to the session') : t('Current terminal output')
        }
        onKeyDown={onKey}
        onPaste={(event) => {
          if (!mayType) return
          event.preventDefault()
          type(event.clipboardData.getData('text').replaceAll(/\r?\n/g, '\r'))
        }}
      >
        <div className="screen" ref={place} />
      </div>
    </div>
  )
}

const sentences = {
  watching: msg('You are only watching: what you type is not sent.'),
  asking: msg('You asked to type. Waiting for the session’s owner to allow it.'),
  typing: msg('Click on the terminal and type. Shift and Tab leave it.'),
} as const
