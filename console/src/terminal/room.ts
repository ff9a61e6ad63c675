// The room of the workplace: from where it begins to the lower edge of the window. When a phone shows its
// keyboard, which covers the page and does not shrink it, the workplace takes exactly what is left to see, so
// that the prompt stays above the keyboard.
import { useEffect, type RefObject } from 'react'

const least_pixels = 320
const below_pixels = 16
/** If more is missing at the bottom, it is a keyboard, not a bar of the browser. */
const keyboard_pixels = 120

export function useRoom(element: RefObject<HTMLElement | null>): void {
  useEffect(() => {
    const place = element.current!
    const fit = (): void => {
      const seen = window.visualViewport
      const missing = seen && Math.abs(seen.scale - 1) < 0.05 ? innerHeight - seen.height : 0
      const covered = missing > keyboard_pixels
      place.classList.toggle('over-keyboard', covered)
      if (covered) {
        place.style.top = `${seen!.offsetTop}px`
        place.style.height = `${seen!.height}px`
        return
      }
      const top = place.getBoundingClientRect().top + scrollY
      place.style.removeProperty('top')
      place.style.height = `${Math.max(least_pixels, innerHeight - top - below_pixels)}px`
    }
    fit()
    const watching = new ResizeObserver(fit)
    watching.observe(document.body)
    addEventListener('resize', fit)
    const seen = window.visualViewport
    seen?.addEventListener('resize', fit)
    seen?.addEventListener('scroll', fit)
    return () => {
      watching.disconnect()
      removeEventListener('resize', fit)
      seen?.removeEventListener('resize', fit)
      seen?.removeEventListener('scroll', fit)
    }
  }, [element])
}
