// All stores. Data of a namespace are reached through `of(tenant_id)`, whose stores can make no query without
// their tenant_id (context.ts). The stores that see several namespaces are listed in `acrossNamespaces`.
import { sql } from 'kysely'
import { acceptRuleStore } from './accept-rules.ts'
import { addressClaimStore } from './address-claims.ts'
import { agentReleaseStore, agentUpdateStore, updateKeyStore } from './agent-updates.ts'
import { announcementStore } from './announcements.ts'
import { apiKeyStore } from './api-keys.ts'
import { attemptStore } from './attempts.ts'
import { auditLogStore, auditStore } from './audit.ts'
import { auditStreamQueue, auditStreamStore } from './audit-streams.ts'
import { billingStore, removedDeviceStore } from './billing.ts'
import { budgetJudgementStore, budgetStore } from './budgets.ts'
import { callerStore } from './callers.ts'
import { certificateStore } from './certificates.ts'
import { connectorStore, enabledConnectorStore } from './connectors.ts'
import { inNamespace, type AllNamespaces, type ServerContext } from './context.ts'
import { listDevices } from './device-list.ts'
import { deviceEventStore, timelineStore } from './device-events.ts'
import { deviceNotesStore } from './device-notes.ts'
import { deviceStore, goneDeviceStore } from './devices.ts'
import type { Opened } from './dialects/dialect.ts'
import { enrolmentKeyStore, loginKeyStore } from './enrolment-keys.ts'
import { enrolmentTokenStore, presentedTokenStore } from './enrolment-tokens.ts'
import { firewallStore } from './firewall.ts'
import { hostKeyStore } from './host-keys.ts'
import { identityChangeStore } from './identity-changes.ts'
import { knownSourceStore } from './known-sources.ts'
import { oldRefusalStore, refusalStore } from './login-refusals.ts'
import { memberInvitationStore, presentedMemberInvitationStore } from './member-invitations.ts'
import { namespaceStore } from './namespaces.ts'
import { nodeStore } from './nodes.ts'
import { tokenStore } from './one-time-tokens.ts'
import { pairingStore } from './pairings.ts'
import { presenceStore } from './presence.ts'
import { publicKeyStore } from './public-keys.ts'
import { recordingKeyStore, recordingStore, unfinishedRecordingStore } from './recordings.ts'
import { searchQueueStore } from './search-queue.ts'
import { sessionEventBatchStore, sessionEventStore } from './session-events.ts'
import { presentedInvitationStore, sessionInvitationStore } from './session-invitations.ts'
import { presentedServiceStore, serviceStore } from './services.ts'
import { liveSessionStore, sessionStore } from './sessions.ts'
import { shellHubKeyStore } from './shellhub-keys.ts'
import { signInStore } from './sign-ins.ts'
import { signingKeyStore } from './signing-keys.ts'
import { totalStore } from './totals.ts'
import { trafficStore, trafficSumStore } from './traffic.ts'
import { userStore } from './users.ts'

function within(context: AllNamespaces, tenant_id: string) {
  const mine = inNamespace(context, tenant_id)
  return {
    get devices() {
      return deviceStore(mine, (query) => listDevices(context, tenant_id, query))
    },
    get deviceNotes() {
      return deviceNotesStore(mine)
    },
    get removedDevices() {
      return removedDeviceStore(mine)
    },
    get publicKeys() {
      return publicKeyStore(mine)
    },
    get enrolmentKeys() {
      return enrolmentKeyStore(mine)
    },
    get enrolmentTokens() {
      return enrolmentTokenStore(mine)
    },
    get acceptRules() {
      return acceptRuleStore(mine)
    },
    get loginKeys() {
      return loginKeyStore(mine)
    },
    get firewall() {
      return firewallStore(mine)
    },
    get apiKeys() {
      return apiKeyStore(mine)
    },
    get services() {
      return serviceStore(mine)
    },
    get sessions() {
      return sessionStore(mine)
    },
    get sessionEvents() {
      return sessionEventStore(mine)
    },
    get memberInvitations() {
      return memberInvitationStore(mine)
    },
    get sessionInvitations() {
      return sessionInvitationStore(mine)
    },
    get connectors() {
      return connectorStore(mine)
    },
    get refusals() {
      return refusalStore(mine)
    },
    get timeline() {
      return timelineStore(mine)
    },
    get traffic() {
      return trafficStore(mine)
    },
    get audit() {
      return auditStore(mine, context, tenant_id)
    },
    get auditStreams() {
      return auditStreamStore(mine)
    },
    get budgets() {
      return budgetStore(mine)
    },
  }
}

