// Parameters of links in e-mails and of the link that the server prints at its first start: tokens and codes.
// They leave the URL before anything is shown, so that they end up in no history, and stay in the storage of
// the tab.

/** Page → the parameters of links that lead there. */
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
  const names = links[page]
  const query = new URLSearchParams(location.search)
  if (!names?.some((name) => query.has(name))) return
  saveLink(page, Object.fromEntries(names.map((name) => [name, query.get(name) ?? ''])))
  history.replaceState(null, '', page)
}

/** Does as if a link with these parameters had led to the page. */
export function saveLink(page: string, params: Readonly<Record<string, string>>): void {
  sessionStorage.setItem(`hawser.link${page}`, JSON.stringify(params))
}

export function linkParams(page: string): Readonly<Record<string, string>> {
  return JSON.parse(sessionStorage.getItem(`hawser.link${page}`) ?? '{}') as Record<string, string>
}

export function clearLink(page: string): void {
  sessionStorage.removeItem(`hawser.link${page}`)
}

/** The page after the sign-in: the one with the code of a device, if a link with one led here. */
export const landing = (): '/' | '/pair' => (linkParams('/pair')['code'] ? '/pair' : '/')
