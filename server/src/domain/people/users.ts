// Users: sign-in with a password, tokens, the profile, registration and account recovery. Answers and timing
// do not reveal whether a user exists, except where the interface demands a 409 at registration.
import { Failure } from '@hawser/contract/failures'
import { patterns } from '@hawser/contract/fields'
import type { Bus } from '../../bus/bus.ts'
import { day_ms, hour_ms, iso, minute_ms, type Clock } from '../../kit/clock.ts'
import { newUserId, newUuid } from '../../kit/ids.ts'
import type { Lifetime } from '../../kit/lifetime.ts'
import type { Vault } from '../../kit/secrets.ts'
import type { Mailer } from '../../mail/mailer.ts'
import type { Emails } from '../../mail/emails.ts'
import type { TokenKind } from '../../storage/one-time-tokens.ts'
import type { Stores, StoresInTransaction } from '../../storage/stores.ts'
import type { UserRow } from '../../storage/users.ts'
import { theAdministrator, type Audit, type AuditActor, type Recorder } from '../audit/audit.ts'
import { callingUser, endOfIssued, signInOf, type Caller, type UserCaller } from '../callers/callers.ts'
import { hashPassword, isForeign, passwordMatches, type WaitingCaller } from './credentials.ts'
import { countingEmail, endClaims, lockAsRead, setPassword, withFormer, type Identity } from './identity.ts'
import { signInPolicy, type Lockout } from './lockout.ts'
import type { CallEnd, Rules } from '../callers/rules.ts'
import { signInSubject, type SignIn, type SignInAttempt } from './sign-in.ts'

export interface UserParts {
  stores: Stores
  audit: Audit
  bus: Bus
  vault: Vault
  clock: Clock
  lockout: Lockout
  signIn: SignIn
  mailer: Mailer
  emails: Emails
  identity: Identity
  background: Lifetime
  registration: 'open' | 'invited' | 'closed'
}

/** E-mails of one kind to one user: enough for a few retries, too few to flood a mailbox. */
const emails_per_hour = 5
const mfa_token_ms = 30 * minute_ms
const newUsername = new RegExp(patterns.username)
/** Accounts that wait for one address, of those that get another link to confirm it. */
const mostWaiting = 5

