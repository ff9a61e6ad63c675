// A live session of somebody: first the screen as it is, then all further output. Whoever is allowed to by the person
// of the session types in it, too. It retries a lost connection with growing delays, and shows when the session has
// ended.
import { useEffect, useRef, useState, type KeyboardEvent } from 'react'
import { ApiError } from '@hawser/contract/client'
import type { InvitationMode } from '@hawser/contract/session-invitations'
import type { LiveMessage, ParticipantMessage, Presence } from '@hawser/contract/sharing'
import { api, queryClient } from '../api.ts'
import { errorText } from '../error-text.ts'
import { bytesOfKey } from './keys.ts'
import { openReadOnlyScreen } from './read-only-screen.ts'
import { SharingPanel } from './sharing-panel.tsx'
import { msg, t } from '../language/language.ts'

const first_ms = 1_000
const last_ms = 15_000
/** The close code of the server when the session has ended. */
const over = 1000

interface WatcherProps {
  uid: string
  /** Its person is away, and may come back. */
  held?: boolean
  /** For those who see nothing before they are allowed to type. */
  join?: boolean
  /** For those who were invited. */
  invitation?: { readonly token: string; readonly mode: InvitationMode }
}

export default function Watcher({ uid, held = false, join = false, invitation }: WatcherProps) {
  const token = invitation?.token
  const place = useRef<HTMLDivElement>(null)
  const socket = useRef<WebSocket>(undefined)
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
      setSays(t('The connection was lost; retrying …'))
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
        // Whoever may not, or not any more, need not try again.
        const isFinal = error instanceof ApiError && (error.status === 403 || error.status === 404)
        if (!isFinal) return again()
        if (!gone) setSays(errorText(error))
        return
      }
      if (gone) return
      const at = new URL(`/api/sessions/${uid}/live`, location.href)
      at.protocol = location.protocol === 'https:' ? 'wss:' : 'ws:'
      at.searchParams.set('ticket', ticket)
      let ended = ''
      const opened = new WebSocket(at)
      socket.current = opened
      opened.binaryType = 'arraybuffer'
      opened.addEventListener('message', ({ data }: MessageEvent<string | ArrayBuffer>) => {
        if (typeof data !== 'string') return screen.write(new Uint8Array(data))
        const said = JSON.parse(data) as LiveMessage
        if (said.kind === 'end') ended = t(said.message)
        else if (said.kind === 'present') {
          setPresence(said)
          setNote('')
          setSays('')
        } else if (said.kind === 'note') setNote(t(said.message))
        else if (said.kind === 'resize') screen.resize(said)
        else {
          screen.reset(said)
          wait_ms = first_ms
          setSays('')
        }
      })
      opened.addEventListener('close', ({ code }) => {
        if (code !== over) return again()
        if (gone) return
        setPresence(undefined)
        setSays(ended ? t(ended) : t('The session is over.'))
        void queryClient.invalidateQueries({ queryKey: ['in'] })
      })
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

  const say = (message: ParticipantMessage) => send(JSON.stringify(message))
  const send = (message: string | BufferSource) => {
    if (socket.current?.readyState === WebSocket.OPEN) socket.current.send(message)
  }
  const type = (text: string) => send(new TextEncoder().encode(text))
  const own = presence?.people.find(({ id }) => id === presence.you)
  const mayType = own?.state === 'typing'
  const onKey = (event: KeyboardEvent) => {
    // Shift and Tab leave the terminal, for those who have no mouse.
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
          mayType ? t('The terminal; what you type goes to the session') : t('What the terminal shows now')
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
  watching: msg('You watch only: what you type goes nowhere.'),
  asking: msg('The person of the session was asked whether you may type.'),
  typing: msg('Click on the terminal and type. Shift and Tab leave it.'),
} as const
