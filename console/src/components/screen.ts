// How wide the screen is, as tables tell it apart: a phone, a tablet, or anything larger.
import { useEffect, useState } from 'react'

type Screen = 'small' | 'medium' | 'large'

/**
 * The first is that of the style sheets; the second leaves a table of devices room for its tags next to the
 * navigation.
 */
const [small, medium] = [matchMedia('(max-width: 46rem)'), matchMedia('(max-width: 72rem)')]

export function useScreen(): Screen {
  const read = () => (small.matches ? 'small' : medium.matches ? 'medium' : 'large')
  const [screen, setScreen] = useState<Screen>(read)
  useEffect(() => {
    const look = () => setScreen(read)
    for (const query of [small, medium]) query.addEventListener('change', look)
    return () => {
      for (const query of [small, medium]) query.removeEventListener('change', look)
    }
  }, [])
  return screen
}
