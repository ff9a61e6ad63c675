// All stores, and the one way to the namespaced ones: `of(tenant_id)`. There is no other, so a query on
// namespaced data cannot be written without its namespace.
import { sql } from 'kysely'
import { announcementStore } from './announcements.ts'
import { apiKeyStore } from './api-keys.ts'
import { attemptStore } from './attempts.ts'
import { billingStore, removedDeviceStore } from './billing.ts'
import { callerStore } from './callers.ts'
import { connectorStore, enabledConnectorStore } from './connectors.ts'
import type { Context } from './context.ts'
import { deviceStore } from './devices.ts'
import type { Opened } from './dialects/dialect.ts'
import { enrolmentKeyStore, loginKeyStore } from './enrolment-keys.ts'
import { firewallStore } from './firewall.ts'
import { hostKeyStore } from './host-keys.ts'
import { identityChangeStore } from './identity-changes.ts'
import { namespaceStore } from './namespaces.ts'
import { nodeStore } from './nodes.ts'
import { tokenStore } from './one-time-tokens.ts'
import { presenceStore } from './presence.ts'
import { publicKeyStore } from './public-keys.ts'
import { recordingKeyStore, recordingStore, unfinishedRecordingStore } from './recordings.ts'
import { liveSessionStore, sessionStore } from './sessions.ts'
import { shellHubKeyStore } from './shellhub-keys.ts'
import { signingKeyStore } from './signing-keys.ts'
import { userStore } from './users.ts'

function within(context: Context, tenant_id: string) {
  return {
    get devices() {
      return deviceStore(context, tenant_id)
    },
    get removedDevices() {
      return removedDeviceStore(context, tenant_id)
    },
    get publicKeys() {
      return publicKeyStore(context, tenant_id)
    },
    get enrolmentKeys() {
      return enrolmentKeyStore(context, tenant_id)
    },
    get loginKeys() {
      return loginKeyStore(context, tenant_id)
    },
    get firewall() {
      return firewallStore(context, tenant_id)
    },
    get apiKeys() {
      return apiKeyStore(context, tenant_id)
    },
    get sessions() {
      return sessionStore(context, tenant_id)
    },
    get connectors() {
      return connectorStore(context, tenant_id)
    },
  }
}

function all(context: Context) {
  return {
    users: userStore(context),
    identityChanges: identityChangeStore(context),
    tokens: tokenStore(context),
    attempts: attemptStore(context),
    signingKeys: signingKeyStore(context),
    shellHubKeys: shellHubKeyStore(context),
    hostKeys: hostKeyStore(context),
    liveSessions: liveSessionStore(context),
    recordings: recordingStore(context),
    recordingKeys: recordingKeyStore(context),
    unfinishedRecordings: unfinishedRecordingStore(context),
    namespaces: namespaceStore(context),
    nodes: nodeStore(context),
    announcements: announcementStore(context),
    presence: presenceStore(context),
    callers: callerStore(context),
    billing: billingStore(context),
    enabledConnectors: enabledConnectorStore(context),
    of: (tenant_id: string) => within(context, tenant_id),
  }
}

/** Stores inside a transaction. */
export type StoresInTransaction = ReturnType<typeof all>

export function stores(opened: Opened) {
  return {
    ...all({ db: opened.db, reader: opened.reader, dialect: opened.name, holds: false }),
    isDuplicate: opened.isDuplicate,
    /** Fails, as any query would, while the database is away. */
    ping: async (): Promise<void> => void (await sql`select 1`.execute(opened.db)),
    /**
     * All or nothing. Inside, use only the stores that are handed over, and wait for nothing but the
     * database: other requests wait for a SQLite transaction to end. The work may be run again from its
     * beginning when it met another transaction on PostgreSQL, so it changes nothing but the database.
     */
    transaction: <T>(work: (stores: StoresInTransaction) => Promise<T>): Promise<T> =>
      opened.again(() =>
        opened.db
          .transaction()
          .execute((trx) =>
            work(all({ db: trx, reader: trx, dialect: opened.name, holds: opened.name === 'postgres' })),
          ),
      ),
  }
}

export type Stores = ReturnType<typeof stores>
