// Accounts: how they are created, and who may have which name. A username and a confirmed e-mail address
// belong to one account only.
import { Failure } from '@hawser/contract/failures'
import { iso } from '../../kit/clock.ts'
import { newUserId } from '../../kit/ids.ts'
import type { Stores, StoresInTransaction } from '../../storage/stores.ts'
import type { UserRow } from '../../storage/users.ts'
import { theAdministrator, type AuditActor, type Recorder } from '../audit/audit.ts'
import type { With } from '../audit/parts.ts'
import type { Caller } from '../callers/callers.ts'
import type { CallEnd, Rules } from '../callers/rules.ts'
import type { AccountLinks } from './account-links.ts'
import { hashPassword, waiterOf } from './credentials.ts'
import { endClaims, userTarget } from './identity.ts'

export interface AccountParts extends With<'stores' | 'audit' | 'clock'> {
  registration: 'open' | 'invited' | 'closed'
}

export interface NewUser {
  name: string
  username: string
  email: string
  password: string
  email_marketing?: boolean
}

/** For set-up and the administrator's commands. */
export interface UserAdministration {
  /** `by`: the actor for the audit log; by default the administrator. */
  create(fields: NewUser, confirmed: boolean, by?: Caller | AuditActor): Promise<UserRow>
  /** The account waits for its address to be confirmed. */
  register(fields: NewUser, by: Caller, end?: CallEnd): Promise<void>
  /** Makes a confirmed account and runs `invited`, or neither. */
  createInvited(fields: NewUser, by: Caller, end: CallEnd | undefined, invited: Invited): Promise<UserRow>
}

/** The effects of an invitation, in the transaction that creates the account. */
type Invited = (inside: StoresInTransaction, record: Recorder, user: UserRow) => Promise<void>

interface Names {
  username?: string
  email?: string
}

/** Refuses with the names of the taken fields. */
export async function mustBeFree(from: Pick<Stores, 'users'>, fields: Names, except: string): Promise<void> {
  const taken = await from.users.taken(fields, except)
  if (taken.length > 0) throw new Failure('takenFields', { fields: taken })
}

/** Refuses when another request took a name a moment ago. */
export async function orTaken(
  stores: Stores,
  fields: Names,
  except: string,
  write: () => Promise<unknown>,
): Promise<void> {
  try {
    await write()
  } catch (error) {
    if (stores.isDuplicate(error)) await mustBeFree(stores, fields, except)
    throw error
  }
}

/** A name with an @ must be the address of its account, so that it cannot be taken for somebody else's. */
export function mustBeOwnName(username: string | undefined, email: string): void {
  if (username?.includes('@') && username !== email)
    throw new Failure('invalidFields', { fields: ['username'] })
}

export const auditedUser = ({ name, username, email, recovery_email }: UserRow) => ({
  name,
  username,
  email,
  recovery_email,
})

function rowOf(fields: NewUser, password: string, created_at: string): UserRow {
  return {
    id: newUserId(),
    name: fields.name,
    username: fields.username.toLowerCase(),
    email: fields.email.toLowerCase(),
    former_email: null,
    recovery_email: null,
    former_recovery_email: null,
    password,
    confirmed: 0,
    registered: 1,
    epoch: 1,
    kept_token: null,
    email_marketing: fields.email_marketing ? 1 : 0,
    max_namespaces: -1,
    preferred_tenant: null,
    mfa_secret: null,
    mfa_step: 0,
    created_at,
    last_login_at: null,
  }
}

export function accounts(
  { stores, audit, clock, registration }: AccountParts,
  { sendActivation }: Pick<AccountLinks, 'sendActivation'>,
): Pick<Rules<'users'>, 'register'> & { admin: UserAdministration } {
  async function create(
    fields: NewUser,
    confirmed: boolean,
    by: Caller | AuditActor = theAdministrator,
    end?: CallEnd,
    invited?: Invited,
  ): Promise<UserRow> {
    const password = await hashPassword(fields.password, waiterOf(by, end))
    const row: UserRow = {
      ...rowOf(fields, password, iso(clock.now())),
      confirmed: confirmed ? 1 : 0,
      // Only set-up and the administrator create users who count as founders.
      registered: confirmed && !invited ? 0 : 1,
    }
    await orTaken(stores, row, row.id, () =>
      audit.change(by, async (inside, record) => {
        // The opened link, or the administrator, proves whose address it is.
        if (confirmed) {
          await inside.addressClaims.hold(row.email)
          await endClaims(inside, record, row)
        }
        await mustBeFree(inside, row, row.id)
        mustBeOwnName(row.username, row.email)
        await inside.users.insert(row)
        const action = confirmed && !invited ? 'user.created' : 'user.registered'
        record({ action, target: userTarget(row), after: auditedUser(row), tenant_id: '' })
        await invited?.(inside, record, row)
      }),
    )
    return row
  }

  async function register(fields: NewUser, by: Caller, end?: CallEnd): Promise<void> {
    const { id } = await create(fields, false, by, end)
    sendActivation(id, by.source)
  }

  return {
    admin: {
      create: (fields, confirmed, by) => create(fields, confirmed, by),
      register,
      createInvited: (fields, by, end, invited) => create(fields, true, by, end, invited),
    },

    async register({ body }, caller, end) {
      if (registration !== 'open') throw new Failure('registrationClosed')
      await register(body, caller, end)
    },
  }
}
