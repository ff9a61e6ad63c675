// Pairing: an agent requests a short code and a secret, of which only hashes are stored. The person
// who confirms the code controls the device, so the code is hard to guess: 31⁸ codes, 15 minutes, five wrong
// ones of a person or an API key and thirty of an address. Anyone can request one, so open pairings are limited
// per address and in all. The state is in the database, so that every node can answer.
import { Failure } from '@hawser/contract/failures'
import { beyond, deviceLimits } from '@hawser/contract/limits'
import type { Pairing } from '@hawser/contract/pairings'
import { neighbourhood } from '../../kit/address.ts'
import { iso, minute_ms } from '../../kit/clock.ts'
import { deviceUid, newLegibleCode, newUid } from '../../kit/ids.ts'
import type { Limiter } from '../../kit/limiter.ts'
import { hashOf, type Vault } from '../../kit/secrets.ts'
import type { PairingRow } from '../../storage/pairings.ts'
import type { With } from '../audit/parts.ts'
import type { MemberCaller, RequestOrigin } from '../callers/callers.ts'
import type { Rules } from '../callers/rules.ts'
import { nameOf, replacedHeaders } from './accepting.ts'
import { factText, freshDevice, infoColumns, nameFrom, type EnrolmentOrigin } from './device-facts.ts'
import { targetOf } from './device-rows.ts'
import type { NamedRow, Joining } from './joining.ts'

export interface PairingParts extends With<'stores' | 'audit' | 'vault' | 'clock'> {
  /**
   * Five wrong codes lock the subject for a while, even with right ones in between: anybody can have a device
   * of their own that shows a right code.
   */
  fiveTries<T>(subject: string, wrong: () => Failure, attempt: () => Promise<T | undefined>): Promise<T>
  /** Limits wrong codes from one address, and of the API keys of one maker. */
  wrongCodes: Limiter
  addressOf(from: RequestOrigin): string
  /** SHA-256, as OpenSSH shows it; undefined if the PEM is no public key. */
  fingerprintOf(public_key: string): string | undefined
  joining: Pick<Joining, 'admit'>
  onConfirmed(confirmed: { tenant_id: string; uid: string; name: string; by: string; source: string }): void
}

const valid_ms = 15 * minute_ms
const interval_s = 3
const codeLength = 8

type Info = Pairing['info']

const present = (row: PairingRow): Pairing => ({
  ...row,
  mac: factText(row.mac ?? ''),
  info: JSON.parse(row.info) as Info,
})

const mark = (vault: Vault, code: string): string =>
  vault.mark('pairing', code.toUpperCase().replaceAll(/[\s-]/g, ''))

const noSuch = () => new Failure('notFound', { message: 'This code is wrong, already used or expired.' })

export const pairings = (parts: PairingParts): Rules<'pairings'> => ({
  ...forAgents(parts),
  ...forMembers(parts),
})

function forAgents(parts: PairingParts): Pick<Rules<'pairings'>, 'create' | 'outcome'> {
  const { stores, vault, clock } = parts
  return {
    async create({ body }, caller) {
      const fingerprint = parts.fingerprintOf(body.public_key)
      if (fingerprint === undefined)
        throw new Failure('invalid', { message: 'public_key: a public key in PEM is expected' })
      const now = clock.now()
      const source = neighbourhood(caller.source)
      await stores.pairings.sweep(iso(now))
      const open = await stores.pairings.count(source)
      const { pairing, pairingOfAll } = deviceLimits
      if (open.own >= pairing.max || open.all >= pairingOfAll.max) throw beyond(pairing, 60)
      const code = newLegibleCode(codeLength)
      const secret = newUid()
      const { id, pretty_name, version, arch, platform } = body.info
      const expires_at = iso(now + valid_ms)
      await stores.pairings.insert({
        secret: hashOf(secret),
        code: mark(vault, code),
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
          message: 'The code expired before anyone confirmed it; request a new one.',
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
  }
}

function forMembers(parts: PairingParts): Pick<Rules<'pairings'>, 'get' | 'confirm' | 'refuse'> {
  const { stores, audit, clock } = parts

  /**
   * Wrong codes count against the caller, the address, and all API keys of one maker together; never against
   * the maker.
   */
  async function find(code: string, caller: MemberCaller): Promise<PairingRow> {
    const isKey = caller.kind === 'key'
    const shared = [neighbourhood(caller.source), ...(isKey ? [`keys of ${caller.created_by}`] : [])]
    const wait = Math.max(...shared.map((one) => parts.wrongCodes.peek(one)))
    if (wait > 0) throw beyond(deviceLimits.wrongCodes, wait)
    const subject = isKey ? `key ${caller.tenant_id} ${caller.name}` : caller.id
    return parts.fiveTries(`pairing ${subject}`, noSuch, async () => {
      const found = await stores.pairings.findWaiting(mark(parts.vault, code), iso(clock.now()))
      if (!found) for (const one of shared) parts.wrongCodes.take(one)
      return found
    })
  }

  function deviceOf(
    { hostname, mac, public_key, remote_addr, info }: PairingRow,
    { tenant_id }: MemberCaller,
    { name, tags, by }: { name: string | undefined; tags: readonly string[]; by: string },
  ): NamedRow {
    const enrolled_with: EnrolmentOrigin = { kind: 'pairing', id: '', name: by }
    return {
      ...freshDevice(iso(clock.now())),
      uid: deviceUid({ mac: mac ?? undefined, public_key, tenant_id }),
      name: name?.toLowerCase() ?? nameFrom(hostname, mac ?? ''),
      tags: JSON.stringify(tags),
      enrolled_with: JSON.stringify(enrolled_with),
      mac: factText(mac ?? ''),
      public_key,
      ...infoColumns(JSON.parse(info) as Info),
      remote_addr,
      online: 0,
    }
  }

  return {
    get: async ({ query }, caller) => present(await find(query.code, caller)),

    async confirm({ body: { code, name: wanted, tags = [] } }, caller) {
      const { tenant_id } = caller
      const row = await find(code, caller)
      const by = nameOf(caller)
      const device = deviceOf(row, caller, { name: wanted, tags, by })
      const { uid } = device
      // If the device cannot be accepted, all of this is undone and the code stays good: another name, a free
      // place or another namespace may help.
      const { name, replacement } = await parts.joining.admit(device, caller, async (inside, record) => {
        const confirmed = {
          state: 'confirmed',
          namespace: tenant_id,
          confirmed_by: by,
          // The agent has another 15 minutes to learn of it.
          expires_at: iso(clock.now() + valid_ms),
        } as const
        if (!(await inside.pairings.move(row.secret, 'waiting', confirmed))) throw noSuch()
        record({
          action: 'pairing.confirmed',
          target: targetOf(device),
          after: { name: device.name, tags },
          detail: { device_source: row.remote_addr },
        })
      })
      parts.onConfirmed({ tenant_id, uid, name, by, source: row.remote_addr })
      const namespace = await stores.namespaces.find(tenant_id)
      return {
        answer: { uid, name, namespace: namespace?.name ?? '' },
        headers: replacedHeaders(replacement),
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
