// The two cookies that the server sets at the host of a service: the opened service, and the state of a
// browser on its way to the console and back. `__Host-` keeps other hosts from setting them; browsers take
// that prefix over TLS only.
const session = 'hawser-service'
const state = 'hawser-state'
const prefix = '__Host-'

export const cookieNames: ReadonlySet<string> = new Set(
  [session, state].flatMap((name) => [name, `${prefix}${name}`]),
)

/** A cookie of another length was not made here. */
const longest = 2_048

function read(header: string | undefined, name: string, secure: boolean): string | undefined {
  const wanted = `${secure ? prefix : ''}${name}=`
  for (const one of (header ?? '').split(';')) {
    const cookie = one.trim()
    if (cookie.startsWith(wanted) && cookie.length < longest) return cookie.slice(wanted.length)
  }
  return undefined
}

function write(name: string, value: string, secure: boolean, age_s?: number): string {
  const lasts = age_s === undefined ? '' : `; Max-Age=${age_s}`
  return `${secure ? prefix : ''}${name}=${value}; Path=/; HttpOnly; SameSite=Lax${secure ? '; Secure' : ''}${lasts}`
}

export const sessionCookie = (header: string | undefined, secure: boolean) => read(header, session, secure)
export const stateCookie = (header: string | undefined, secure: boolean) => read(header, state, secure)
export const setSession = (value: string, secure: boolean): string => write(session, value, secure)
/** For the time of a sign-in. */
export const setState = (value: string, secure: boolean): string => write(state, value, secure, 600)
export const dropState = (secure: boolean): string => write(state, '', secure, 0)
