// How a browser comes into a service that is not public. The service sends it to the console with a `state`
// that its own cookie holds, too. There the signed-in person gets a code, which is good once, for half a
// minute, for one address and that state; the service takes it and sets its own cookie. So no credential of
// the console reaches a device, and a code is worthless to whoever else gets it: in another browser, at
// another address, or a second time. The cookie names the sign-in and grants nothing by itself: whether it may
// open the service is asked anew (domain/access/service-access.ts).
import { Failure } from '@hawser/contract/failures'
import { beyond, serviceLimits } from '@hawser/contract/limits'
import { returnPath } from '@hawser/contract/services'
import { hour_ms, iso, second_ms } from '../../kit/clock.ts'
import { BoundedMap } from '../../kit/bounded-map.ts'
import { newUid } from '../../kit/ids.ts'
import type { Limiter } from '../../kit/limiter.ts'
import { hashOf, sameText } from '../../kit/secrets.ts'
import type { ServiceAccess, SignedIn, Visitor } from '../access/service-access.ts'
import { actorOf, stranger } from '../audit/audit.ts'
import type { With } from '../audit/parts.ts'
import type { AuditRefusals } from '../audit/refusals.ts'
import { callingUser } from '../callers/callers.ts'
import type { Rules } from '../callers/rules.ts'
import type { ServiceAddresses } from './addresses.ts'
import { targetOf } from './service-view.ts'

export interface OpeningParts extends With<'stores' | 'vault' | 'clock'> {
  addresses: ServiceAddresses
  access: ServiceAccess
  auditedRefusals: Pick<AuditRefusals, 'add'>
  /** By user. */
  openings: Limiter
}

export interface Openings {
  open: Rules<'services'>['open']
  /** Redeems a code for the text of the cookie; undefined: the code is worthless here. */
  redeem(address: string, code: string, state: string): Promise<string | undefined>
  /** Whether the text is a code for this address, used or not. */
  isCode(address: string, code: string): boolean
  /** The text of the cookie for whoever has the link; undefined: it is wrong. */
  byLink(address: string, key: string, source: string): Promise<string | undefined>
  /** Undefined: the text is not one that this server has made for the address, or too old. */
  visitor(address: string, cookie: string): Visitor | undefined
  /** A path of the same origin, or its first page: never the beginning of another address. */
  ownPath(path: string): string
}

interface Code {
  readonly id: string
  readonly address: string
  readonly state: string
  readonly user_id: string
  readonly epoch: number
  readonly token_id: string
  readonly ends_at: number
}

type Known = Exclude<Visitor, { kind: 'nobody' }>
type Cookie = Known & { readonly address: string }
type Unending<T> = T extends Known ? Omit<T, 'ends_at'> : never

const code_ms = 30 * second_ms
/** Afterwards the browser comes by the console again, which takes a moment for whoever is signed in. */
const cookie_ms = 12 * hour_ms
const mostOpened = 10_000
const codePurpose = 'service code'
const cookiePurpose = 'service cookie'

/** In the address bar and in cookies. */
const urlSafe = (base64: string): string =>
  base64.replaceAll('+', '-').replaceAll('/', '_').replaceAll('=', '')

const ownPath = (path: string): string =>
  /^\/(?![/\\])[\x21-\x7e]*$/.test(path) && !path.includes('\\') ? path : '/'

export function openings(parts: OpeningParts): Openings {
  const { stores, vault, clock, addresses, access } = parts

  const seal = (purpose: string, value: Code | Cookie): string =>
    urlSafe(vault.seal(purpose, JSON.stringify(value)))

  /** Undefined: it was not sealed here, for this purpose and address, or its time is over. */
  function unseal(purpose: string, text: string, address: string): unknown {
    try {
      const value = JSON.parse(vault.open(purpose, text)) as Code | Cookie
      return value.address === address && value.ends_at > clock.now() ? value : undefined
    } catch {
      return undefined
    }
  }

  /** Each request of a page has the same cookie. */
  const opened = new BoundedMap<string, Cookie>(mostOpened)

  const cookieOf = (visitor: Unending<Known>, address: string): string =>
    seal(cookiePurpose, { ...visitor, address, ends_at: clock.now() + cookie_ms })

  return {
    ownPath,
    async open({ body }, caller) {
      const wait_s = parts.openings.take(caller.id)
      if (wait_s > 0) throw beyond(serviceLimits.openings, wait_s)
      await callingUser(stores, caller)
      const { id: user_id, epoch, token_id, source } = caller
      const { address, state, path = '/' } = body
      const visitor: SignedIn = { kind: 'user', user_id, epoch, token_id }
      const decision = await access.decide(address, visitor, source)
      if (!decision.admitted) {
        const { service, refused: reason } = decision
        if (service && reason !== undefined)
          parts.auditedRefusals.add({
            scope: { tenant_id: service.tenant_id },
            by: actorOf(caller),
            action: 'service.refused',
            target: targetOf(service),
            reason,
          })
        throw new Failure('notFound', { message: 'There is no such service, or you may not open it.' })
      }
      // A public service needs no code, and its program would read it.
      if (decision.admitted.method === 'public') return { url: `${addresses.urlOf(address)}${ownPath(path)}` }
      const ends_at = clock.now() + code_ms
      const code = seal(codePurpose, {
        id: newUid(),
        address,
        state: hashOf(state),
        user_id,
        epoch,
        token_id,
        ends_at,
      })
      await stores.tokens.insert({ kind: 'service', hash: hashOf(code), user_id, expires_at: iso(ends_at) })
      const query = new URLSearchParams({ code, path: ownPath(path) })
      return { url: `${addresses.urlOf(address)}${returnPath}?${query.toString()}` }
    },
    async redeem(address, code, state) {
      const sealed = unseal(codePurpose, code, address) as Code | undefined
      if (!sealed || !sameText(sealed.state, hashOf(state))) return undefined
      if (!(await stores.tokens.spend('service', hashOf(code), iso(clock.now())))) return undefined
      const { user_id, epoch, token_id } = sealed
      return cookieOf({ kind: 'user', user_id, epoch, token_id }, address)
    },
    isCode: (address, code) => unseal(codePurpose, code, address) !== undefined,
    async byLink(address, key, source) {
      const service = await stores.presentedServices.find(address)
      const link_hash = hashOf(key)
      if (service?.audience !== 'link') return undefined
      if (service.link_hash === '' || !sameText(service.link_hash, link_hash)) {
        parts.auditedRefusals.add({
          scope: { tenant_id: service.tenant_id },
          by: stranger(source),
          action: 'service.refused',
          target: targetOf(service),
          reason: 'link',
        })
        return undefined
      }
      return cookieOf({ kind: 'link', link_hash }, address)
    },
    visitor(address, cookie) {
      const key = `${address} ${cookie}`
      const known = opened.get(key) ?? (unseal(cookiePurpose, cookie, address) as Cookie | undefined)
      if (!known || known.ends_at <= clock.now()) return undefined
      opened.set(key, known)
      return known
    },
  }
}
