// The theme: light, dark or the system's. The choice is in localStorage; the root element carries the result,
// so that the styles have two cases only.
export const themes = ['system', 'light', 'dark'] as const
export type Theme = (typeof themes)[number]

const key = 'hawser.theme'
const dark = matchMedia('(prefers-color-scheme: dark)')

export function chosenTheme(): Theme {
  return themes.find((theme) => theme === localStorage.getItem(key)) ?? 'system'
}

function show(): void {
  const chosen = chosenTheme()
  document.documentElement.dataset['theme'] = chosen === 'system' ? (dark.matches ? 'dark' : 'light') : chosen
}

export function chooseTheme(theme: Theme): void {
  localStorage.setItem(key, theme)
  show()
  for (const hear of listeners) hear()
}

const listeners = new Set<() => void>()

/** Returns a function that ends it. */
export function onTheme(hear: () => void): () => void {
  listeners.add(hear)
  return () => void listeners.delete(hear)
}

export function startTheme(): void {
  show()
  dark.addEventListener('change', show)
}
