// The sign-in of this browser: the token, and nothing else. It is in sessionStorage, or in localStorage when
// the person asked to stay signed in. It is sent in a header and never appears in a URL. This file also holds
// two small values of the tab: a sentence for the next page, and the name of an account that is not confirmed
// yet.
const tokenKey = 'hawser.token'
const noteKey = 'hawser.note'

type Why = 'ended' | 'asked'
let changed: (why: Why) => void = () => {}

export const auth = {
  token: (): string => sessionStorage.getItem(tokenKey) ?? localStorage.getItem(tokenKey) ?? '',
  /** `stay`: also after this tab is closed. By default a fresh token replaces the old one where it is. */
  save({ token }: { token: string }, stay = localStorage.getItem(tokenKey) !== null): void {
    const [storage, other] = stay ? [localStorage, sessionStorage] : [sessionStorage, localStorage]
    other.removeItem(tokenKey)
    storage.setItem(tokenKey, token)
  },
  clear(): void {
    sessionStorage.removeItem(tokenKey)
    localStorage.removeItem(tokenKey)
  },
  /**
   * Signs out, with a sentence for the sign-in page. `why`: the person asked for it, or the sign-in ended.
   */
  signOut(sentence: string, why: Why = 'asked'): void {
    auth.clear()
    flash.set(sentence)
    changed(why)
  },
  /** Registers the listener for a sign-out, in this tab or in another one that shares the sign-in. */
  onSignedOut(listen: (why: Why) => void): void {
    changed = listen
    addEventListener('storage', (event) => {
      if (event.key === tokenKey && event.newValue === null && auth.token() === '') listen('ended')
    })
  },
}

/** A sentence that the next page shows once. */
export const flash = {
  set: (sentence: string): void => sessionStorage.setItem(noteKey, sentence),
  take(): string {
    const sentence = sessionStorage.getItem(noteKey) ?? ''
    sessionStorage.removeItem(noteKey)
    return sentence
  },
}

const nameKey = 'hawser.unconfirmed'
/** The name of an account that waits for its confirmation e-mail, for the page that sends it again. */
export const unconfirmed = {
  save: (name: string): void => sessionStorage.setItem(nameKey, name),
  name: (): string => sessionStorage.getItem(nameKey) ?? '',
}
