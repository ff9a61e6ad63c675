// The tables as TypeScript sees them. A column has the wire's name; there are four kinds: text, integer, 0/1
// and JSON as text. Moments are ISO 8601 text. What makes the counters, the tag index and the search index
// true are triggers (see migrations), so no query can forget them.
import type { AgentUpdateMode, UpdateAbility } from '@hawser/contract/agents'
import type { BudgetState } from '@hawser/contract/budgets'
import type { DeviceStatus } from '@hawser/contract/devices'
import type { Role } from '@hawser/contract/access'
import type { PersonKind } from '@hawser/contract/sessions'
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
     * The confirmed address while `email` waits to be confirmed; null: `email` itself counts, if the account is
     * confirmed. Confirmed addresses are unique; others may claim the same one.
     */
    former_email: string | null
    name: string
    recovery_email: string | null
    former_recovery_email: string | null
    /**
     * Argon2id, PHC text; of people who came from elsewhere and have not signed in since, see
     * domain/people/credentials.ts.
     */
    password: string
    confirmed: Flag
    /** Came by Register user, as any stranger can: that does not count as the set-up of the server. */
    registered: Generated<Flag>
    /** Part of every token of the user; a new password raises it and so ends them. */
    epoch: number
    /** The id of the token that asked for the present password: alone of the older ones it stays good. */
    kept_token: string | null
    email_marketing: Flag
    /** -1: any number. */
    max_namespaces: number
    preferred_tenant: string | null
    /** Sealed TOTP secret; null: no second factor. */
    mfa_secret: string | null
    /** The last time step whose code was used; no code of it or before works again. */
    mfa_step: number
    created_at: string
    last_login_at: string | null
  }
  mfa_recovery_codes: { user_id: string; hash: string }
  /** What proved a user's identity before a change that can still be undone. */
  identity_changes: {
    id: Generated<number>
    user_id: string
    hash: string
    /** Of the user: another one tells that the password was changed since. */
    epoch: number
    email: string
    recovery_email: string | null
    mfa_secret: string | null
    /** A JSON list of their hashes. */
    mfa_recovery_codes: string
    expires_at: string
  }
  /** What Generate gave and Enable has not yet taken. */
  mfa_drafts: { user_id: string; secret: string; code_hashes: string; created_at: string }
  /** Tokens and codes from e-mails, sign-ins in progress, the set-up code: single use, only hashes. */
  one_time_tokens: {
    kind: string
    hash: string
    user_id: string | null
    tries: number
    /** The name that a sign-in was begun with, if the token is of one. */
    typed: string | null
    expires_at: string
  }
  /** Wrong attempts, and the locks they led to. */
  attempts: { subject: string; count: number; locked_until: string | null; expires_at: string }
  /** RSA keys that sign tokens, sealed. The newest signs; all of them verify. */
  signing_keys: { kid: string; private_key: string; public_key: string; created_at: string }
  /**
   * RSA keys with which a ShellHub signed tokens of devices that are here now, in the namespaces where they
   * count.
   */
  shellhub_keys: { tenant_id: TenantId; fingerprint: string; public_key: string; added_at: string }
  /** The gateway's own, sealed. */
  host_keys: { type: string; private_key: string; created_at: string }
  /** What signs recordings, sealed. */
  recording_keys: { type: string; private_key: string; created_at: string }
  namespaces: {
    tenant_id: TenantId
    name: string
    owner: string
    session_record: Flag
    /** Sessions that cannot be recorded go on. */
    continue_unrecorded: Generated<Flag>
    connection_announcement: string
    max_devices: number
    /** JSON; null: no customer of the payment provider. */
    billing: string | null
    created_at: string
    /**
     * What max_devices is without a subscription; null: the namespace is older than billing and has no limit
     * by it.
     */
    free_devices: Generated<number | null>
    /** Bytes that its recordings may take up, by default; null: not decided yet. */
    recording_quota: Generated<number | null>
    /** It came from a ShellHub. */
    imported: Generated<Flag>
    /** JSON array of variables of clients that reach its devices. */
    accept_env: Generated<string>
    agent_updates: Generated<AgentUpdateMode>
    /** How long sessions wait for a device whose connection is lost. */
    reconnect_grace_s: Generated<number>
    /** Secrets are masked in what is recorded. */
    mask_secrets: Generated<Flag>
    /** A JSON array: texts that come before secrets of the namespace. */
    mask_after: Generated<string>
    /** How long entries of the audit log are kept; 0: for ever. */
    audit_retention_days: Generated<number>
    /** Sessions of unknown people are refused. */
    require_person: Generated<Flag>
    /** For how many seconds sessions go on without their client; 0: they do not. */
    hold_sessions: Generated<number>
    /** Sessions of unknown people, by a password, are held, too. */
    hold_unknown: Generated<Flag>
    /** Administrators need no consent to type in sessions of others. */
    join_without_consent: Generated<Flag>
    /** Those who are no members may be invited to sessions. */
    invite_outsiders: Generated<Flag>
    /** Its recordings can be searched. */
    search: Generated<Flag>
    /** JSON: what is forbidden in its sessions. */
    policy: Generated<string>
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
    /** JSON {latitude, longitude} */
    position: string
    public_url: Flag
    public_url_address: string
    /** JSON array; device_tags is its index. */
    tags: string
    last_seen: string
    online: Flag
    /** Its agent has proved once that it holds the private key, and must from then on. */
    proved: Generated<Flag>
    /**
     * SHA-256 of the token that last proved its key in a tunnel; empty: a token that others may have, too.
     * Null: no token has.
     */
    proved_token: Generated<string | null>
    /** Which node has its tunnel; empty: none, or there is one node only. */
    node: Generated<string>
    /** How many tunnels it has had: the one with the highest number counts. */
    tunnel: Generated<number>
    /** The connector whose container it is. */
    connector: Generated<string | null>
    /**
     * What its container is called, in the form that names of devices have; '': not known yet. Null: it is
     * no container.
     */
    container: Generated<string | null>
    /** A person named it, so its name does not follow its container's. */
    named: Generated<Flag>
    /** A person set its status, so a connector that accepts at once leaves it alone. */
    decided: Generated<Flag>
    /** JSON {since, last_at, addresses}: two machines used its identity. Null: not so far. */
    conflict: Generated<string | null>
    /** Of a device without an agent: the key that it last joined with. */
    enrolment_key: Generated<string | null>
    /** When Auth device first gave it a token here; null: not since this is noted. */
    token_at: Generated<string | null>
    /** JSON {kind, id, name} of what let it in beside a person; null: nothing. */
    enrolled_with: Generated<string | null>
    /** Of its agent, as it reports; empty: another program than ours, or one from before updates. */
    agent_build: Generated<string>
    agent_ability: Generated<UpdateAbility | ''>
    /** The build that it is to install; empty: none. */
    update_build: Generated<string>
    update_wanted_at: Generated<string | null>
    /** When its turn came; null: it waits for others. It also names the request. */
    update_asked_at: Generated<string | null>
    update_phase: Generated<string>
    /** The build that it could not install, and why. */
    update_failed: Generated<string>
    update_reason: Generated<string>
    /** Seconds between pings that its agent has learnt; 0: it does not learn them. */
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
  /** Monthly data budgets: of a device or of a tag, the other one is null. */
  data_budgets: {
    id: Generated<number>
    tenant_id: TenantId
    device: string | null
    tag: string | null
    bytes: number
    stop_recordings: Flag
    stop_updates: Flag
    /** The month that the next three are about, as 2026-11; empty: it was never judged. */
    month: Generated<string>
    used: Generated<number>
    state: Generated<BudgetState>
    /** The highest state of the month that people got an e-mail about; `under`: none. */
    told: Generated<BudgetState>
    /** Since when the e-mail about `told` is on its way; empty: none is. */
    emailing_since: Generated<string>
    /** When it was last judged; empty: never. */
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
  /** What happened to a device, numbered from 1; the newest are kept. */
  device_events: {
    tenant_id: TenantId
    uid: string
    seq: number
    at: string
    kind: string
    /** JSON. */
    detail: string
  }
  /** Logins that were refused, by the reference that the client was shown. */
  login_refusals: {
    tenant_id: TenantId
    reference: string
    at: string
    /** When the same was last refused again. */
    last_at: string
    times: number
    /** JSON. */
    detail: string
  }
  /** How far the automatic updates of a namespace are. */
  update_waves: {
    tenant_id: TenantId
    build: string
    /** An index into `waveShares`. */
    wave: number
    opened_at: string
    /** Why it goes no further; empty: it does. */
    stopped: string
  }
  /** The agents that this installation has offered, each with the moment of the first time. */
  agent_releases: { build: string; version: string; released_at: string }
  /** What signs releases of agents, sealed. The newest signs; each is endorsed by the one before it. */
  update_keys: {
    public_key: string
    /** The key that endorses it; empty: it is the first. */
    previous: string
    private_key: string
    endorsement: string
    created_at: string
  }
  /** The servers that share this database, by PostgreSQL's own clock. */
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
    /** JSON {hostname} or {tags} */
    filter: string
    created_at: string
    /** It signs certificates, and lets nobody in by itself. */
    certificate_authority: Generated<Flag>
    /** The id of the member whose key it is; null: nobody in particular. */
    owner: Generated<string | null>
  }
  /** With which agents may join. */
  enrolment_tokens: {
    id: string
    tenant_id: TenantId
    /** SHA-256 of the token. */
    hash: string
    /** The last four characters of the token. */
    hint: string
    name: string
    /** Devices that join with it are accepted at once. */
    accept: Flag
    /** JSON array. */
    tags: string
    name_pattern: string
    /** 0: any number. */
    most_devices: number
    used: Generated<number>
    /** null: never. */
    expires_at: string | null
    last_used_at: string | null
    created_by: string
    created_at: string
  }
  /** Each lets one person in to one live session. */
  session_invitations: {
    id: string
    tenant_id: TenantId
    session_uid: string
    /** SHA-256 of the token. */
    hash: string
    mode: InvitationMode
    /** A user name or an e-mail address, in lower case; empty: whoever comes first. */
    for_name: string
    /** Who has taken it. */
    user_id: string | null
    used_at: string | null
    created_by: string
    /** Of the token with which it was made: it ends with that one. */
    created_epoch: number
    created_token: string
    created_at: string
    expires_at: string
  }
  /** Which new devices are accepted without a person; empty texts fit everything. */
  accept_rules: {
    id: Generated<number>
    tenant_id: TenantId
    priority: number
    /** A network, address/bits. */
    source: string
    hostname: string
    /** The beginning of a MAC address, in lower case with colons. */
    mac: string
    platform: string
    /** JSON array. */
    tags: string
  }
  /** Devices that ask to be taken in by somebody who sees their code. */
  pairings: {
    /** SHA-256. */
    secret: string
    /** A keyed hash. */
    code: string
    /** What is limited together: the address that asked, or its network. */
    source: string
    remote_addr: string
    hostname: string
    /** null: the agent named no identity. */
    mac: string | null
    public_key: string
    fingerprint: string
    /** JSON, as a device has it. */
    info: string
    /** `taken`: somebody is confirming it. */
    state: 'waiting' | 'taken' | 'confirmed' | 'refused'
    /** The id of the namespace that took the device in. */
    namespace: string | null
    /** The user name. */
    confirmed_by: string | null
    created_at: string
    expires_at: string
  }
  /** With which devices without an agent may join. */
  enrolment_keys: {
    tenant_id: TenantId
    fingerprint: string
    name: string
    public_key: string
    created_at: string
  }
  /** With which we log in on devices without an agent, sealed: one of a namespace. */
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
    /** It went on although it could not be recorded. */
    unrecorded: Generated<Flag>
    /** How many secrets were masked in its recording. */
    secrets_masked: Generated<number>
    /** It goes on without its client until then; empty: it has one, or is over. */
    held_until: Generated<string>
    /** How long the agent keeps its terminal when the server is lost, in seconds; 0: not at all. */
    kept_s: Generated<number>
    /** JSON: for whom it does so; see `KeptFor`. Empty: it does not. */
    kept_for: Generated<string>
    /** The uid of the session that its terminal continues; empty: none. */
    resumes: Generated<string>
    /** JSON: who else is in its terminals; see `Participant` of the contract. */
    participants: Generated<string>
    type: string
    term: string
    /** Where it is going on. */
    node: Generated<string>
    position: string
    /** Who opened it; see `SessionPerson` of the contract. */
    person_kind: Generated<PersonKind>
    person_id: Generated<string>
    person_name: Generated<string>
    person_created_by: Generated<string>
    /** How they came; empty: not noted, as for all texts below. */
    via: Generated<string>
    method: Generated<string>
    /** SHA-256 of the key that they logged in with, and the name of the registered key. */
    key_fingerprint: Generated<string>
    key_name: Generated<string>
    /** The identification of their SSH client, or of their browser. */
    client: Generated<string>
    /** When its recordings are next to be indexed for the search; null: they are. */
    index_at: Generated<string | null>
    /** How often indexing has ended its thread. */
    index_failures: Generated<number>
  }
  /** What happened in a session, numbered from 1. */
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
  /** Of sessions that are gone; written by a trigger. */
  unwanted_recordings: { session_uid: string; tenant_id: TenantId }
  /** Of several nodes, those that are being written or wait to be sent. Node empty: whoever has the file. */
  unfinished_recordings: { tenant_id: TenantId; session_uid: string; channel: number; node: string }
  announcements: { uuid: string; title: string; content: string; date: string }
  connectors: {
    uid: string
    tenant_id: TenantId
    enable: Flag
    address: string
    port: number
    secure: Flag
    /** Sealed JSON {ca, cert, key}. */
    tls: string | null
    /** Its containers are accepted at once. */
    accept: Generated<Flag>
    /** Sealed: the RSA key by which its containers are known as devices. Made when it is first needed. */
    identity: Generated<string | null>
    state: string
    message: string
    created_at: string
  }
  /** Deleted devices that keep their place in a limited namespace for a while. */
  removed_devices: { tenant_id: TenantId; uid: string; removed_at: string }
  /** What the payment provider is still to be told, a row for each subscription; written by triggers. */
  usage_reports: {
    subscription_id: string
    tenant_id: TenantId
    /** Known for what a deleted namespace leaves behind and for extra subscriptions. */
    customer_id: Generated<string>
    wanted: 'quantity' | 'cancel' | 'recheck' | 'end extra'
    version: number
    tries: number
    due_at: string
  }
  /** Events of the payment provider that were taken in. */
  billing_events: { id: string; received_at: string }
  /** Idempotency keys of calls that create something at the payment provider. */
  billing_attempts: {
    tenant_id: TenantId
    what: string
    key: string
    /** JSON of the first call's parameters; empty before that call. */
    params: Generated<string>
    /** When the first call was made; empty before it. */
    began_at: Generated<string>
  }
  /** Accounts at ACME servers; the private key is sealed. */
  acme_accounts: { directory: string; private_key: string; created_at: string }
  /** TLS certificates from ACME servers; the private key is sealed. Both are null before the first one. */
  certificates: {
    directory: string
    name: string
    chain: Generated<string | null>
    private_key: Generated<string | null>
    /** Since the last success. */
    failures: Generated<number>
    /** Before that moment nobody orders; or empty. */
    retry_at: Generated<string>
    /** Who orders it, until when; or empty. */
    lease_holder: Generated<string>
    lease_ends_at: Generated<string>
  }
  /** Answers to challenges of ACME servers. */
  acme_challenges: { token: string; answer: string; expires_at: string }
  schema_migrations: { number: number; name: string; applied_at: string }
}

export type DeviceRow = Selectable<Tables['devices']>
