// The tables as TypeScript sees them. A column has the wire's name; there are four kinds: text, integer, 0/1
// and JSON as text. Moments are ISO 8601 text. What makes the counters, the tag index and the search index
// true are triggers (see migrations), so no query can forget them.
import type { AgentUpdateMode, UpdateAbility } from '@hawser/contract/agents'
import type { DeviceStatus } from '@hawser/contract/devices'
import type { Role } from '@hawser/contract/access'
import type { ColumnType, Generated, Selectable } from 'kysely'

type Flag = 0 | 1
/** The namespace of a row, for good: no query can change it. */
type TenantId = ColumnType<string, string, never>

export interface Tables {
  users: {
    id: string
    username: string
    email: string
    /** The confirmed address while `email` waits to be confirmed; null: `email` itself counts. */
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
    /** It came from a ShellHub. */
    imported: Generated<Flag>
    /** JSON array of variables of clients that reach its devices. */
    accept_env: Generated<string>
    agent_updates: Generated<AgentUpdateMode>
  }
  members: { tenant_id: TenantId; user_id: string; role: Role; epoch: string; created_at: string }
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
    /** Which node has its tunnel; empty: none, or there is one node only. */
    node: Generated<string>
    /** How many tunnels it has had: the one with the highest number counts. */
    tunnel: Generated<number>
    /** The connector whose container it is. */
    connector: Generated<string | null>
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
    /** It went on although it could not be recorded. */
    unrecorded: Generated<Flag>
    type: string
    term: string
    /** Where it is going on. */
    node: Generated<string>
    position: string
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
    wanted: 'quantity' | 'cancel'
    version: number
    tries: number
    due_at: string
  }
  /** Events of the payment provider that were taken in. */
  billing_events: { id: string; received_at: string }
  /** Idempotency keys of calls to the payment provider whose outcome is not known. */
  billing_attempts: { tenant_id: TenantId; what: string; key: string }
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
