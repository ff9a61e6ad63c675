// Sessions outlive their clients, for as long as their namespace says.

export const heldSessions = {
  name: 'held sessions',
  statements(): string[] {
    return [
      'alter table namespaces add column hold_sessions integer not null default 1800',
      'alter table namespaces add column hold_unknown integer not null default 0',
      "alter table sessions add column held_until text not null default ''",
      "alter table sessions add column resumes text not null default ''",
    ]
  },
}
