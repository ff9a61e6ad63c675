// The parts and the state that the steps of an import share.
import type { KeyReader } from '../domain/access/public-keys.ts'
import type { Clock } from '../kit/clock.ts'
import type { Vault } from '../kit/secrets.ts'
import type { Stores, StoresInTransaction } from '../storage/stores.ts'
import type { ImportReport } from './report.ts'
import type { Source } from './source.ts'

export interface ImporterParts {
  stores: Stores
  vault: Vault
  clock: Clock
  keys: KeyReader
  billed: boolean
}

export interface ImportOptions {
  readonly dryRun: boolean
  /** Leave out what cannot be moved. */
  readonly leaveOut: boolean
  /** A user with the same username and e-mail address is the same person. */
  readonly samePeople: boolean
  /** By name; empty: all. */
  readonly namespaces: readonly string[]
  /** Tokens that ShellHub signed for devices of these namespaces count here. */
  readonly signingKey: { readonly fingerprint: string; readonly public_key: string } | undefined
}

export interface ImportRun {
  readonly inside: StoresInTransaction
  readonly source: Source
  readonly report: ImportReport
  readonly options: ImportOptions
  readonly parts: ImporterParts
  readonly progress: Progress
}

export interface Progress {
  /** From the id there to the id here. */
  readonly people: Map<string, string>
  /** Tenant ids of namespaces that are here now. */
  readonly namespaces: Set<string>
  /** Left out, with everything in them. */
  readonly left: Set<string>
  /** Undefined: everybody and everything. */
  readonly wanted: { readonly tenants: ReadonlySet<string>; readonly people: ReadonlySet<string> } | undefined
}
