// The parts that most rules of the domain are handed; each rule picks those that it uses.
import type { Bus } from '../../bus/bus.ts'
import type { Clock } from '../../kit/clock.ts'
import type { Lifetime } from '../../kit/lifetime.ts'
import type { Vault } from '../../kit/secrets.ts'
import type { Emails } from '../../mail/emails.ts'
import type { Mailer } from '../../mail/mailer.ts'
import type { Stores } from '../../storage/stores.ts'
import type { Audit } from './audit.ts'

export interface Parts {
  stores: Stores
  audit: Audit
  bus: Bus
  clock: Clock
  vault: Vault
  mailer: Mailer
  emails: Emails
  background: Lifetime
}

export type With<Names extends keyof Parts> = Pick<Parts, Names>
