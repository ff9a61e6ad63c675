// Terminals outlive the server where the agent keeps them.

export const keptTerminals = {
  name: 'kept terminals',
  statements(): string[] {
    return [
      'alter table sessions add column kept_s integer not null default 0',
      "alter table sessions add column kept_for text not null default ''",
    ]
  },
}
