// The agents that this server offers to devices, each with a signed statement. The key that signs is stored
// sealed in the database, so that all nodes sign with the same one; it is made at the first start. A release
// gets its moment when a build is first offered, and keeps it: a server that goes back to an older build
// offers the older moment again, which no agent accepts.
import { createPrivateKey, generateKeyPairSync, sign, type KeyObject } from 'node:crypto'
import {
  endorsementText,
  releaseText,
  type Endorsement,
  type Release,
  type SignedRelease,
} from '@hawser/contract/releases'
import { iso, type Clock } from '../../kit/clock.ts'
import type { Vault } from '../../kit/secrets.ts'
import type { Offer } from '../../storage/agent-updates.ts'
import type { Stores } from '../../storage/stores.ts'

/** An archive that devices can fetch. */
export type AgentPackage = Omit<Release, 'released_at'>

export interface OfferedAgent extends Offer {
  readonly version: string
  readonly released_at: string
  /** As Node names them. */
  readonly architectures: readonly string[]
  /** An installation with this database has offered a newer one: agents are not taken back to this. */
  readonly isOlder: boolean
}

export interface AgentReleases {
  /** Reads again what is offered, and the keys; true when that changed. */
  refresh(): Promise<boolean>
  offered(): OfferedAgent | undefined
  /** For a device with this processor, as devices name it. */
  signedFor(arch: string): SignedRelease | undefined
  /** When a build was first offered; undefined: never here. */
  releasedAt(build: string): string | undefined
  /** Builds that an installation with this database has offered later than the present one. */
  newer(): readonly string[]
  updateKey(): string
  /** How a pinned key leads to the present one; undefined: it is none of this server's. */
  endorsementsAfter(key: string): readonly Endorsement[] | undefined
  /** Makes a new key, endorsed by the present one. */
  rotate(): Promise<string>
}

/** As agents name processors, which is as ShellHub's do. */
const deviceArch = (arch: string): string => (arch === 'x64' ? 'amd64' : arch)

const purpose = 'update key'

interface Key {
  readonly publicKey: string
  readonly privateKey: KeyObject
  readonly endorsement: string
}

export async function agentReleases({
  stores,
  vault,
  clock,
  packages,
}: {
  stores: Stores
  vault: Vault
  clock: Clock
  /** The archives that are there now. */
  packages(): Promise<readonly AgentPackage[]>
}): Promise<AgentReleases> {
  let keys = await loadKeys()
  let known = new Map<string, string>()
  let offered: OfferedAgent | undefined
  let signed = new Map<string, SignedRelease>()
  const newestKey = (): Key => {
    const key = keys.at(-1)
    if (!key) throw new Error('there is no update key')
    return key
  }

  /** In the order in which each endorses the next. */
  async function loadKeys(): Promise<Key[]> {
    let rows = await stores.updateKeys.list()
    if (rows.length === 0) {
      await addKey('', undefined)
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

  async function addKey(previous: string, endorser: KeyObject | undefined): Promise<void> {
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

  /** The moments of these builds; one that was never offered gets a later moment than all others. */
  async function moments(found: readonly AgentPackage[]): Promise<Map<string, string>> {
    for (const { build, version } of found) {
      const rows = await stores.agentReleases.list()
      if (rows.some((row) => row.build === build)) continue
      const last = Date.parse(rows[0]?.released_at ?? '') || 0
      await stores.agentReleases.insert({
        build,
        version,
        released_at: iso(Math.max(clock.now(), last + 1)),
      })
    }
    const rows = await stores.agentReleases.list()
    return new Map(rows.map((row) => [row.build, row.released_at]))
  }

  function statements(found: readonly AgentPackage[], released_at: string): Map<string, SignedRelease> {
    const { privateKey } = newestKey()
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

  return {
    async refresh() {
      const found = await packages()
      keys = await loadKeys()
      known = await moments(found)
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
        signed = statements(same, newest.released_at)
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
      await addKey(publicKey, privateKey)
      keys = await loadKeys()
      return newestKey().publicKey
    },
  }
}