function ofServer(context: ServerContext) {
  return {
    users: userStore(context),
    signIns: signInStore(context),
    identityChanges: identityChangeStore(context),
    tokens: tokenStore(context),
    attempts: attemptStore(context),
    knownSources: knownSourceStore(context),
    signingKeys: signingKeyStore(context),
    hostKeys: hostKeyStore(context),
    certificates: certificateStore(context),
    recordingKeys: recordingKeyStore(context),
    announcements: announcementStore(context),
    pairings: pairingStore(context),
    agentReleases: agentReleaseStore(context),
    updateKeys: updateKeyStore(context),
  }
}

/** All stores that see several namespaces, with the reason for each group. */
function acrossNamespaces(context: AllNamespaces) {
  return {
    /** Namespaces and members are looked up before a namespace is known. */
    namespaces: namespaceStore(context),
    /** Whether an unconfirmed account is relied on is looked up in every namespace. */
    addressClaims: addressClaimStore(context),
    /** Keys, tokens, invitations and addresses of services name their namespace themselves. */
    callers: callerStore(context),
    presentedTokens: presentedTokenStore(context),
    presentedInvitations: presentedInvitationStore(context),
    presentedMemberInvitations: presentedMemberInvitationStore(context),
    presentedServices: presentedServiceStore(context),
    shellHubKeys: shellHubKeyStore(context),
    /** Presence, bytes and events are written in batches of many namespaces. */
    presence: presenceStore(context),
    trafficSums: trafficSumStore(context),
    deviceEvents: deviceEventStore(context),
    liveSessions: liveSessionStore(context),
    sessionEventBatches: sessionEventBatchStore(context),
    /** One sweep, one deliverer and one judge serve all namespaces. */
    auditLogs: auditLogStore(context),
    auditStreamQueue: auditStreamQueue(context),
    budgetJudgements: budgetJudgementStore(context),
    /** A lost node leaves devices and sessions of many namespaces behind. */
    nodes: nodeStore(context),
    /** Sweeps by age go through all namespaces. */
    recordings: recordingStore(context),
    oldRefusals: oldRefusalStore(context),
    goneDevices: goneDeviceStore(context),
    /** Nodes finish recordings of lost nodes, and index and update in turn across namespaces. */
    unfinishedRecordings: unfinishedRecordingStore(context),
    searchQueue: searchQueueStore(context),
    agentUpdates: agentUpdateStore(context),
    /** The payment provider names customers, not namespaces. */
    billing: billingStore(context),
    /** Metrics are about the server, not about a namespace. */
    totals: totalStore(context),
    /** The supervisor of connectors runs those of all namespaces. */
    enabledConnectors: enabledConnectorStore(context),
  }
}

function all(context: AllNamespaces) {
  return {
    ...ofServer(context),
    ...acrossNamespaces(context),
    of: (tenant_id: string) => within(context, tenant_id),
  }
}

export type StoresInTransaction = ReturnType<typeof all>

export function stores(opened: Opened) {
  return {
    ...all({ db: opened.db, reader: opened.reader, dialect: opened.name, locks: false }),
    isDuplicate: opened.isDuplicate,
    ping: async (): Promise<void> => void (await sql`select 1`.execute(opened.db)),
    /**
     * All or nothing. Inside, use only the given stores and wait for nothing but the database: other requests
     * wait for a SQLite transaction. After a conflict or a full disk the work runs again, so it changes
     * nothing but the database.
     */
    transaction: <T>(work: (stores: StoresInTransaction) => Promise<T>): Promise<T> =>
      opened.again(() =>
        opened.db
          .transaction()
          .execute((trx) =>
            work(all({ db: trx, reader: trx, dialect: opened.name, locks: opened.name === 'postgres' })),
          ),
      ),
  }
}

export type Stores = ReturnType<typeof stores>
