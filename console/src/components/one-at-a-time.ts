// One act at a time: forms and buttons ignore a second press until the first has its answer, so that a
// double click creates one thing.
import { useRef, useState } from 'react'

/** Returns a promise if there is something to wait for. */
export type Act = () => unknown

/** Whether an act runs, and a function that runs one unless another does. */
export function useOneAtATime(): readonly [boolean, (act: Act) => void] {
  const running = useRef(false)
  const [busy, setBusy] = useState(false)
  const run = (act: Act): void => {
    if (running.current) return
    const doing = act()
    if (!(doing instanceof Promise)) return
    running.current = true
    setBusy(true)
    void doing.finally(() => {
      running.current = false
      setBusy(false)
    })
  }
  return [busy, run]
}
