// Where an address that somebody wrote leads, as a browser resolves it: backslashes are slashes to it, tabs
// and line breaks are nothing, and a name in front of an @ is no host. The text of an address alone does not
// tell.

/** Stands for the host of the console, which need not be known. */
const inside = 'https://inside.invalid'
/** Control characters, and characters that browsers read as a slash. */
// eslint-disable-next-line no-control-regex
const misread = /[\u0000-\u0020\u007f-\u009f\\]/

function parsed(address: string, base?: string): URL | undefined {
  try {
    return new URL(address, base)
  } catch {
    return undefined
  }
}

/** Normalised like a browser; undefined: the address leads elsewhere. */
export function insideAddress(address: string): string | undefined {
  if (misread.test(address) || !address.startsWith('/')) return undefined
  const url = parsed(address, inside)
  // A path that begins with two slashes would be a host.
  if (url?.origin !== inside || url.pathname.startsWith('//')) return undefined
  return url.pathname + url.search + url.hash
}

/** A page or a mailbox elsewhere, normalised; undefined: neither. */
export function outsideAddress(address: string): string | undefined {
  if (misread.test(address) || !/^(https?:\/\/[^/]|mailto:[^/])/i.test(address)) return undefined
  const url = parsed(address)
  return url && url.username === '' && url.password === '' ? url.href : undefined
}

/** Whether the address is a page of this console, for after the sign-in. */
export function isPlace(href: string): boolean {
  const place = insideAddress(href)
  return place !== undefined && !place.startsWith('/login')
}
