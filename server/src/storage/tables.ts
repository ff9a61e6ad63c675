// The tables as TypeScript sees them. A column has the wire's name and is text, integer, 0/1 or JSON as text;
// moments are ISO 8601. Triggers (see migrations) maintain counters, tag index and search index, so no query
// can forget them.
import type { AgentUpdateMode, UpdateAbility } from '@hawser/contract/agents'
import type { BudgetState } from '@hawser/contract/budgets'
import type { DeviceStatus } from '@hawser/contract/devices'
import type { MemberRole, Role } from '@hawser/contract/access'
import type { PersonKind } from '@hawser/contract/sessions'
import type { ServiceAudience, ServiceCheck } from '@hawser/contract/services'
import type { InvitationMode } from '@hawser/contract/session-invitations'
import type { Generated, Selectable } from 'kysely'
import type { AuditTables } from './audit-tables.ts'
import type { Flag, TenantId } from './columns.ts'
import type { PeopleTables } from './people-tables.ts'

export interface Tables extends AuditTables, PeopleTables {
  users: {
    id: string
    username: string
    email: string
    /**
     * The confirmed address while `email` waits to be confirmed; null: `email` itself counts, if the account
     * is confirmed. Confirmed addresses are unique; others may claim the same one.
     */
    former_email: string | null
    name: string
    recovery_email: string | null
    former_recovery_email: string | null
    /**
     * Argon2id, PHC text; imported hashes are bcrypt until the next sign-in, see
     * domain/people/credentials.ts.
     */
    password: string
    confirmed: Flag
    /** By Register user, which any stranger can call: that does not count as the set-up of the server. */
    registered: Generated<Flag>
    /** Part of every token of the user; raising it ends them all. */
    epoch: number
    /** The token that set the present password: the only older one that stays valid. */
    kept_token: string | null
    email_marketing: Flag
    max_namespaces: number
    preferred_tenant: string | null
    /** Sealed TOTP secret; null: no second factor. */
    mfa_secret: string | null
    /** Codes of this time step or before no longer work. */
    mfa_step: number
    created_at: string
    last_login_at: string | null
  }
  mfa_recovery_codes: { user_id: string; hash: string }
  /** Credentials before a change that can still be undone. */
  identity_changes: {
    id: Generated<number>
    user_id: string
    hash: string
    /** The user's: another one means that the password has changed since. */
    epoch: number
    email: string
    recovery_email: string | null
    mfa_secret: string | null
    mfa_recovery_codes: string
    expires_at: string
  }
  mfa_drafts: { user_id: string; secret: string; code_hashes: string; created_at: string }
  /** Single use, only hashes. */
  one_time_tokens: {
    kind: string
    hash: string
    user_id: string | null
    tries: number
    typed: string | null
    expires_at: string
  }
  attempts: { subject: string; count: number; locked_until: string | null; expires_at: string }
  /** Sealed RSA keys that sign tokens. The newest signs; all of them verify. */
  signing_keys: { kid: string; private_key: string; public_key: string; created_at: string }
  /** RSA keys of ShellHubs that devices have moved from, with the namespaces where they count. */
  shellhub_keys: { tenant_id: TenantId; fingerprint: string; public_key: string; added_at: string }
  host_keys: { type: string; private_key: string; created_at: string }
  recording_keys: { type: string; private_key: string; created_at: string }
  namespaces: {
    tenant_id: TenantId
    name: string
    owner: string
    session_record: Flag
    continue_unrecorded: Generated<Flag>
    connection_announcement: string
    max_devices: number
    /** Null: no customer of the payment provider. */
    billing: string | null
    created_at: string
    /** `max_devices` without a subscription; null: the namespace predates billing and has no such limit. */
    free_devices: Generated<number | null>
    /** Bytes; null: not decided yet. */
    recording_quota: Generated<number | null>
    imported: Generated<Flag>
    accept_env: Generated<string>
    agent_updates: Generated<AgentUpdateMode>
    reconnect_grace_s: Generated<number>
    mask_secrets: Generated<Flag>
    mask_after: Generated<string>
    /** 0: for ever. */
    audit_retention_days: Generated<number>
    require_person: Generated<Flag>
    /** Seconds; 0: not held. */
    hold_sessions: Generated<number>
    /** Also sessions of unknown people, by a password. */
    hold_unknown: Generated<Flag>
    join_without_consent: Generated<Flag>
    invite_outsiders: Generated<Flag>
    search: Generated<Flag>
    policy: Generated<string>
    log_web_requests: Generated<Flag>
  }
  members: {
    tenant_id: TenantId
    user_id: string
    role: Role
    epoch: string
    created_at: string
    /** The user has had a token for the namespace. Until then it learns nothing about the account. */
    signed_in: Generated<Flag>
  }
  devices: {
    id: Generated<number>
    uid: string
    tenant_id: TenantId
    name: string
    mac: string
    public_key: string
    info_id: string
    info_pretty_name: string
    info_version: string
    info_arch: string
    info_platform: string
    status: DeviceStatus
    status_update_at: string
    created_at: string
    remote_addr: string
    position: string
    public_url: Flag
    public_url_address: string
    tags: string
    last_seen: string
    online: Flag
    /** The agent has proved once that it holds the private key, and must from then on. */
    proved: Generated<Flag>
    /**
     * SHA-256 of the token that last proved its key in a tunnel; empty: a token that others may have, too.
     * Null: none.
     */
    proved_token: Generated<string | null>
    /** Empty: no tunnel, or a single node. */
    node: Generated<string>
    /** The tunnel with the highest number counts. */
    tunnel: Generated<number>
    connector: Generated<string | null>
    /** The container's name in the form of device names; '': not known yet; null: no container. */
    container: Generated<string | null>
    /** A person named it, so its name does not follow its container's. */
    named: Generated<Flag>
    /** A person set its status, so a connector that accepts at once leaves it alone. */
    decided: Generated<Flag>
    /** JSON {since, last_at, addresses}: two machines used its identity. */
    conflict: Generated<string | null>
    enrolment_key: Generated<string | null>
    /** When Auth device first issued a token here. */
    token_at: Generated<string | null>
    /** JSON {kind, id, name}; null: a person accepted it. */
    enrolled_with: Generated<string | null>
    /** Empty: another program, or an agent from before updates. */
    agent_build: Generated<string>
    agent_ability: Generated<UpdateAbility | ''>
    update_build: Generated<string>
    update_wanted_at: Generated<string | null>
    /** When its turn came; null: it still waits. It also identifies the request. */
    update_asked_at: Generated<string | null>
    update_phase: Generated<string>
    update_failed: Generated<string>
    update_reason: Generated<string>
    /** Learnt by its agent; 0: not learnt. */
    ping_s: Generated<number>
  }
  /** Bytes from the device's point of view, by day in UTC. */
  device_traffic: {
    tenant_id: TenantId
    uid: string
    day: string
    idle_received: number
    idle_sent: number
    session_received: number
    session_sent: number
  }
  data_budgets: {
    id: Generated<number>
    tenant_id: TenantId
    device: string | null
    tag: string | null
    bytes: number
    stop_recordings: Flag
    stop_updates: Flag
    /** Such as 2026-11; empty: never judged. */
    month: Generated<string>
    used: Generated<number>
    state: Generated<BudgetState>
    /** The highest state of the month that an e-mail reported; `under`: none. */
    told: Generated<BudgetState>
    /** Since when the e-mail about `told` is under way. */
    emailing_since: Generated<string>
    judged_at: Generated<string>
    created_at: string
  }
  device_notes: {
    tenant_id: TenantId
    uid: string
    text: string
    version: number
    changed_at: string
    changed_by: string
  }
  device_events: {
    tenant_id: TenantId
    uid: string
    seq: number
    at: string
    kind: string
    detail: string
  }
  login_refusals: {
    tenant_id: TenantId
    reference: string
    at: string
    last_at: string
    times: number
    detail: string
  }
  update_waves: {
    tenant_id: TenantId
    build: string
    wave: number
    opened_at: string
    stopped: string
  }
  agent_releases: { build: string; version: string; released_at: string }
  /** Sealed. The newest signs; each is endorsed by the one before it. */
  update_keys: {
    public_key: string
    /** The endorsing key; empty: it is the first. */
    previous: string
    private_key: string
    endorsement: string
    created_at: string
  }
  /** By PostgreSQL's clock. */
  nodes: { id: string; address: string; seen_at: string }
  device_tags: { tenant_id: TenantId; tag: string; device_id: number }
  /** Counters: `devices.<status>`, `online.<status>`, `tag.<status>.<tag>`, `sessions`, `sessions.active`. */
  tallies: { tenant_id: TenantId; subject: string; n: number }
  public_keys: {
    tenant_id: TenantId
    fingerprint: string
    data: string
    name: string
    username: string
    filter: string
    created_at: string
    certificate_authority: Generated<Flag>
    owner: Generated<string | null>
  }
  enrolment_tokens: {
    id: string
    tenant_id: TenantId
    hash: string
    hint: string
    name: string
    accept: Flag
    tags: string
    name_pattern: string
    most_devices: number
    used: Generated<number>
    expires_at: string | null
    last_used_at: string | null
    created_by: string
    created_at: string
  }
  services: {
    id: string
    tenant_id: TenantId
    device_uid: string
    address: string
    name: string
    host: string
    port: number
    scheme: 'http' | 'https'
    certificate: ServiceCheck
    tls_name: string
    /** SHA-256 of the pinned certificate, in hex; empty: none was shown yet. */
    pinned: string
    audience: ServiceAudience
    role: MemberRole
    /** JSON: the ids of users. */
    people: string
    /** Empty: there is no link. */
    link_hash: string
    host_header: string
    identify: Flag
    username: string
    expires_at: string | null
    /** It is switched on and off with the device's `public_url`. */
    public_url: Flag
    created_at: string
    created_by: string
  }
  session_invitations: {
    id: string
    tenant_id: TenantId
    session_uid: string
    hash: string
    mode: InvitationMode
    /** A user name or an e-mail address, in lower case; empty: the first who comes. */
    for_name: string
    user_id: string | null
    used_at: string | null
    created_by: string
    /** The epoch and the id of the token that made the invitation, which ends with the token. */
    created_epoch: number
    created_token: string
    created_at: string
    expires_at: string
  }
  /** Empty texts match everything. */
  accept_rules: {
    id: Generated<number>
    tenant_id: TenantId
    priority: number
    source: string
    hostname: string
    /** A prefix in lower case with colons. */
    mac: string
    platform: string
    tags: string
  }
  pairings: {
    secret: string
    code: string
    /** The address, or its network, that limits count by. */
    source: string
    remote_addr: string
    hostname: string
    mac: string | null
    public_key: string
    fingerprint: string
    info: string
    state: 'waiting' | 'confirmed' | 'refused'
    namespace: string | null
    confirmed_by: string | null
    created_at: string
    expires_at: string
  }
  enrolment_keys: {
    tenant_id: TenantId
    fingerprint: string
    name: string
    public_key: string
    created_at: string
  }
  /** One per namespace, sealed. */
  login_keys: { tenant_id: TenantId; private_key: string; created_at: string }
  firewall_rules: {
    id: Generated<number>
    tenant_id: TenantId
    action: 'allow' | 'deny'
    active: Flag
    filter: string
    priority: number
    source_ip: string
    username: string
  }
  api_keys: {
    hash: string
    tenant_id: TenantId
    name: string
    role: Role
    created_by: string
    expires_in: number
    created_at: string
    updated_at: string
  }
  sessions: {
    uid: string
    tenant_id: TenantId
    device_uid: string
    username: string
    ip_address: string
    started_at: string
    last_seen: string
    active: Flag
    authenticated: Flag
    recorded: Flag
    /** 1: all recordings are frames that somebody posted; the gateway recorded nothing. */
    posted: Generated<Flag>
    unrecorded: Generated<Flag>
    secrets_masked: Generated<number>
    /** The end of the hold; empty: it has a client, or is over. */
    held_until: Generated<string>
    /** How long the agent keeps its terminal when the server is lost; 0: not at all. */
    kept_s: Generated<number>
    /** JSON, see `DetachedFor`; empty: the agent keeps none. */
    kept_for: Generated<string>
    resumes: Generated<string>
    /** JSON, see `Participant` of the contract. */
    participants: Generated<string>
    /** JSON, see `WebTraffic` of the contract; empty: it is no session at a service. */
    web: Generated<string>
    type: string
    term: string
    node: Generated<string>
    position: string
    /** See `SessionPerson` of the contract. */
    person_kind: Generated<PersonKind>
    person_id: Generated<string>
    person_name: Generated<string>
    person_created_by: Generated<string>
    /** Empty: unknown, as for all texts below. */
    via: Generated<string>
    method: Generated<string>
    key_fingerprint: Generated<string>
    key_name: Generated<string>
    client: Generated<string>
    /** Null: indexed. */
    index_at: Generated<string | null>
    /** How often indexing has ended its thread. */
    index_failures: Generated<number>
  }
  session_events: {
    tenant_id: TenantId
    session_uid: string
    seq: number
    at: string
    kind: string
    subject: string
    target: string
    outcome: string
    received: number
    sent: number
    sha256: string
    why: string
  }
  unwanted_recordings: { session_uid: string; tenant_id: TenantId }
  /** Node empty: the node that has the file. */
  unfinished_recordings: { tenant_id: TenantId; session_uid: string; channel: number; node: string }
  announcements: { uuid: string; title: string; content: string; date: string }
  connectors: {
    uid: string
    tenant_id: TenantId
    enable: Flag
    address: string
    port: number
    secure: Flag
    tls: string | null
    accept: Generated<Flag>
    /** The sealed RSA key that identifies its containers as devices; made when first needed. */
    identity: Generated<string | null>
    state: string
    message: string
    created_at: string
  }
  /** Deleted devices keep their place in a limited namespace for a while. */
  removed_devices: { tenant_id: TenantId; uid: string; removed_at: string }
  /** Pending reports to the payment provider, one per subscription; written by triggers. */
  usage_reports: {
    subscription_id: string
    tenant_id: TenantId
    /** For what a deleted namespace leaves behind and for extra subscriptions. */
    customer_id: Generated<string>
    wanted: 'quantity' | 'cancel' | 'recheck' | 'end extra'
    version: number
    tries: number
    due_at: string
  }
  billing_events: { id: string; received_at: string }
  billing_attempts: {
    tenant_id: TenantId
    what: string
    key: string
    params: Generated<string>
    began_at: Generated<string>
  }
  acme_accounts: { directory: string; private_key: string; created_at: string }
  /** Sealed; certificate and key are null before the first order. */
  certificates: {
    directory: string
    name: string
    chain: Generated<string | null>
    private_key: Generated<string | null>
    failures: Generated<number>
    retry_at: Generated<string>
    lease_holder: Generated<string>
    lease_ends_at: Generated<string>
  }
  acme_challenges: { token: string; answer: string; expires_at: string }
  schema_migrations: { number: number; name: string; applied_at: string }
}

export type DeviceRow = Selectable<Tables['devices']>
