// Which rows of a long table are on the screen. The window scrolls, not the table, so that a phone has one
// direction to scroll in; rows outside of the screen are not rendered, and take their room by two empty rows.
import { useEffect, useState, type RefObject } from 'react'

/** Extra rows above and below the screen, so that scrolling shows no gap. */
const extra = 8

export interface Shown {
  readonly first: number
  readonly last: number
}

export function useShownRows(body: RefObject<HTMLElement | null>, height: number, total: number): Shown {
  const [shown, setShown] = useState<Shown>({ first: 0, last: 40 })
  useEffect(() => {
    const look = () => {
      const top = body.current?.getBoundingClientRect().top ?? 0
      const first = Math.max(0, Math.floor(-top / height) - extra)
      const last = Math.ceil((innerHeight - top) / height) + extra
      setShown((before) => (before.first === first && before.last === last ? before : { first, last }))
    }
    look()
    addEventListener('scroll', look, { passive: true })
    addEventListener('resize', look)
    return () => {
      removeEventListener('scroll', look)
      removeEventListener('resize', look)
    }
  }, [body, height, total])
  return { first: Math.min(shown.first, Math.max(0, total - 1)), last: Math.min(shown.last, total - 1) }
}
