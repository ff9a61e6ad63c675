// Which language the page is in: the one that the person chose, which is in localStorage, or the first of the
// browser's that the console has. Its catalogue is fetched before the first page is shown; English needs none.
import { language, languageOf, languages, setLanguage, type Catalogue, type Language } from './language.ts'

export const languageNames: Readonly<Record<Language, string>> = { en: 'English', de: 'Deutsch' }

const key = 'hawser.language'
const catalogues: Readonly<Record<Exclude<Language, 'en'>, () => Promise<Catalogue>>> = {
  de: async () => (await import('./de/index.ts')).de,
}

/** Undefined: from the browser. */
export const chosenLanguage = (): Language | undefined => languageOf(localStorage.getItem(key))

/** Loads the page again, because every text changes. */
export function chooseLanguage(wanted: Language | undefined): void {
  if (wanted === undefined) localStorage.removeItem(key)
  else localStorage.setItem(key, wanted)
  location.reload()
}

/** Languages other than the page's. */
export const otherLanguages = (): Language[] => languages.filter((one) => one !== language())

/** Await it before the first page is shown. A catalogue that does not load gives way to English. */
export async function startLanguage(): Promise<void> {
  const wanted = chosenLanguage() ?? navigator.languages.map(languageOf).find((one) => one !== undefined)
  if (wanted !== undefined && wanted !== 'en') {
    const catalogue = await catalogues[wanted]().catch(() => undefined)
    if (catalogue) setLanguage(wanted, catalogue)
  }
  document.documentElement.lang = language()
}
