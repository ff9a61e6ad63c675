// The movable content of another installation, in one form for every database, not yet checked against our
// rules. `where` says where it was found.

interface Found {
  /** `users.json, line 3`, or `users 7f3c…`. */
  readonly where: string
}

export interface FoundUser extends Found {
  readonly id: string
  readonly username: string
  readonly email: string
  readonly name: string
  readonly recovery_email: string
  /** A hash, or empty. */
  readonly password: string
  readonly confirmed: boolean
  readonly email_marketing: boolean
  readonly max_namespaces: number
  readonly preferred_tenant: string
  readonly mfa: { readonly secret: string; readonly codes: readonly string[] } | undefined
  readonly created_at: string | undefined
  readonly last_login_at: string | undefined
}

export interface FoundMember {
  readonly id: string
  readonly role: string
  /** Invited, and has not answered. */
  readonly pending: boolean
  readonly added_at: string | undefined
}

export interface FoundNamespace extends Found {
  readonly tenant_id: string
  readonly name: string
  readonly owner: string
  readonly members: readonly FoundMember[]
  readonly session_record: boolean
  readonly connection_announcement: string
  readonly created_at: string | undefined
}

export interface FoundDevice extends Found {
  readonly uid: string
  readonly tenant_id: string
  readonly name: string
  /** Undefined: the device gave no identity at all. */
  readonly mac: string | undefined
  readonly public_key: string
  readonly info: {
    readonly id: string
    readonly pretty_name: string
    readonly version: string
    readonly arch: string
    readonly platform: string
  }
  readonly status: string
  readonly tags: readonly string[]
  readonly remote_addr: string
  readonly position: { readonly latitude: number; readonly longitude: number }
  readonly custom_fields: number
  readonly created_at: string | undefined
  readonly status_update_at: string | undefined
  readonly last_seen: string | undefined
}

/** Both empty: all devices. */
export interface FoundFilter {
  readonly hostname: string
  readonly tags: readonly string[]
}

export interface FoundPublicKey extends Found {
  readonly tenant_id: string
  readonly name: string
  readonly username: string
  /** As in authorized_keys. */
  readonly line: string
  readonly filter: FoundFilter
  readonly created_at: string | undefined
}

export interface FoundFirewallRule extends Found {
  readonly tenant_id: string
  readonly action: string
  readonly active: boolean
  readonly priority: number
  readonly source_ip: string
  readonly username: string
  /** Undefined: a form that we do not know. */
  readonly filter: FoundFilter | undefined
}

export interface FoundApiKey extends Found {
  /** SHA-256 of the key, hex. */
  readonly hash: string
  readonly tenant_id: string
  readonly name: string
  readonly role: string
  readonly created_by: string
  /** Unix seconds; 0 or less: never. */
  readonly expires_in: number
  readonly created_at: string | undefined
  readonly updated_at: string | undefined
}

/** Can be read more than once, piece by piece. */
export interface Source extends AsyncDisposable {
  readonly title: string
  users(): AsyncIterable<FoundUser>
  namespaces(): AsyncIterable<FoundNamespace>
  devices(): AsyncIterable<FoundDevice>
  publicKeys(): AsyncIterable<FoundPublicKey>
  firewallRules(): AsyncIterable<FoundFirewallRule>
  apiKeys(): AsyncIterable<FoundApiKey>
  /** Other collections or tables that are not empty. */
  rest(): Promise<string[]>
}
