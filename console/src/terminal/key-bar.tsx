// Keys that the keyboards of phones do not have. They take no focus, so that the phone's own
// keyboard stays open.
import { useSyncExternalStore } from 'react'
import type { ExtraKey, Modifier, Screen } from './screen.ts'
import { msg, t } from '../language/language.ts'

const touch = matchMedia('(pointer: coarse)')

export function useTouch(): boolean {
  return useSyncExternalStore(
    (tell) => {
      touch.addEventListener('change', tell)
      return () => touch.removeEventListener('change', tell)
    },
    () => touch.matches,
  )
}

const modifiers: readonly (readonly [Modifier, string])[] = [
  ['ctrl', 'Ctrl'],
  ['alt', 'Alt'],
]
const before: readonly (readonly [ExtraKey, string, string])[] = [
  ['escape', 'Esc', 'Esc'],
  ['tab', 'Tab', 'Tab'],
]
const after: readonly (readonly [ExtraKey, string, string])[] = [
  ['left', '←', msg('Left')],
  ['up', '↑', msg('Up')],
  ['down', '↓', msg('Down')],
  ['right', '→', msg('Right')],
  ['home', 'Home', 'Home'],
  ['end', 'End', 'End'],
  ['pageUp', 'PgUp', 'PgUp'],
  ['pageDown', 'PgDn', 'PgDn'],
]
const letters = ['|', '/', '~', '-', '_', '*', '$', '&'] as const

interface KeyBarProps {
  screen: () => Screen | undefined
  held: Modifier | undefined
  hold: (modifier: Modifier | undefined) => void
}

export function KeyBar({ screen, held, hold }: KeyBarProps) {
  const key = (text: string, name: string, act: () => void, pressed?: boolean) => (
    <button
      key={name}
      type="button"
      className="key"
      aria-label={name}
      aria-pressed={pressed}
      onPointerDown={(event) => event.preventDefault()}
      onClick={act}
    >
      {text}
    </button>
  )
  const press = ([name, text, label]: readonly [ExtraKey, string, string]) =>
    key(text, t(label), () => screen()?.press(name))
  return (
    <div className="key-bar" role="toolbar" aria-label={t('Keys')}>
      {before.map(press)}
      {modifiers.map(([name, text]) =>
        key(text, text, () => hold(held === name ? undefined : name), held === name),
      )}
      {after.map(press)}
      {letters.map((letter) => key(letter, letter, () => screen()?.type(letter)))}
    </div>
  )
}
