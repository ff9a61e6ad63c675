// Pairing. A stranger's agent asks and gets a short code and a secret; only their hashes are stored. Whoever
// confirms the code becomes the master of the device, so a code is hard to guess: 31⁸ of them, 15 minutes,
// five wrong ones of a person or an API key and thirty of an address. Open pairings are limited per address
// and in all,
// because anyone can ask. The database has the state, so that every node can answer for it.
import { Failure } from '@hawser/contract/failures'
import type { Pairing } from '@hawser/contract/pairings'
import { neighbourhood } from '../../kit/address.ts'
import { iso, minute_ms, type Clock } from '../../kit/clock.ts'
import { deviceUid, newLegibleCode, newUid } from '../../kit/ids.ts'
import type { Limiter } from '../../kit/limiter.ts'
import { hashOf, type Vault } from '../../kit/secrets.ts'
import type { PairingRow } from '../../storage/pairings.ts'
import type { Stores } from '../../storage/stores.ts'
import type { MemberCaller, RequestOrigin } from '../callers/callers.ts'
import type { Audit } from '../audit/audit.ts'
import type { Rules } from '../callers/rules.ts'
import { factText, freshDevice, infoColumns, nameFrom } from './enrolment.ts'
import type { EnrolmentOrigin } from './joining.ts'

export interface PairingParts {
  stores: Stores
  audit: Audit
  vault: Vault
  clock: Clock
  /**
   * Runs one attempt to name a code. Five wrong ones lock the subject for a while, whatever right ones are
   * among them: anybody can have a device of their own that shows a right code.
   */
  fiveTries<T>(subject: string, wrong: () => Failure, attempt: () => Promise<T | undefined>): Promise<T>
  /** Limits wrong codes from one address, and of the API keys of one maker. */
  wrongCodes: Limiter
  /** The address of the server, for links. */
  addressOf(from: RequestOrigin): string
  /** SHA-256 of a public key in PEM, as OpenSSH shows it; undefined if it is none. */
  fingerprintOf(public_key: string): string | undefined
  accept: Rules<'devices'>['accept']
  onConfirmed(confirmed: { tenant_id: string; uid: string; name: string; by: string; source: string }): void
}

const valid_ms = 15 * minute_ms
const interval_s = 3
const mostOfSource = 20
const mostOfAll = 10_000
const codeLength = 8

type Info = Pairing['info']

const present = (row: PairingRow): Pairing => ({
  ...row,
  mac: factText(row.mac ?? ''),
  info: JSON.parse(row.info) as Info,
})

