// Look-ups by callers whose namespace is not known yet. The gate makes two of them on every request: one
// joined point look-up each, so that a removed member, a changed role or a deleted key counts from the next
// request.
import type { Role } from '@hawser/contract/access'
import { sql } from 'kysely'
import type { AllNamespaces } from './context.ts'

export interface UserStanding {
  username: string
  epoch: number
  kept_token: string | null
  role: Role | null
  member_epoch: string | null
  /** When the sign-in was last used, roughly; null: it has ended. */
  used_at: string | null
}

export interface KeyStanding {
  tenant_id: string
  name: string
  role: Role
  created_by: string
  expires_in: number
  creator_role: Role
}

export interface NamedKey {
  role: Role
  created_by: string
  expires_in: number
  creator_role: Role
  creator_epoch: string
}

export function callerStore({ db }: AllNamespaces) {
  const userQuery =
    sql`select users.username, users.epoch, users.kept_token, members.role, members.epoch as member_epoch,
    sign_ins.used_at from users
    left join members on members.user_id = users.id and members.tenant_id = ${''}
    left join sign_ins on sign_ins.user_id = users.id and sign_ins.id = ${''} where users.id = ${''}`.compile(
      db,
    )
  const keyQuery =
    sql`select api_keys.tenant_id, api_keys.name, api_keys.role, api_keys.created_by, api_keys.expires_in,
    members.role as creator_role from api_keys
    join members on members.tenant_id = api_keys.tenant_id and members.user_id = api_keys.created_by where api_keys.hash = ${''}`.compile(
      db,
    )
  return {
    async user(id: string, tenant_id: string, sign_in = ''): Promise<UserStanding | undefined> {
      return (await db.executeQuery<UserStanding>({ ...userQuery, parameters: [tenant_id, sign_in, id] }))
        .rows[0]
    },
    async key(hash: string): Promise<KeyStanding | undefined> {
      return (await db.executeQuery<KeyStanding>({ ...keyQuery, parameters: [hash] })).rows[0]
    },
    keyNamed: (tenant_id: string, name: string): Promise<NamedKey | undefined> =>
      db
        .selectFrom('api_keys')
        .innerJoin('members', (join) =>
          join
            .onRef('members.tenant_id', '=', 'api_keys.tenant_id')
            .onRef('members.user_id', '=', 'api_keys.created_by'),
        )
        .select(['api_keys.role', 'api_keys.created_by', 'api_keys.expires_in'])
        .select(['members.role as creator_role', 'members.epoch as creator_epoch'])
        .where('api_keys.tenant_id', '=', tenant_id)
        .where('api_keys.name', '=', name)
        .executeTakeFirst(),
    async namespaceOfKey(hash: string): Promise<string | undefined> {
      return (await db.selectFrom('api_keys').select('tenant_id').where('hash', '=', hash).executeTakeFirst())
        ?.tenant_id
    },
    /** The uid alone identifies the namespace, which is part of what it is derived from. */
    async namespaceOfDevice(uid: string): Promise<string | undefined> {
      return (await db.selectFrom('devices').select('tenant_id').where('uid', '=', uid).executeTakeFirst())
        ?.tenant_id
    },
  }
}
