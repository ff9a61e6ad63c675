// The meaning of a line of the shadow file (shadow(5)) for logins: a pure function of the line and of
// today's date.
//   name : hash : last change : least days : most days : warning : inactive : expiry : reserved     days since 1970
// The rules, which are those of sshd where it has any:
//   - an account is closed to everybody, keys included, once its expiry date has come, once its password has
//     been out of date for longer than the days of inactivity, and while an administrator has locked it (a
//     hash behind `!`);
//   - a password is of no use if there never was one (``, `!`, `*`), and if it is out of date or marked to be
//     changed at the next login: changing it needs a dialogue that we cannot have, so a key or the console
//     has to be used.
// Keys still work for an account without a password, which is how most machines in the cloud are reached.

export interface ShadowEntry {
  readonly hash: string
  readonly changed_days: number | undefined
  readonly most_days: number | undefined
  readonly inactive_days: number | undefined
  readonly expires_days: number | undefined
}

export interface AccountState {
  /** Undefined: the account is open. */
  readonly closed: string | undefined
  /** Why a password is refused; undefined: it may count. */
  readonly noPassword: string | undefined
}

export function readShadow(line: string): ShadowEntry | undefined {
  const fields = line.trim().split(':')
  const [name, hash, changed, , most, , inactive, expires] = fields
  if (!name || hash === undefined) return undefined
  return {
    hash,
    changed_days: days(changed),
    most_days: days(most),
    inactive_days: days(inactive),
    expires_days: days(expires),
  }
}

/** Empty and negative fields mean no limit. */
function days(field: string | undefined): number | undefined {
  return field !== undefined && /^\d{1,9}$/.test(field) ? Number(field) : undefined
}

export function today_days(now_ms: number): number {
  return Math.floor(now_ms / 86_400_000)
}

export function accountState(entry: ShadowEntry, today: number): AccountState {
  return { closed: closedBecause(entry, today), noPassword: noPasswordBecause(entry, today) }
}

function closedBecause(
  { hash, changed_days, most_days, inactive_days, expires_days }: ShadowEntry,
  today: number,
): string | undefined {
  if (/^!+[^!*]/.test(hash)) return 'account locked'
  if (expires_days !== undefined && today >= expires_days) return 'account expired'
  if (changed_days === undefined || most_days === undefined || inactive_days === undefined) return undefined
  return today > changed_days + most_days + inactive_days ? 'account inactive' : undefined
}

function noPasswordBecause(
  { hash, changed_days, most_days }: ShadowEntry,
  today: number,
): string | undefined {
  if (hash === '' || hash.startsWith('!') || hash.startsWith('*')) return 'no password'
  if (changed_days === 0) return 'password to be changed'
  if (changed_days !== undefined && most_days !== undefined && today > changed_days + most_days)
    return 'password expired'
  return undefined
}
