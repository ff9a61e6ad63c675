// The sign-in of this browser: the token, and nothing else. It is in sessionStorage, or in localStorage when
// the person asked to stay signed in. Then each window also keeps its own, because windows may be in different
// namespaces; a token that ends with the membership in one leaves windows in others signed in. The token is
// sent in a header and never appears in a URL. This file also holds two small values of the tab: a sentence
// for the next page, and the name of an account that is not confirmed yet.
const tokenKey = 'hawser.token'
/** The namespace of the token that ended last; absent: the person signed out. */
const endedKey = 'hawser.ended-namespace'
const windowKey = 'hawser.window-token'
const noteKey = 'hawser.note'

type Why = 'ended' | 'asked'
let changed: (why: Why) => void = () => {}

interface Claims {
  readonly sid?: string
  readonly tenant?: string
}

/** Empty if the token cannot be read. */
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
    // A token of an earlier sign-in no longer counts.
    if (own !== null && claimsOf(own).sid === claimsOf(newest).sid) return own
    sessionStorage.setItem(windowKey, newest)
    return newest
  },
  /** `stay`: also after this tab is closed. By default a fresh token stays where the old one was. */
  save({ token }: { token: string }, stay = localStorage.getItem(tokenKey) !== null): void {
    const [storage, other] = stay ? [localStorage, sessionStorage] : [sessionStorage, localStorage]
    other.removeItem(tokenKey)
    storage.setItem(tokenKey, token)
    if (stay) sessionStorage.setItem(windowKey, token)
  },
  /** Gives this window the token that another window saved last. False: it has that one already. */
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
  /** `why`: the person signed out, or the sign-in ended. */
  signOut(sentence: string, why: Why = 'asked'): void {
    // Other windows read it when the token is gone.
    if (why === 'ended') localStorage.setItem(endedKey, claimsOf(auth.token()).tenant ?? '')
    else localStorage.removeItem(endedKey)
    auth.clear()
    flash.set(sentence)
    changed(why)
  },
  /** In this tab or in another one that shares the sign-in. */
  onSignedOut(listen: (why: Why) => void): void {
    changed = listen
    addEventListener('storage', (event) => {
      if (event.key !== tokenKey || event.newValue !== null || auth.token() !== '') return
      if (staysSignedIn(event.oldValue ?? '')) return
      sessionStorage.removeItem(windowKey)
      listen('ended')
    })
  },
}

/**
 * Whether this window stays signed in when the token of another one has ended: that was a token for another
 * namespace, which may have ended with the membership there. If the whole sign-in has ended, the next call
 * reports it.
 */
function staysSignedIn(removed: string): boolean {
  const own = sessionStorage.getItem(windowKey)
  const ended = localStorage.getItem(endedKey)
  if (own === null || ended === null || claimsOf(own).tenant === ended) return false
  if (claimsOf(own).sid !== claimsOf(removed).sid) return false
  localStorage.setItem(tokenKey, own)
  return true
}

export const flash = {
  set: (sentence: string): void => sessionStorage.setItem(noteKey, sentence),
  take(): string {
    const sentence = sessionStorage.getItem(noteKey) ?? ''
    sessionStorage.removeItem(noteKey)
    return sentence
  },
}

const nameKey = 'hawser.unconfirmed'
/** For the page that sends the confirmation e-mail again. */
export const unconfirmed = {
  save: (name: string): void => sessionStorage.setItem(nameKey, name),
  name: (): string => sessionStorage.getItem(nameKey) ?? '',
}
