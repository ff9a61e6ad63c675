// A device remembers how often its agent has to ping: what the agent has learnt of the networks between them.
export const pingIntervals = {
  name: 'ping intervals',
  statements: (): string[] => ['alter table devices add column ping_s integer not null default 0'],
}
