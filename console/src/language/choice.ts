// Which language the page is in: the one that the person chose, which is in localStorage, or the first of the
// browser's that the console has. Its catalogue is fetched before the first page is shown; English needs none.
import { language, languageOf, languages, setLanguage, type Catalogue, type Language } from './language.ts'

/** Each language in its own words. */
export const languageNames: Readonly<Record<Language, string>> = { en: 'English', de: 'Deutsch' }

const key = 'hawser.language'
const catalogues: Readonly<Record<Exclude<Language, 'en'>, () => Promise<Catalogue>>> = {
  de: async () => (await import('./de/index.ts')).de,
}

/** What the person chose, or undefined for what the browser says. */
export const chosenLanguage = (): Language | undefined => languageOf(localStorage.getItem(key))

/** A choice loads the page again: every text of it changes. */
export function chooseLanguage(wanted: Language | undefined): void {
  if (wanted === undefined) localStorage.removeItem(key)
  else localStorage.setItem(key, wanted)
  location.reload()
}

/** The languages that the page is not in. */
export const otherLanguages = (): Language[] => languages.filter((one) => one !== language())

/** To be awaited before the first page is shown. A language whose catalogue does not load gives way to English. */
export async function startLanguage(): Promise<void> {
  const wanted = chosenLanguage() ?? navigator.languages.map(languageOf).find((one) => one !== undefined)
  if (wanted !== undefined && wanted !== 'en') {
    const catalogue = await catalogues[wanted]().catch(() => undefined)
    if (catalogue) setLanguage(wanted, catalogue)
  }
  document.documentElement.lang = language()
}
