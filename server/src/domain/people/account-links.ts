// E-mailed links: activation of an account, confirmation of an address, a new password, undoing a change.
// Answers and timing do not reveal whether a user exists.
import { Failure } from '@hawser/contract/failures'
import { day_ms, iso } from '../../kit/clock.ts'
import type { UserRow } from '../../storage/users.ts'
import type { Parts } from '../audit/parts.ts'
import type { Rules } from '../callers/rules.ts'
import type { confirmations } from './confirmations.ts'
import { hashPassword, waiterOf } from './credentials.ts'
import { mayEmail, mayEmailUnconfirmed } from './email-bounds.ts'
import { countingEmail, issueToken, setPassword } from './identity.ts'
import type { IdentityChanges } from './identity-changes.ts'

export interface AccountLinkParts extends Parts {
  confirmations: ReturnType<typeof confirmations>
  identityChanges: IdentityChanges
}

type AccountLinkRules = Pick<
  Rules<'users'>,
  'resend' | 'confirmEmail' | 'undoChange' | 'activate' | 'recover' | 'resetPassword'
>
export interface AccountLinks {
  readonly rules: AccountLinkRules
  sendActivation(user_id: string, source: string): void
}

/** At most this many accounts that wait for one address get another link. */
const mostWaiting = 5
interface Link {
  readonly kind: 'activation' | 'recovery'
  find(): Promise<readonly UserRow[]>
  wanted(user: UserRow): boolean
  readonly source: string
}

const always = (): boolean => true
const only = (user: UserRow | undefined): readonly UserRow[] => (user ? [user] : [])

export function accountLinks(parts: AccountLinkParts): AccountLinks {
  const { stores, audit, bus, vault, clock, confirmations, identityChanges, background } = parts

  /** Sends links after the answer, so that the answer takes the same time whether or not the user exists. */
  function sendLink({ kind, find, wanted, source }: Link): void {
    background.later(`email.${kind}`, async () => {
      for (const found of await find()) {
        if (!wanted(found) || !(await mayEmail(parts, kind, found))) continue
        if (found.confirmed === 0 && !(await mayEmailUnconfirmed(parts, found.email, source))) continue
        // Locked, so that the link goes to the address that counts when it begins to work: an undo ends it.
        const email = await stores.transaction(async (inside) => {
          const user = await inside.users.lock(found.id)
          if (!user || !wanted(user)) return undefined
          await inside.tokens.removeOf(user.id, kind)
          const token = await issueToken(parts, inside, { kind, user_id: user.id, lives_ms: day_ms })
          const to = { to: countingEmail(user), name: user.name, username: user.username }
          return kind === 'activation'
            ? parts.emails.activation({ ...to, email: user.email, token })
            : parts.emails.recovery({ ...to, id: user.id, token })
        })
        if (email) await parts.mailer.send(email)
      }
    })
  }
  const byId = (id: string) => async () => only(await stores.users.find(id))
  /** Accounts that wait for an address: the one that has the name, and those that claim it as their address. */
  async function waiting(name: string): Promise<readonly UserRow[]> {
    const named = await stores.users.findByIdentifier(name)
    const claiming = await stores.addressClaims.of(name, mostWaiting)
    return [...only(named), ...claiming.filter(({ id }) => id !== named?.id)]
  }

  return {
    sendActivation: (user_id, source) =>
      sendLink({ kind: 'activation', find: byId(user_id), wanted: always, source }),
    rules: {
      resend({ body }, { source }) {
        const find = () => waiting(body.username.toLowerCase())
        sendLink({ kind: 'activation', find, wanted: (user) => user.confirmed === 0, source })
        background.later('email.confirm-email', async () => {
          for (const user of await find())
            if (user.former_email && (await mayEmail(parts, 'confirm-email', user)))
              await confirmations.send(user.id, 'email', source)
        })
      },
      confirmEmail: ({ body }, caller, end) => confirmations.confirm(body, caller, waiterOf(caller, end)),
      async undoChange({ body }, caller) {
        const { user_id, passwordGone } = await identityChanges.undo(body.token, caller)
        bus.tell('user.changed', { user_id })
        if (passwordGone)
          sendLink({ kind: 'recovery', find: byId(user_id), wanted: always, source: caller.source })
      },
      activate: ({ query: { token, email } }, caller) =>
        confirmations.confirm({ token, accountOf: email.toLowerCase() }, caller, caller),
      recover({ body }, { source }) {
        const identifier = body.username ?? body.email
        if (identifier === undefined)
          throw new Failure('invalid', { message: 'username or email: one of them is needed' })
        const find = async () => only(await stores.users.findByIdentifier(identifier.toLowerCase()))
        sendLink({ kind: 'recovery', find, wanted: always, source })
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
    },
  }
}
