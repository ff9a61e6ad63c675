// The profile and the password of a user who is signed in.
import { defined } from '@hawser/contract/defined'
import { Failure } from '@hawser/contract/failures'
import { patterns } from '@hawser/contract/fields'
import { iso } from '../../kit/clock.ts'
import type { UserRow } from '../../storage/users.ts'
import type { With } from '../audit/parts.ts'
import { callingUser, type UserCaller } from '../callers/callers.ts'
import type { CallEnd, Rules } from '../callers/rules.ts'
import { auditedUser, mustBeFree, mustBeOwnName, orTaken } from './accounts.ts'
import { hashPassword, passwordMatches, waiterOf, type WaitingCaller } from './credentials.ts'
import { countingEmail, lockAsRead, setPassword, userTarget, withFormer } from './identity.ts'
import type { IdentityChanges } from './identity-changes.ts'
import type { Lockout } from './lockout.ts'

interface ProfileParts extends With<'stores' | 'audit' | 'bus' | 'clock'> {
  lockout: Lockout
  identityChanges: IdentityChanges
}

const newUsername = new RegExp(patterns.username)

interface Profile {
  name?: string
  username?: string
  email?: string
  recovery_email?: string
}

interface PasswordChange {
  readonly current: string | undefined
  readonly next: string
}

/** Only the columns that changed, because another request may write the others. */
function columnsOf(user: UserRow, change: Profile): Partial<UserRow> {
  const email = change.email?.toLowerCase() ?? user.email
  const recovery_email =
    change.recovery_email === undefined ? user.recovery_email : change.recovery_email.toLowerCase() || null
  const username = change.username?.toLowerCase() ?? user.username
  // An imported name may be longer, and forms send it back with the rest of the profile.
  if (username !== user.username && !newUsername.test(username))
    throw new Failure('invalidFields', { fields: ['username'] })
  if (change.recovery_email === '' && user.recovery_email !== null)
    throw new Failure('invalidFields', { fields: ['recovery_email'] })
  if (recovery_email !== null && (recovery_email === email || recovery_email === user.email))
    throw new Failure('invalidFields', { fields: ['email', 'recovery_email'] })
  return {
    ...defined({ name: change.name }),
    ...(change.username !== undefined && { username }),
    ...(change.email !== undefined && { email }),
    ...(change.recovery_email !== undefined && { recovery_email }),
  }
}

export function profile({
  stores,
  audit,
  bus,
  clock,
  lockout,
  identityChanges,
}: ProfileParts): Pick<Rules<'users'>, 'update' | 'updateData' | 'updatePassword'> {
  /** Changes all or nothing: a refused address must not leave a new password behind. */
  async function change(
    caller: UserCaller,
    end: CallEnd | undefined,
    wanted: Profile,
    passwords?: PasswordChange,
  ): Promise<void> {
    const user = await callingUser(stores, caller)
    const { id } = user
    const columns = withFormer(user, columnsOf(user, wanted))
    const changed = await identityChanges.changed(user, columns)
    const password = passwords && (await newHash(user, passwords, caller, waiterOf(caller, end)))
    let notify = (): void => {}
    await orTaken(stores, columns, id, () =>
      audit.change(caller, async (inside, record) => {
        await lockAsRead(inside, user)
        await mustBeFree(inside, columns, id)
        if (columns.username !== user.username) mustBeOwnName(columns.username, countingEmail(user))
        record({
          action: 'user.updated',
          target: userTarget(user),
          before: auditedUser(user),
          after: auditedUser({ ...user, ...columns }),
          tenant_id: '',
        })
        if (changed.length > 0) notify = await identityChanges.saveUndo(inside, user, changed, caller.source)
        if (Object.keys(columns).length > 0) await inside.users.save(id, columns)
        if (password !== undefined) {
          const now = iso(clock.now())
          await setPassword(inside, record, user, { password, now, kept_token: caller.token_id })
        }
      }),
    )
    notify()
    if (password !== undefined) bus.tell('user.changed', { user_id: id })
  }

  async function newHash(
    user: UserRow,
    { current, next }: PasswordChange,
    caller: UserCaller,
    by: WaitingCaller,
  ): Promise<string> {
    const wrong = () => new Failure('invalidFields', { fields: ['current_password'] })
    if (!current) throw wrong()
    await lockout.judgeSignedIn(
      'password',
      caller,
      wrong,
      async () => (await passwordMatches(current, user.password, by)) || undefined,
    )
    return hashPassword(next, by)
  }

  return {
    update({ body }, caller, end) {
      const { password, current_password, ...wanted } = body
      return change(
        caller,
        end,
        wanted,
        password === undefined ? undefined : { current: current_password, next: password },
      )
    },
    async updateData({ params, body }, caller) {
      if (params.id !== caller.id) throw new Failure('forbidden')
      await change(caller, undefined, body)
    },
    async updatePassword({ params, body }, caller, end) {
      if (params.id !== caller.id) throw new Failure('forbidden')
      await change(caller, end, {}, { current: body.current_password, next: body.new_password })
    },
  }
}
