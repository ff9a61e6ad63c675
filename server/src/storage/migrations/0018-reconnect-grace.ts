// A namespace says how long its sessions wait for a device whose connection is lost.

export const reconnectGrace = {
  name: 'reconnect grace',
  statements(): string[] {
    return ['alter table namespaces add column reconnect_grace_s integer not null default 300']
  },
}