export function users(parts: UserParts): Rules<'users'> & { admin: UserAdministration } {
  const { stores, audit, bus, vault, clock, lockout, signIn, identity, background } = parts

  let noBcryptLeft = false
  /**
   * Asks the database until no bcrypt hash is left: only an import adds more, while the server is stopped.
   */
  async function bcryptInUse(): Promise<boolean> {
    noBcryptLeft ||= !(await stores.users.anyBcrypt())
    return !noBcryptLeft
  }

  async function login(username: string, password: string, by: WaitingCaller, attempt: SignInAttempt) {
    const identifier = username.toLowerCase()
    const found = await stores.users.findByIdentifier(identifier)
    attempt.user = found
    const user = await lockout.judge(
      signInSubject(by.source, identifier),
      signInPolicy,
      (headers) => new Failure('wrongCredentials', { headers }),
      async () =>
        (await passwordMatches(password, found?.password, by, await bcryptInUse())) ? found : undefined,
      // The count goes on to the second factor: otherwise the right password would buy any number of codes.
      (row) => row.mfa_secret !== null,
    )
    if (isForeign(user.password))
      await stores.users.replaceHash(user.id, user.password, await hashPassword(password, by))
    const headers = { 'x-account-lockout': '0' }
    if (user.confirmed === 0) throw new Failure('unconfirmed', { headers })
    if (user.mfa_secret !== null) {
      const token = await stores.transaction(async (inside) => {
        await lockAsRead(inside, user)
        return issue(inside, 'mfa-sign-in', user.id, mfa_token_ms, identifier)
      })
      throw new Failure('mfaRequired', { headers: { ...headers, 'x-mfa-token': token } })
    }
    return { answer: await signIn.signedIn(user, attempt), headers }
  }

  const signInWith: Rules<'users'>['login'] = ({ body }, caller, end) =>
    signIn.attempt('password', caller, (attempt) =>
      login(body.username, body.password, waiterOf(caller, end), attempt),
    )

  /** A new single-use token; the database gets its keyed hash only. */
  async function issue(
    inside: StoresInTransaction,
    kind: TokenKind,
    user_id: string,
    lives_ms: number,
    typed?: string,
  ): Promise<string> {
    const token = newUuid()
    await inside.tokens.insert({
      kind,
      hash: vault.mark(kind, token),
      user_id,
      expires_at: iso(clock.now() + lives_ms),
      ...(typed === undefined ? {} : { typed }),
    })
    return token
  }

  /** Counts an e-mail to a user; false when there were too many in this hour. */
  async function mayEmail(kind: string, user: UserRow): Promise<boolean> {
    const now = clock.now()
    return (
      (await stores.attempts.count(`email ${kind} ${user.id}`, iso(now), iso(now + hour_ms))) <=
      emails_per_hour
    )
  }

  interface Link {
    readonly kind: 'activation' | 'recovery'
    find(): Promise<readonly UserRow[]>
    wanted(user: UserRow): boolean
    /** Where the request came from. */
    readonly source: string
  }

  /**
   * Sends links by e-mail after the answer, so that the answer takes the same time whether or not the user exists.
   */
  function sendLink({ kind, find, wanted, source }: Link): void {
    background.later(`email.${kind}`, async () => {
      for (const found of await find()) {
        if (!wanted(found) || !(await mayEmail(kind, found))) continue
        if (found.confirmed === 0 && !(await identity.mayEmailUnconfirmed(found.email, source))) continue
        // The user is locked so that the link goes to the address that counts when the link begins to work: an
        // undo ends it.
        const email = await stores.transaction(async (inside) => {
          const user = await inside.users.lock(found.id)
          if (!user || !wanted(user)) return undefined
          await inside.tokens.removeOf(user.id, kind)
          const token = await issue(inside, kind, user.id, day_ms)
          const to = { to: countingEmail(user), name: user.name, username: user.username }
          return kind === 'activation'
            ? parts.emails.activation({ ...to, email: user.email, token })
            : parts.emails.recovery({ ...to, id: user.id, token })
        })
        if (email) await parts.mailer.send(email)
      }
    })
  }
  const only = (user: UserRow | undefined): readonly UserRow[] => (user ? [user] : [])
  const byId = (id: string) => async () => only(await stores.users.find(id))
  /** Accounts that wait for an address: the one that has the name, and those that claim it as their address. */
  async function waiting(name: string): Promise<readonly UserRow[]> {
    const named = await stores.users.findByIdentifier(name)
    const claiming = await stores.addressClaims.of(name, mostWaiting)
    return [...only(named), ...claiming.filter(({ id }) => id !== named?.id)]
  }

  async function namespaceToken(caller: UserCaller, tenant: string) {
    const user = await callingUser(stores, caller)
    const session = await signIn.session(user, signInOf(caller.token_id), tenant, endOfIssued(user, caller))
    if (!session) throw new Failure('notFound')
    // Whoever goes on in another namespace is signed in there from now on.
    if (tenant !== caller.tenant_id)
      await audit.eventOnce(caller, {
        action: 'user.signed-in',
        target: targetOf(user),
        detail: { method: 'token of another namespace' },
        tenant_id: tenant,
      })
    return session
  }

  interface Profile {
    name?: string
    username?: string
    email?: string
    recovery_email?: string
  }

  /**
   * The columns that a change of the profile writes, and no others, because another request may write those.
   */
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
      ...(change.name === undefined ? {} : { name: change.name }),
      ...(change.username === undefined ? {} : { username }),
      ...(change.email === undefined ? {} : { email }),
      ...(change.recovery_email === undefined ? {} : { recovery_email }),
    }
  }

  /** Changes all or nothing: a refused address must not leave a new password behind. */
  async function change(
    caller: UserCaller,
    end: CallEnd | undefined,
    profile: Profile,
    passwords?: { current: string | undefined; next: string },
  ): Promise<void> {
    const user = await callingUser(stores, caller)
    const { id } = user
    const columns = withFormer(user, columnsOf(user, profile))
    const changed = await identity.changed(user, columns)
    const password = passwords && (await newHash(user, passwords, caller, waiterOf(caller, end)))
    let notify = (): void => {}
    await orTaken(columns, id, () =>
      audit.change(caller, async (inside, record) => {
        await lockAsRead(inside, user)
        await mustBeFree(inside, columns, id)
        if (columns.username !== user.username) mustBeOwnName(columns.username, countingEmail(user))
        record({
          action: 'user.updated',
          target: targetOf(user),
          before: audited(user),
          after: audited({ ...user, ...columns }),
          tenant_id: '',
        })
        if (changed.length > 0) notify = await identity.saveUndo(inside, user, changed, caller.source)
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
    { current, next }: { current: string | undefined; next: string },
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

  interface Names {
    username?: string
    email?: string
  }

  /** Refuses with the names of the fields that other users have. */
  async function mustBeFree(from: Pick<Stores, 'users'>, fields: Names, except: string): Promise<void> {
    const taken = await from.users.taken(fields, except)
    if (taken.length > 0) throw new Failure('takenFields', { fields: taken })
  }

  /** Refuses what `write` could not do because another request took a name a moment ago. */
  async function orTaken(fields: Names, except: string, write: () => Promise<unknown>): Promise<void> {
    try {
      await write()
    } catch (error) {
      if (stores.isDuplicate(error)) await mustBeFree(stores, fields, except)
      throw error
    }
  }

  /** Makes an account that waits for its address to be confirmed. */
  async function register(fields: NewUser, by: Caller, end?: CallEnd): Promise<void> {
    const { id } = await create(fields, false, by, end)
    sendLink({ kind: 'activation', find: byId(id), wanted: () => true, source: by.source })
  }

  /** Set-up and the administrator create confirmed users; people who register are not confirmed yet. */
  async function create(
    fields: NewUser,
    confirmed: boolean,
    by: Caller | AuditActor = theAdministrator,
    end?: CallEnd,
    invited?: Invited,
  ): Promise<UserRow> {
    const row: UserRow = {
      id: newUserId(),
      name: fields.name,
      username: fields.username.toLowerCase(),
      email: fields.email.toLowerCase(),
      former_email: null,
      recovery_email: null,
      former_recovery_email: null,
      password: await hashPassword(fields.password, waiterOf(by, end)),
      confirmed: confirmed ? 1 : 0,
      // Whoever was invited did not set the server up either.
      registered: confirmed && !invited ? 0 : 1,
      epoch: 1,
      kept_token: null,
      email_marketing: fields.email_marketing ? 1 : 0,
      max_namespaces: -1,
      preferred_tenant: null,
      mfa_secret: null,
      mfa_step: 0,
      created_at: iso(clock.now()),
      last_login_at: null,
    }
    await orTaken(row, row.id, () =>
      audit.change(by, async (inside, record) => {
        // The link that was followed, or the administrator, says whose the address is.
        if (confirmed) {
          await inside.addressClaims.hold(row.email)
          await endClaims(inside, record, row)
        }
        await mustBeFree(inside, row, row.id)
        mustBeOwnName(row.username, row.email)
        await inside.users.insert(row)
        const action = confirmed && !invited ? 'user.created' : 'user.registered'
        record({ action, target: targetOf(row), after: audited(row), tenant_id: '' })
        await invited?.(inside, record, row)
      }),
    )
    return row
  }

  return {
    admin: {
      create: (fields, confirmed, by) => create(fields, confirmed, by),
      register,
      createInvited: (fields, by, end, invited) => create(fields, true, by, end, invited),
    },

    login: signInWith,
    auth: signInWith,

    async refresh({ query }, caller) {
      const user = await callingUser(stores, caller)
      const { token_id, token_tenant } = caller
      return signIn.renewed(
        user,
        signInOf(token_id),
        query.keep_namespace ? token_tenant : undefined,
        endOfIssued(user, caller),
      )
    },
    namespaceToken: ({ params }, caller) => namespaceToken(caller, params.tenant),
    token: ({ params }, caller) => namespaceToken(caller, params.tenant),

    update({ body }, caller, end) {
      const { password, current_password, ...profile } = body
      return change(
        caller,
        end,
        profile,
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

    async register({ body }, caller, end) {
      if (parts.registration !== 'open') throw new Failure('registrationClosed')
      await register(body, caller, end)
    },
    resend({ body }, { source }) {
      const find = () => waiting(body.username.toLowerCase())
      sendLink({ kind: 'activation', find, wanted: (user) => user.confirmed === 0, source })
      background.later('email.confirm-email', async () => {
        for (const user of await find())
          if (user.former_email && (await mayEmail('confirm-email', user)))
            await identity.sendConfirmation(user.id, 'email', source)
      })
    },
    confirmEmail: ({ body }, caller, end) => identity.confirm(body, caller, waiterOf(caller, end)),
    async undoChange({ body }, caller) {
      const { user_id, passwordGone } = await identity.undo(body.token, caller)
      bus.tell('user.changed', { user_id })
      if (passwordGone)
        sendLink({ kind: 'recovery', find: byId(user_id), wanted: () => true, source: caller.source })
    },
    activate: ({ query: { token, email } }, caller) =>
      identity.confirm({ token, accountOf: email.toLowerCase() }, caller, caller),
    recover({ body }, { source }) {
      const identifier = body.username ?? body.email
      if (identifier === undefined)
        throw new Failure('invalid', { message: 'username or email: one of them is needed' })
      const find = async () => only(await stores.users.findByIdentifier(identifier.toLowerCase()))
      sendLink({ kind: 'recovery', find, wanted: () => true, source })
    },
    async resetPassword({ params, body }, caller, end) {
      const kind = 'recovery'
      const hash = vault.mark(kind, body.token)
      const now = iso(clock.now())
      const token = await stores.tokens.find(kind, hash, now)
      if (!token || token.user_id !== params.uid) throw new Failure('wrongToken')
      const password = await hashPassword(body.password, waiterOf(caller, end))
      await audit.change(caller, async (inside, record) => {
        const user = await inside.users.lock(params.uid)
        if (!user || !(await inside.tokens.spend(kind, hash, now))) throw new Failure('wrongToken')
        await setPassword(inside, record, user, { password, now, method: 'link by e-mail' })
      })
      bus.tell('user.changed', { user_id: params.uid })
    },
  }
}

const waiterOf = ({ source }: { readonly source: string }, end: CallEnd | undefined): WaitingCaller => ({
  source,
  signal: end?.signal,
})

const targetOf = ({ id, username }: Pick<UserRow, 'id' | 'username'>) => ({
  kind: 'user',
  id,
  name: username,
})

/** A name with an @ must be the address of its account, so that it cannot be taken for somebody else's. */
function mustBeOwnName(username: string | undefined, email: string): void {
  if (username?.includes('@') && username !== email)
    throw new Failure('invalidFields', { fields: ['username'] })
}

/** What entries of the audit log show of a user. */
const audited = ({ name, username, email, recovery_email }: UserRow) => ({
  name,
  username,
  email,
  recovery_email,
})

export interface NewUser {
  name: string
  username: string
  email: string
  password: string
  email_marketing?: boolean
}

/** What set-up and the administrator's commands use beside the operations. */
export interface UserAdministration {
  /** `by` is who does it, for the audit log; without it, the administrator does. */
  create(fields: NewUser, confirmed: boolean, by?: Caller | AuditActor): Promise<UserRow>
  /** Makes an account that waits for its address to be confirmed. */
  register(fields: NewUser, by: Caller, end?: CallEnd): Promise<void>
  /** Makes a confirmed account of somebody who was invited, and does what `invited` does, or neither. */
  createInvited(fields: NewUser, by: Caller, end: CallEnd | undefined, invited: Invited): Promise<UserRow>
}

/** What follows from an invitation, in the transaction that makes the account. */
type Invited = (inside: StoresInTransaction, record: Recorder, user: UserRow) => Promise<void>
