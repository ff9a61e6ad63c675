// Parameters of links in e-mails and of the link that the server prints at its first start: tokens and codes.
// Each leaves the URL before anything is shown, so that it ends up in no history, and stays in the storage of
// the tab. The token of an invitation to a session is the fragment of its link, which no server is sent.
import { isPlace } from './safe-address.ts'

/** Page → parameters of its links. */
const links: Readonly<Record<string, readonly string[]>> = {
  '/setup': ['code'],
  '/validation-account': ['email', 'token'],
  '/update-password': ['id', 'token'],
  '/reset-mfa': ['id'],
  '/confirm-email': ['token'],
  '/undo-change': ['token'],
  '/pair': ['code'],
}

/** Moves the parameters of the URL to sessionStorage, so that a reload still works. */
export function captureLink(): void {
  const page = location.pathname.replace(/(.)\/$/, '$1')
  const [, token] = /^#(hw[in]_\w+)$/.exec(location.hash) ?? []
  if ((page === '/join' || page === '/invitation') && token !== undefined) {
    saveLink(page, { token })
    history.replaceState(null, '', page)
  }
  const names = links[page]
  const query = new URLSearchParams(location.search)
  if (!names?.some((name) => query.has(name))) return
  saveLink(page, Object.fromEntries(names.map((name) => [name, query.get(name) ?? ''])))
  history.replaceState(null, '', page)
}

/** As if a link with these parameters had led to the page. */
export function saveLink(page: string, params: Readonly<Record<string, string>>): void {
  sessionStorage.setItem(`hawser.link${page}`, JSON.stringify(params))
}

export function linkParams(page: string): Readonly<Record<string, string>> {
  return JSON.parse(sessionStorage.getItem(`hawser.link${page}`) ?? '{}') as Record<string, string>
}

export function clearLink(page: string): void {
  sessionStorage.removeItem(`hawser.link${page}`)
}

const placeKey = 'hawser.place'

/** For after the sign-in: the address that the person asked for, or at which the sign-in ended. */
export function keepPlace(href: string): void {
  if (isPlace(href) && href !== '/') sessionStorage.setItem(placeKey, href)
}

/**
 * After the sign-in: the page with the code of a device, if a link with one led here, else the stored
 * address. It counts once.
 */
export function landing(): string {
  const kept = sessionStorage.getItem(placeKey) ?? '/'
  sessionStorage.removeItem(placeKey)
  if (linkParams('/pair')['code']) return '/pair'
  return isPlace(kept) ? kept : '/'
}
