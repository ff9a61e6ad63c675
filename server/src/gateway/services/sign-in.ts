// The way of a browser to a service that is not public: to the console and back with a code, or by a link.
// Only here does the server answer at the host of a service in its own name, and only at two paths that no
// public service has.
import type { IncomingMessage, ServerResponse } from 'node:http'
import { randomBytes } from 'node:crypto'
import { linkPath, returnPath } from '@hawser/contract/services'
import type { Visitor } from '../../domain/access/service-access.ts'
import type { Openings } from '../../domain/services/openings.ts'
import { dropState, sessionCookie, setSession, setState, stateCookie } from './cookies.ts'
import { isNavigation, show } from './pages.ts'

export interface SignInParts {
  readonly openings: Pick<Openings, 'redeem' | 'isCode' | 'byLink' | 'visitor' | 'ownPath'>
  /** The address of the console. */
  readonly console: string
}

export interface Arrival {
  readonly request: IncomingMessage
  readonly response: ServerResponse
  readonly address: string
  readonly secure: boolean
  /** The client's address. */
  readonly source: string
}

const stateShape = /^[A-Za-z0-9_-]{22,64}$/

export function signIn({ openings, console }: SignInParts) {
  function redirect(response: ServerResponse, location: string, cookies: readonly string[]): void {
    response.writeHead(302, {
      location,
      'set-cookie': [...cookies],
      'cache-control': 'no-store',
      'referrer-policy': 'no-referrer',
      'content-length': 0,
    })
    response.end()
  }

  const stop = ({ request, response }: Arrival, message: string): void =>
    show(request, response, { status: 400, message })

  async function takeCode(arrival: Arrival, query: URLSearchParams): Promise<void> {
    const { request, response, address, secure } = arrival
    const state = stateCookie(request.headers.cookie, secure)
    const code = query.get('code') ?? ''
    const cookie = state === undefined ? undefined : await openings.redeem(address, code, state)
    const path = openings.ownPath(query.get('path') ?? '/')
    // A page that is loaded again has its cookie already.
    if (cookie === undefined && visitorOf(arrival).kind !== 'nobody') return redirect(response, path, [])
    if (cookie === undefined)
      return stop(arrival, 'This address has been used or has expired. Open the service again.')
    redirect(response, path, [setSession(cookie, secure), dropState(secure)])
  }

  async function takeLink(arrival: Arrival, query: URLSearchParams): Promise<void> {
    const { response, address, secure, source } = arrival
    const cookie = await openings.byLink(address, query.get('key') ?? '', source)
    if (cookie === undefined) return stop(arrival, 'This link is invalid or was replaced. Ask for a new one.')
    redirect(response, '/', [setSession(cookie, secure)])
  }

  function visitorOf({ request, address, secure }: Pick<Arrival, 'request' | 'address' | 'secure'>): Visitor {
    const cookie = sessionCookie(request.headers.cookie, secure)
    return (cookie === undefined ? undefined : openings.visitor(address, cookie)) ?? { kind: 'nobody' }
  }

  return {
    visitorOf,
    /**
     * True: the request was for one of our two paths, and is answered. A public service has these paths itself; but
     * a code from the time before it was public is not for its program.
     */
    async takes(arrival: Arrival, isPublic: boolean): Promise<boolean> {
      const { request, address } = arrival
      const [path, query = ''] = (request.url ?? '').split('?', 2)
      if (request.method !== 'GET' || (path !== returnPath && path !== linkPath)) return false
      const asked = new URLSearchParams(query)
      if (isPublic && !openings.isCode(address, asked.get('code') ?? '')) return false
      await (path === returnPath ? takeCode(arrival, asked) : takeLink(arrival, asked))
      return true
    },
    /** Nobody whom we know: a person goes to the console, a program is told. */
    refuse(arrival: Arrival): void {
      const { request, response, address, secure } = arrival
      if (!isNavigation(request) || isFramed(request))
        return show(request, response, { status: 401, message: 'Sign in to open this service.' })
      const known = stateCookie(request.headers.cookie, secure)
      const state =
        known !== undefined && stateShape.test(known) ? known : randomBytes(24).toString('base64url')
      const query = new URLSearchParams({ state, path: openings.ownPath(request.url ?? '/') })
      redirect(response, `${console}/open/${address}?${query.toString()}`, [setState(state, secure)])
    },
  }
}

export const isFramed = ({ headers }: Pick<IncomingMessage, 'headers'>): boolean =>
  /^(?:iframe|frame|embed|object|fencedframe)$/.test(headers['sec-fetch-dest'] ?? '')
