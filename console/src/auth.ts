// The sign-in of this browser: the token, and nothing else. It is in sessionStorage, or in localStorage when
// the person asked to stay signed in. Then each window also keeps its own, because windows may be in different
// namespaces. It is sent in a header and never appears in a URL. This file also holds two small values of the
// tab: a sentence for the next page, and the name of an account that is not confirmed yet.
const tokenKey = 'hawser.token'
const windowKey = 'hawser.window-token'
const noteKey = 'hawser.note'

type Why = 'ended' | 'asked'
let changed: (why: Why) => void = () => {}

interface Claims {
  readonly sid?: string
  readonly tenant?: string
}

/** What a token says; nothing if it cannot be read. */
export function claimsOf(token: string): Claims {
  try {
    const [, claims = ''] = token.split('.')
    return JSON.parse(atob(claims.replaceAll('-', '+').replaceAll('_', '/'))) as Claims
  } catch {
    return {}
  }
}

export const auth = {
  token(): string {
    const newest = localStorage.getItem(tokenKey)
    const alone = sessionStorage.getItem(tokenKey)
    if (alone !== null || newest === null) return alone ?? ''
    const own = sessionStorage.getItem(windowKey)
    // One of an earlier sign-in does not count any more.
    if (own !== null && claimsOf(own).sid === claimsOf(newest).sid) return own
    sessionStorage.setItem(windowKey, newest)
    return newest
  },
  /** `stay`: also after this tab is closed. By default a fresh token replaces the old one where it is. */
  save({ token }: { token: string }, stay = localStorage.getItem(tokenKey) !== null): void {
    const [storage, other] = stay ? [localStorage, sessionStorage] : [sessionStorage, localStorage]
    other.removeItem(tokenKey)
    storage.setItem(tokenKey, token)
    if (stay) sessionStorage.setItem(windowKey, token)
  },
  /** Gives the window the token that another window saved last. False: there is no other one than its own. */
  takeNewest(): boolean {
    const newest = localStorage.getItem(tokenKey)
    if (newest === null || auth.token() === newest) return false
    sessionStorage.removeItem(windowKey)
    return auth.token() === newest
  },
  clear(): void {
    sessionStorage.removeItem(windowKey)
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
      if (event.key !== tokenKey || event.newValue !== null || auth.token() !== '') return
      sessionStorage.removeItem(windowKey)
      listen('ended')
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
