// Limits on the e-mails that the server sends, so that nobody can use it to flood a mailbox.
import { neighbourhood } from '../../kit/address.ts'
import { hour_ms, iso, type Clock } from '../../kit/clock.ts'
import type { Stores } from '../../storage/stores.ts'
import type { UserRow } from '../../storage/users.ts'

interface CountParts {
  readonly stores: Pick<Stores, 'attempts'>
  readonly clock: Clock
}

/** To one user: enough for a few retries, too few to flood a mailbox. */
const emails_per_hour = 5
/**
 * Per hour to an unconfirmed mailbox: from one network, and from all together, so that one network cannot use
 * up what the owner needs. When several have used it up, the first e-mail for another network comes out of a
 * reserve.
 */
const unconfirmed_emails = { ofNetwork: 5, ofAll: 20, reserve: 10 }

/** Counts one more of the subject and returns the count, which starts anew `lasts_ms` after its first. */
export function counted({ stores, clock }: CountParts, subject: string, lasts_ms: number): Promise<number> {
  const now = clock.now()
  return stores.attempts.count(subject, iso(now), iso(now + lasts_ms))
}

/** Most servers deliver anna+anything@example.com to anna@example.com. */
export const mailboxOf = (email: string): string => email.replace(/\+[^@]*@/, '@')

/** False when there were too many in this hour. */
export async function mayEmail(
  parts: CountParts,
  kind: string,
  { id }: Pick<UserRow, 'id'>,
): Promise<boolean> {
  return (await counted(parts, `email ${kind} ${id}`, hour_ms)) <= emails_per_hour
}

/** False when there were too many in this hour. */
export async function mayEmailUnconfirmed(
  parts: CountParts,
  email: string,
  source: string,
): Promise<boolean> {
  const count = (subject: string): Promise<number> => counted(parts, `unconfirmed ${subject}`, hour_ms)
  const mailbox = mailboxOf(email)
  const ofNetwork = await count(`${neighbourhood(source)} ${mailbox}`)
  if (ofNetwork > unconfirmed_emails.ofNetwork) return false
  if ((await count(mailbox)) <= unconfirmed_emails.ofAll) return true
  return ofNetwork === 1 && (await count(`reserve ${mailbox}`)) <= unconfirmed_emails.reserve
}
