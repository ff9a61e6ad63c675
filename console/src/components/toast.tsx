// Toasts: short messages that disappear by themselves. Screen readers read them without moving the focus.
// There is one at a time, the newest.
import { useSyncExternalStore } from 'react'

const shown_ms = 6000
let sentence = ''
let timer: ReturnType<typeof setTimeout> | undefined
const listeners = new Set<() => void>()

function set(next: string): void {
  sentence = next
  for (const listen of listeners) listen()
}

export function showToast(news: string): void {
  clearTimeout(timer)
  set(news)
  timer = setTimeout(() => set(''), shown_ms)
}

function listen(listener: () => void): () => void {
  listeners.add(listener)
  return () => listeners.delete(listener)
}

export function Toasts() {
  const news = useSyncExternalStore(listen, () => sentence)
  return (
    <p className="news" role="status" data-react-aria-top-layer="true">
      {news}
    </p>
  )
}
