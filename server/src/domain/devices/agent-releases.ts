// The agents that this server offers, each with a signed statement. The signing key, made at the first start,
// is stored sealed so that all nodes share it. A release keeps the moment of its first offer: a server that
// goes back to an older build offers the older moment, which no agent accepts.
import { createPrivateKey, generateKeyPairSync, sign, type KeyObject } from 'node:crypto'
import {
  endorsementText,
  releaseText,
  type Endorsement,
  type Release,
  type SignedRelease,
} from '@hawser/contract/releases'
import { iso } from '../../kit/clock.ts'
import type { Offer } from '../../storage/agent-updates.ts'
import type { With } from '../audit/parts.ts'

export type AgentPackage = Omit<Release, 'released_at'>

export interface OfferedAgent extends Offer {
  readonly version: string
  readonly released_at: string
  /** As Node names them. */
  readonly architectures: readonly string[]
  /** This database has offered a newer one: agents are not downgraded. */
  readonly isOlder: boolean
}

export interface AgentReleases {
  /** Reads offers and keys again; true when they changed. */
  refresh(): Promise<boolean>
  offered(): OfferedAgent | undefined
  /** By the processor, as devices name it. */
  signedFor(arch: string): SignedRelease | undefined
  /** Undefined: never here. */
  releasedAt(build: string): string | undefined
  newer(): readonly string[]
  updateKey(): string
  /** How a pinned key leads to the present one; undefined: it is none of this server's. */
  endorsementsAfter(key: string): readonly Endorsement[] | undefined
  rotate(): Promise<string>
}

export function installable({ offered }: Pick<AgentReleases, 'offered'>): OfferedAgent | undefined {
  const offer = offered()
  return offer && !offer.isOlder ? offer : undefined
}

/** As agents name processors, which is as ShellHub's do. */
const deviceArch = (arch: string): string => (arch === 'x64' ? 'amd64' : arch)

const purpose = 'update key'

interface Key {
  readonly publicKey: string
  readonly privateKey: KeyObject
  readonly endorsement: string
}

export interface AgentReleaseParts extends With<'stores' | 'vault' | 'clock'> {
  /** The archives that are there now. */
  packages(): Promise<readonly AgentPackage[]>
}

function updateKeys({ stores, vault, clock }: Pick<AgentReleaseParts, 'stores' | 'vault' | 'clock'>) {
  /** In the order in which each endorses the next. */
  async function load(): Promise<Key[]> {
    let rows = await stores.updateKeys.list()
    if (rows.length === 0) {
      await add('', undefined)
      rows = await stores.updateKeys.list()
    }
    const chain: Key[] = []
    for (let row = rows.find(({ previous }) => previous === ''); row;) {
      const { public_key: publicKey, private_key, endorsement } = row
      chain.push({ publicKey, privateKey: createPrivateKey(vault.open(purpose, private_key)), endorsement })
      row = rows.find(({ previous }) => previous === publicKey)
    }
    return chain
  }

  async function add(previous: string, endorser: KeyObject | undefined): Promise<void> {
    const pair = generateKeyPairSync('ed25519')
    const { x: publicKey = '' } = pair.publicKey.export({ format: 'jwk' })
    await stores.updateKeys.insert({
      public_key: publicKey,
      previous,
      private_key: vault.seal(purpose, pair.privateKey.export({ type: 'pkcs8', format: 'pem' })),
      endorsement: endorser
        ? sign(null, Buffer.from(endorsementText(previous, publicKey)), endorser).toString('base64')
        : '',
      created_at: iso(clock.now()),
    })
  }

  return { load, add }
}

/** A build that was never offered gets a later moment than all others. */
async function moments(
  { stores, clock }: Pick<AgentReleaseParts, 'stores' | 'clock'>,
  found: readonly AgentPackage[],
): Promise<Map<string, string>> {
  for (const { build, version } of found) {
    const rows = await stores.agentReleases.list()
    if (rows.some((row) => row.build === build)) continue
    const last = Date.parse(rows[0]?.released_at ?? '') || 0
    await stores.agentReleases.insert({ build, version, released_at: iso(Math.max(clock.now(), last + 1)) })
  }
  const rows = await stores.agentReleases.list()
  return new Map(rows.map((row) => [row.build, row.released_at]))
}

function statements(
  found: readonly AgentPackage[],
  released_at: string,
  { privateKey }: Key,
): Map<string, SignedRelease> {
  return new Map(
    found.map((archive) => {
      const { format, version, build, arch, sha256, size } = archive
      const release: Release = { format, version, build, arch, sha256, size, released_at }
      const statement = JSON.stringify(release)
      const signature = sign(null, Buffer.from(releaseText(statement)), privateKey).toString('base64')
      return [deviceArch(arch), { statement, signature }]
    }),
  )
}

export async function agentReleases(parts: AgentReleaseParts): Promise<AgentReleases> {
  const stored = updateKeys(parts)
  let keys = await stored.load()
  let known = new Map<string, string>()
  let offered: OfferedAgent | undefined
  let signed = new Map<string, SignedRelease>()
  const newestKey = (): Key => {
    const key = keys.at(-1)
    if (!key) throw new Error('there is no update key')
    return key
  }

  return {
    async refresh() {
      const found = await parts.packages()
      keys = await stored.load()
      known = await moments(parts, found)
      const newest = found
        .map((archive) => ({ ...archive, released_at: known.get(archive.build) ?? '' }))
        .toSorted((a, b) => (a.released_at < b.released_at ? 1 : -1))[0]
      const before = JSON.stringify([...signed])
      if (!newest) {
        offered = undefined
        signed = new Map()
      } else {
        const same = found.filter(({ build }) => build === newest.build)
        offered = {
          build: newest.build,
          version: newest.version,
          released_at: newest.released_at,
          architectures: same.map(({ arch }) => arch).toSorted(),
          arches: same.map(({ arch }) => deviceArch(arch)),
          isOlder: [...known.values()].some((moment) => moment > newest.released_at),
        }
        signed = statements(same, newest.released_at, newestKey())
      }
      return JSON.stringify([...signed]) !== before
    },
    offered: () => offered,
    signedFor: (arch) => signed.get(arch),
    releasedAt: (build) => known.get(build),
    newer: () =>
      [...known].flatMap(([build, moment]) => (offered && moment > offered.released_at ? [build] : [])),
    updateKey: () => newestKey().publicKey,
    endorsementsAfter(key) {
      const at = keys.findIndex(({ publicKey }) => publicKey === key)
      if (at < 0) return undefined
      return keys
        .slice(at + 1)
        .map(({ publicKey, endorsement }) => ({ key: publicKey, signature: endorsement }))
    },
    async rotate() {
      const { publicKey, privateKey } = newestKey()
      await stored.add(publicKey, privateKey)
      keys = await stored.load()
      return newestKey().publicKey
    },
  }
}
