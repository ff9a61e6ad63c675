// Who is signed in, as far as this browser knows: the token, and nothing else, kept in the storage of this
// tab, or in the browser's when the person asked to stay signed in. It is sent in a header and never stands
// in an address. Also kept here for one tab: a sentence for the page that comes next, and what the link of a
// letter has brought.
const tokenKey = 'hawser.token'
const noteKey = 'hawser.note'

let changed: () => void = () => {}

export const session = {
  token: (): string => sessionStorage.getItem(tokenKey) ?? localStorage.getItem(tokenKey) ?? '',
  /** `stay`: also after this tab is closed. Unsaid, a fresh token takes the place of the old one. */
  keep({ token }: { token: string }, stay = localStorage.getItem(tokenKey) !== null): void {
    const [storage, other] = stay ? [localStorage, sessionStorage] : [sessionStorage, localStorage]
    other.removeItem(tokenKey)
    storage.setItem(tokenKey, token)
  },
  forget(): void {
    sessionStorage.removeItem(tokenKey)
    localStorage.removeItem(tokenKey)
  },
  /** Signs out with a sentence, and lets the page go to where one signs in. */
  end(sentence: string): void {
    session.forget()
    note.leave(sentence)
    changed()
  },
  /** Called when the sign-in has ended, here or in another tab that shares it. */
  onEnd(listen: () => void): void {
    changed = listen
    addEventListener('storage', (event) => {
      if (event.key === tokenKey && event.newValue === null && session.token() === '') listen()
    })
  },
}

export const note = {
  leave: (sentence: string): void => sessionStorage.setItem(noteKey, sentence),
  take(): string {
    const sentence = sessionStorage.getItem(noteKey) ?? ''
    sessionStorage.removeItem(noteKey)
    return sentence
  },
}

/** The pages that letters and the first start lead to, and what their links bring. */
const links: Readonly<Record<string, readonly string[]>> = {
  '/setup': ['code'],
  '/validation-account': ['email', 'token'],
  '/update-password': ['id', 'token'],
  '/reset-mfa': ['id'],
  '/confirm-email': ['token'],
  '/undo-change': ['token'],
}

/** Takes what a link brought out of the address at once; it stays with the tab, so that a reload works. */
export function takeLink(): void {
  const page = location.pathname.replace(/(.)\/$/, '$1')
  const names = links[page]
  const query = new URLSearchParams(location.search)
  if (!names?.some((name) => query.has(name))) return
  sessionStorage.setItem(
    `hawser.link${page}`,
    JSON.stringify(Object.fromEntries(names.map((name) => [name, query.get(name) ?? '']))),
  )
  history.replaceState(null, '', page)
}

export function broughtTo(page: string): Readonly<Record<string, string>> {
  return JSON.parse(sessionStorage.getItem(`hawser.link${page}`) ?? '{}') as Record<string, string>
}

export function forgetLink(page: string): void {
  sessionStorage.removeItem(`hawser.link${page}`)
}

const nameKey = 'hawser.unconfirmed'
/** The name that waits for its letter, for the page that can send it again. */
export const unconfirmed = {
  keep: (name: string): void => sessionStorage.setItem(nameKey, name),
  name: (): string => sessionStorage.getItem(nameKey) ?? '',
}
