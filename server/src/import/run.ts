// What one run of an import works with, and what its steps tell each other.
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
  /** Whether there is a payment provider. */
  billed: boolean
}

export interface ImportOptions {
  /** Find out and write nothing. */
  readonly dryRun: boolean
  /** Go on without what cannot be moved. */
  readonly leaveOut: boolean
  /** Somebody here with the same username and e-mail address is the same person. */
  readonly samePeople: boolean
  /** Only these, by name; empty: all. */
  readonly namespaces: readonly string[]
  /** ShellHub's: what it signed for devices of these namespaces counts here. */
  readonly signingKey: { readonly fingerprint: string; readonly public_key: string } | undefined
}

/** What one run works with. */
export interface ImportRun {
  readonly inside: StoresInTransaction
  readonly source: Source
  readonly report: ImportReport
  readonly options: ImportOptions
  readonly parts: ImporterParts
  readonly progress: Progress
}

/** Where everybody and everything has its place here. */
export interface Progress {
  /** From the id there to the id here. */
  readonly people: Map<string, string>
  /** Tenant ids of namespaces that are here now. */
  readonly namespaces: Set<string>
  /** Of those that were left out, and with them everything in them. */
  readonly left: Set<string>
  /** Undefined: everybody and everything. */
  readonly wanted: { readonly tenants: ReadonlySet<string>; readonly people: ReadonlySet<string> } | undefined
}
