// Watching a session while it goes on: the screen as it is, then everything that comes. What is typed here
// goes nowhere. A lost connection is tried again, ever more slowly; the end of the session is said.
import { useEffect, useRef, useState } from 'react'
import { api, queries } from '../api.ts'
import { openScreen, type Size } from './screen.ts'

type Said = ({ kind: 'screen' | 'resize' } & Size) | { kind: 'end'; message: string }

const first_ms = 1_000
const last_ms = 15_000
/** How the server ends a watching that is over. */
const over = 1000

export default function Watcher({ uid }: { uid: string }) {
  const place = useRef<HTMLDivElement>(null)
  const [says, setSays] = useState('Connecting …')
  useEffect(() => {
    const screen = openScreen(place.current!)
    const watch = new ResizeObserver(() => screen.fit())
    watch.observe(place.current!.parentElement!)
    let socket: WebSocket | undefined
    let timer: ReturnType<typeof setTimeout> | undefined
    let wait_ms = first_ms
    let gone = false

    function again(): void {
      if (gone) return
      setSays('The connection was lost; trying again …')
      timer = setTimeout(() => void connect(), wait_ms)
      wait_ms = Math.min(last_ms, wait_ms * 2)
      // The session may be over by now.
      void queries.invalidateQueries({ queryKey: ['in'] })
    }

    async function connect(): Promise<void> {
      // Good once: each attempt needs its own.
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
        void queries.invalidateQueries({ queryKey: ['in'] })
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
