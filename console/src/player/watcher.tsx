// Watches a live session: first the screen as it is, then all further output. It is read-only. It retries a
// lost connection with growing delays, and shows when the session has ended.
import { useEffect, useRef, useState } from 'react'
import { api, queryClient } from '../api.ts'
import { openReadOnlyScreen, type Size } from './read-only-screen.ts'

type Said = ({ kind: 'screen' | 'resize' } & Size) | { kind: 'end'; message: string }

const first_ms = 1_000
const last_ms = 15_000
/** The close code of the server when the session has ended. */
const over = 1000

export default function Watcher({ uid }: { uid: string }) {
  const place = useRef<HTMLDivElement>(null)
  const [says, setSays] = useState('Connecting …')
  useEffect(() => {
    const screen = openReadOnlyScreen(place.current!)
    const watch = new ResizeObserver(() => screen.fit())
    watch.observe(place.current!.parentElement!)
    let socket: WebSocket | undefined
    let timer: ReturnType<typeof setTimeout> | undefined
    let wait_ms = first_ms
    let gone = false

    function again(): void {
      if (gone) return
      setSays('The connection was lost; retrying …')
      timer = setTimeout(() => void connect(), wait_ms)
      wait_ms = Math.min(last_ms, wait_ms * 2)
      // The session may be over by now.
      void queryClient.invalidateQueries({ queryKey: ['in'] })
    }

    async function connect(): Promise<void> {
      // A ticket works once: each attempt needs a new one.
      const ticket = await api.sessions.ticket({ params: { uid } }).then(
        ({ body }) => body.token,
        () => undefined,
      )
      if (ticket === undefined) return again()
      if (gone) return
      const at = new URL(`/api/sessions/${uid}/live`, location.href)
      at.protocol = location.protocol === 'https:' ? 'wss:' : 'ws:'
      at.searchParams.set('ticket', ticket)
      let ended = ''
      socket = new WebSocket(at)
      socket.binaryType = 'arraybuffer'
      socket.addEventListener('message', ({ data }: MessageEvent<string | ArrayBuffer>) => {
        if (typeof data !== 'string') return screen.write(new Uint8Array(data))
        const said = JSON.parse(data) as Said
        if (said.kind === 'end') ended = said.message
        else if (said.kind === 'resize') screen.resize(said)
        else {
          screen.reset(said)
          wait_ms = first_ms
          setSays('')
        }
      })
      socket.addEventListener('close', ({ code }) => {
        if (code !== over) return again()
        if (gone) return
        setSays(ended || 'The session is over.')
        void queryClient.invalidateQueries({ queryKey: ['in'] })
      })
    }
    void connect()
    return () => {
      gone = true
      clearTimeout(timer)
      watch.disconnect()
      socket?.close()
      screen.dispose()
    }
  }, [uid])
  return (
    <div className="player">
      <div className="screen-room" tabIndex={0} role="region" aria-label="What the terminal shows now">
        <div className="screen" ref={place} />
      </div>
      <p className="facts" role="status">
        {says || 'You watch only: what you type goes nowhere.'}
      </p>
    </div>
  )
}