export function pairings(parts: PairingParts): Rules<'pairings'> {
  const { stores, audit, vault, clock } = parts

  const mark = (code: string): string => vault.mark('pairing', code.toUpperCase().replaceAll(/[\s-]/g, ''))
  const noSuch = () =>
    new Failure('notFound', { message: 'No device waits with this code: it is wrong, used or expired.' })

  /**
   * The pairing that waits with this code. Wrong codes count against the caller, the address, and all API
   * keys of one maker together; never against the maker.
   */
  async function find(code: string, caller: MemberCaller): Promise<PairingRow> {
    const isKey = caller.kind === 'key'
    const shared = [neighbourhood(caller.source), ...(isKey ? [`keys of ${caller.created_by}`] : [])]
    const wait = Math.max(...shared.map((one) => parts.wrongCodes.peek(one)))
    if (wait > 0) throw new Failure('tooMany', { retryAfter: wait })
    const subject = isKey ? `key ${caller.tenant_id} ${caller.name}` : caller.id
    return parts.fiveTries(`pairing ${subject}`, noSuch, async () => {
      const found = await stores.pairings.findWaiting(mark(code), iso(clock.now()))
      if (!found) for (const one of shared) parts.wrongCodes.take(one)
      return found
    })
  }

  const confirmed = (row: PairingRow, device: { uid: string; name: string; tags: string }) =>
    ({
      action: 'pairing.confirmed',
      target: { kind: 'device', id: device.uid, name: device.name },
      after: { name: device.name, tags: JSON.parse(device.tags) as string[] },
      detail: { device_source: row.remote_addr },
    }) as const

  /** Stores the device as pending, if it is not there already. Gives whether it is new. */
  async function enter(
    row: PairingRow,
    caller: MemberCaller,
    device: { uid: string; name: string; tags: string; enrolled_with: string },
  ): Promise<boolean> {
    const now = iso(clock.now())
    try {
      await audit.change(caller, async (inside, record) => {
        await inside.of(caller.tenant_id).devices.insert({
          ...freshDevice(now),
          ...device,
          mac: factText(row.mac ?? ''),
          public_key: row.public_key,
          ...infoColumns(JSON.parse(row.info) as Info),
          remote_addr: row.remote_addr,
          online: 0,
        })
        record(confirmed(row, device))
      })
      return true
    } catch (error) {
      if (!stores.isDuplicate(error)) throw error
      return false
    }
  }

  return {
    async create({ body }, caller) {
      const fingerprint = parts.fingerprintOf(body.public_key)
      if (fingerprint === undefined)
        throw new Failure('invalid', { message: 'public_key: a public key in PEM is expected' })
      const now = clock.now()
      const source = neighbourhood(caller.source)
      await stores.pairings.sweep(iso(now))
      const open = await stores.pairings.count(source)
      if (open.own >= mostOfSource || open.all >= mostOfAll)
        throw new Failure('tooMany', {
          message: 'Too many devices wait to be paired; confirm some, or wait a few minutes.',
          retryAfter: 60,
        })
      const code = newLegibleCode(codeLength)
      const secret = newUid()
      const { id, pretty_name, version, arch, platform } = body.info
      const expires_at = iso(now + valid_ms)
      await stores.pairings.insert({
        secret: hashOf(secret),
        code: mark(code),
        source,
        remote_addr: caller.source,
        hostname: body.hostname,
        mac: body.identity ? (body.identity.mac ?? '') : null,
        public_key: body.public_key,
        fingerprint,
        info: JSON.stringify({
          id: factText(id),
          pretty_name: factText(pretty_name),
          version: factText(version),
          arch: factText(arch),
          platform: factText(platform),
        }),
        state: 'waiting',
        namespace: null,
        confirmed_by: null,
        created_at: iso(now),
        expires_at,
      })
      const shown = `${code.slice(0, codeLength / 2)}-${code.slice(codeLength / 2)}`
      const url = `${parts.addressOf(caller)}/pair?code=${shown}`
      return { code: shown, url, secret, interval_s, expires_at }
    },

    async outcome({ body }) {
      const row = await stores.pairings.findBySecret(hashOf(body.secret), iso(clock.now()))
      if (!row)
        throw new Failure('wrongToken', {
          message: 'Nobody confirmed the code in time; ask for another one.',
        })
      if (row.state === 'refused') return { status: 'refused' }
      if (row.state !== 'confirmed' || row.namespace === null) return { status: 'waiting' }
      const namespace = await stores.namespaces.find(row.namespace)
      return {
        status: 'confirmed',
        tenant_id: row.namespace,
        namespace: namespace?.name ?? '',
        confirmed_by: row.confirmed_by ?? '',
      }
    },

    get: async ({ query }, caller) => present(await find(query.code, caller)),

    async confirm({ body }, caller) {
      const { tenant_id } = caller
      const row = await find(body.code, caller)
      const { secret, public_key, mac } = row
      if (!(await stores.pairings.move(secret, 'waiting', { state: 'taken' }))) throw noSuch()
      const by = caller.kind === 'key' ? `API key ${caller.name}` : caller.username
      const uid = deviceUid({ mac: mac ?? undefined, public_key, tenant_id })
      const mine = stores.of(tenant_id).devices
      let isNew = false
      try {
        const enrolled_with: EnrolmentOrigin = { kind: 'pairing', id: '', name: by }
        const given = {
          name: body.name?.toLowerCase() ?? nameFrom(row.hostname, mac ?? ''),
          tags: JSON.stringify(body.tags ?? []),
          enrolled_with: JSON.stringify(enrolled_with),
        }
        isNew = await enter(row, caller, { uid, ...given })
        if (!isNew)
          await audit.change(caller, async (inside, record) => {
            const known = inside.of(tenant_id).devices
            if ((await known.find(uid))?.status !== 'accepted') await known.save(uid, given)
            record(confirmed(row, { uid, ...given }))
          })
        const { headers } = await parts.accept({ params: { uid }, query: {}, body: undefined }, caller)
        await stores.pairings.move(secret, 'taken', {
          state: 'confirmed',
          namespace: tenant_id,
          confirmed_by: by,
          // The agent has as long again to learn of it.
          expires_at: iso(clock.now() + valid_ms),
        })
        const [device, namespace] = await Promise.all([mine.find(uid), stores.namespaces.find(tenant_id)])
        const name = device?.name ?? given.name
        parts.onConfirmed({ tenant_id, uid, name, by, source: row.remote_addr })
        return { answer: { uid, name, namespace: namespace?.name ?? '' }, headers }
      } catch (error) {
        // The code stays good: another name, a free place or another namespace may help.
        if (isNew)
          await audit.change(caller, async (inside, record) => {
            await inside.of(tenant_id).devices.remove(uid)
            record({
              action: 'device.removed',
              target: { kind: 'device', id: uid, name: '' },
              detail: { why: 'It could not be accepted; its pairing code stays good.' },
            })
          })
        await stores.pairings.move(secret, 'taken', { state: 'waiting' })
        throw error
      }
    },

    async refuse({ body }, caller) {
      const { secret, hostname, fingerprint, remote_addr } = await find(body.code, caller)
      await audit.change(caller, async (inside, record) => {
        if (!(await inside.pairings.move(secret, 'waiting', { state: 'refused' }))) throw noSuch()
        record({
          action: 'pairing.refused',
          target: { kind: 'device', id: '', name: hostname },
          detail: { device_source: remote_addr, fingerprint },
        })
      })
    },
  }
}
