// Tokens and codes that work once: activation, password recovery, a changed address waiting to be confirmed,
// a sign-in waiting for its second factor, reset codes, the set-up code. Only hashes are kept.
import { isOne, type ServerContext } from './context.ts'

export type TokenKind =
  | 'activation'
  | 'recovery'
  | 'confirm-email'
  | 'confirm-recovery-email'
  | 'mfa-sign-in'
  | 'mfa-recovered'
  | 'mfa-reset-main'
  | 'mfa-reset-recovery'
  | 'setup'
  | 'service'

export function tokenStore({ db }: ServerContext) {
  return {
    insert: (token: {
      kind: TokenKind
      hash: string
      user_id: string | null
      expires_at: string
      /** The name that a sign-in began with. */
      typed?: string
    }) =>
      db
        .insertInto('one_time_tokens')
        .values({ typed: null, ...token, tries: 0 })
        .execute(),

    find: (kind: TokenKind, hash: string, now: string) =>
      db
        .selectFrom('one_time_tokens')
        .selectAll()
        .where('kind', '=', kind)
        .where('hash', '=', hash)
        .where('expires_at', '>', now)
        .executeTakeFirst(),

    /** Takes the token away; true for the one caller who got it. */
    spend: (kind: TokenKind, hash: string, now: string) =>
      isOne(
        db
          .deleteFrom('one_time_tokens')
          .where('kind', '=', kind)
          .where('hash', '=', hash)
          .where('expires_at', '>', now),
      ),

    async miss(kind: TokenKind, hash: string): Promise<number> {
      const row = await db
        .updateTable('one_time_tokens')
        .set((eb) => ({ tries: eb('tries', '+', 1) }))
        .where('kind', '=', kind)
        .where('hash', '=', hash)
        .returning('tries')
        .executeTakeFirst()
      return row?.tries ?? 0
    },

    removeOf: (user_id: string, kind: TokenKind) =>
      db.deleteFrom('one_time_tokens').where('user_id', '=', user_id).where('kind', '=', kind).execute(),
    removeAllOf: (user_id: string) =>
      db.deleteFrom('one_time_tokens').where('user_id', '=', user_id).execute(),
    removeKind: (kind: TokenKind) => db.deleteFrom('one_time_tokens').where('kind', '=', kind).execute(),
    sweep: (now: string) => db.deleteFrom('one_time_tokens').where('expires_at', '<=', now).execute(),
  }
}
