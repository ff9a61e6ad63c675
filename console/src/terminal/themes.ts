// The colours of terminals. A terminal is dark by itself, whatever the page around it is; who wants it
// otherwise chooses. xterm keeps a contrast of 4.5 whatever a program does with these.
import type { ITheme } from '@xterm/xterm'
import { msg } from '../language/language.ts'

export const themeNames = ['night', 'black', 'dusk', 'day', 'page'] as const
export type ThemeName = (typeof themeNames)[number]

export const themeWords: Readonly<Record<ThemeName, string>> = {
  night: msg('Night'),
  black: msg('Black, high contrast'),
  dusk: msg('Dusk'),
  day: msg('Day'),
  page: msg('Same as the page'),
}

const night: ITheme = {
  background: '#0a151a',
  foreground: '#e2ebef',
  cursor: '#f0d6a6',
  cursorAccent: '#0a151a',
  selectionBackground: '#2c5566',
  black: '#1c2d35',
  red: '#f29a90',
  green: '#62c598',
  yellow: '#e3b869',
  blue: '#7fb4e8',
  magenta: '#d0a2e0',
  cyan: '#7cc7dc',
  white: '#c9d6db',
  brightBlack: '#7f949e',
  brightRed: '#ffb8af',
  brightGreen: '#8fdcb6',
  brightYellow: '#f3d294',
  brightBlue: '#a9cff5',
  brightMagenta: '#e4c3ef',
  brightCyan: '#a5dbea',
  brightWhite: '#ffffff',
}

const day: ITheme = {
  background: '#fbfdfd',
  foreground: '#14262f',
  cursor: '#0b5c7a',
  cursorAccent: '#fbfdfd',
  selectionBackground: '#b9dbe6',
  black: '#14262f',
  red: '#a62b20',
  green: '#1a7049',
  yellow: '#7a5109',
  blue: '#1c5aa0',
  magenta: '#7b3a94',
  cyan: '#0b5c7a',
  white: '#5c6f79',
  brightBlack: '#4d606a',
  brightRed: '#c0392b',
  brightGreen: '#23865a',
  brightYellow: '#8f6210',
  brightBlue: '#2a6fbf',
  brightMagenta: '#9148ad',
  brightCyan: '#107596',
  brightWhite: '#14262f',
}

const black: ITheme = {
  ...night,
  background: '#000000',
  foreground: '#ffffff',
  cursor: '#ffd75f',
  cursorAccent: '#000000',
  selectionBackground: '#1f5f7f',
  black: '#1c1c1c',
  white: '#e4e4e4',
}

const dusk: ITheme = {
  ...night,
  background: '#2a2433',
  foreground: '#ece3f0',
  cursor: '#ffb38a',
  cursorAccent: '#2a2433',
  selectionBackground: '#574a6b',
  black: '#3a3246',
  blue: '#9bb8f5',
  white: '#d6cbe0',
}

const all = { night, black, dusk, day } as const

export function themeOf(name: ThemeName): ITheme {
  if (name !== 'page') return all[name]
  return document.documentElement.dataset['theme'] === 'dark' ? night : day
}
