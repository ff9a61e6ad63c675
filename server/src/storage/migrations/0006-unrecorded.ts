// A namespace may choose that sessions go on when they cannot be recorded, and a session says so when it did.
// Besides, an index for the sessions of one namespace that are going on: the console shows them apart.

export const unrecorded = {
  name: 'unrecorded',
  statements(): string[] {
    return [
      'alter table namespaces add column continue_unrecorded integer not null default 0',
      'alter table sessions add column unrecorded integer not null default 0',
      'create index sessions_live_by_start on sessions (tenant_id, started_at, uid) where active = 1',
    ]
  },
}
