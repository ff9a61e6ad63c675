// Others type in a session, too, and everybody sees who is there.

export const sharedSessions = {
  name: 'shared sessions',
  statements(): string[] {
    return [
      'alter table namespaces add column join_without_consent integer not null default 0',
      "alter table sessions add column participants text not null default '[]'",
    ]
  },
}
