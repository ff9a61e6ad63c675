// How a person likes terminals: colours, size of the letters, and habits. Kept in this browser.
import { useSyncExternalStore } from 'react'
import { themeNames, type ThemeName } from './themes.ts'

export interface Preferences {
  readonly theme: ThemeName
  readonly pixels: number
  /** A selection is copied at once. */
  readonly copyOnSelect: boolean
  /** On slow links, typed letters appear before their echo. */
  readonly predict: boolean
}

export const fontSizes = { least: 9, usual: 14, most: 28 } as const

const key = 'hawser.terminal'
const usual: Preferences = { theme: 'night', pixels: fontSizes.usual, copyOnSelect: false, predict: true }

function read(): Preferences {
  let kept: Partial<Record<keyof Preferences, unknown>>
  try {
    kept = (JSON.parse(localStorage.getItem(key) ?? '{}') ?? {}) as typeof kept
  } catch {
    kept = {}
  }
  const { theme, pixels, copyOnSelect, predict } = kept
  return {
    theme: themeNames.find((name) => name === theme) ?? usual.theme,
    pixels: typeof pixels === 'number' ? within(pixels) : usual.pixels,
    copyOnSelect: copyOnSelect === true,
    predict: predict !== false,
  }
}

const within = (pixels: number): number =>
  Math.round(Math.min(fontSizes.most, Math.max(fontSizes.least, pixels || fontSizes.usual)))

let now = read()
const listeners = new Set<() => void>()

export function prefer(change: Partial<Preferences>): void {
  now = { ...now, ...change, pixels: within(change.pixels ?? now.pixels) }
  localStorage.setItem(key, JSON.stringify(now))
  for (const tell of listeners) tell()
}

export function usePreferences(): Preferences {
  return useSyncExternalStore(
    (tell) => {
      listeners.add(tell)
      return () => listeners.delete(tell)
    },
    () => now,
  )
}
