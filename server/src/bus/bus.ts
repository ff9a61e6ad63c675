// The bus carries news between rooms, and later between nodes: short facts that something changed, never bytes of
// sessions and never anything that would be lost if nobody listened. A hearer asks the database for the truth.
import type { DeviceStatus } from '@hawser/contract/devices'

export interface News {
  /** Its name, status or facts changed, or it is gone. */
  'device.changed': { tenant_id: string; uid: string; status: DeviceStatus | 'gone' }
  'namespace.changed': { tenant_id: string }
  /** Its settings changed, or it is gone. */
  'connector.changed': { tenant_id: string; uid: string }
  /** A live session must end now. */
  'session.closed': { tenant_id: string; uid: string }
}

export interface Bus {
  tell<K extends keyof News>(what: K, news: News[K]): void
  hear<K extends keyof News>(what: K, hearer: (news: News[K]) => void): Disposable
}
