// The small world of the contract's examples (contract/src/examples.ts), built in a service: two namespaces,
// people of every role, a device, keys, rules, e-mails' tokens. Every example of the contract works in it as
// it stands.
import { argon2Sync } from 'node:crypto'
import { TOTP, Secret } from 'otpauth'
import { sample } from '@hawser/contract/examples'
import type { Role } from '@hawser/contract/access'
import { iso, day_ms } from '../../server/src/kit/clock.ts'
import { hashOf } from '../../server/src/kit/secrets.ts'
import type { Service } from './service.ts'

/** The new address is not confirmed yet. */
const changing = {
  id: '65f000000000000000000099',
  username: 'ilse',
  name: 'ilse',
  email: 'ilse@new.example',
  former_email: 'ilse@former.example',
}

type Person = 'owner' | 'administrator' | 'operator' | 'observer' | 'stranger' | 'unconfirmed' | 'careful'

export interface World {
  /** In the sample namespace (the stranger: in the other one). */
  token(person: Exclude<Person, 'unconfirmed'>): Promise<string>
  deviceToken(): Promise<string>
  totp(secret: string): string
}

/** Everybody's, hashed as cheaply as Argon2id can: these people sign in thousands of times. */
const passwordHash = (() => {
  const nonce = Buffer.alloc(16, 'harbour')
  const cost = { memory: 8, passes: 1, parallelism: 1 }
  const hash = argon2Sync('argon2id', { message: sample.owner.password, nonce, tagLength: 32, ...cost })
  const [salt, tag] = [nonce, hash].map((bytes) => bytes.toString('base64').replaceAll('=', ''))
  return `$argon2id$v=19$m=8,t=1,p=1$${salt}$${tag}`
})()

/** The administrator's sign-in that made the invitation. */
const makerSignIn = 'dddddddd-dddd-4ddd-8ddd-dddddddddddd'

interface Ground extends Pick<Service['rooms'], 'stores' | 'vault' | 'namespaces'> {
  readonly now: string
  readonly later: string
}

async function addPeople({ stores, vault, namespaces, now }: Ground): Promise<void> {
  const account = {
    recovery_email: null,
    password: passwordHash,
    confirmed: 1,
    epoch: 1,
    email_marketing: 0,
    max_namespaces: -1,
    preferred_tenant: null,
    mfa_secret: null,
    mfa_step: 0,
    created_at: now,
    last_login_at: null,
  } as const
  for (const person of [
    'owner',
    'administrator',
    'operator',
    'observer',
    'stranger',
    'unconfirmed',
    'careful',
  ] as const) {
    const { id, username, email } = sample[person]
    await stores.users.insert({
      ...account,
      id,
      username,
      email,
      name: username,
      recovery_email: person === 'careful' || person === 'administrator' ? `${username}@example.org` : null,
      confirmed: person === 'unconfirmed' ? 0 : 1,
      mfa_secret: person === 'careful' ? vault.seal('mfa secret', sample.mfaSecret) : null,
    })
  }
  await stores.users.insert({ ...account, ...changing })
  await namespaces.create(sample.owner.id, sample.namespace, sample.tenant)
  await namespaces.create(sample.stranger.id, 'elsewhere', sample.otherTenant)
  for (const role of ['administrator', 'operator', 'observer'] as const satisfies readonly Role[])
    await namespaces.join(sample.tenant, sample[role].id, role)
  await namespaces.join(sample.tenant, sample.careful.id, 'observer')
}

/** With the public keys that open them. */
async function addDevices({ stores, now }: Ground): Promise<void> {
  const here = stores.of(sample.tenant)
  for (const [uid, name, status, tags] of [
    [sample.device, 'crane-1', 'accepted', [sample.tag, sample.spareTag]],
    [sample.pendingDevice, 'buoy', 'pending', []],
  ] as const) {
    await here.devices.insert({
      uid,
      name,
      mac: uid === sample.device ? '00:00:5e:00:53:aa' : '00:00:5e:00:53:bb',
      public_key: sample.publicKeyPem,
      info_id: 'debian',
      info_pretty_name: 'Debian GNU/Linux 12 (bookworm)',
      info_version: 'v0.16.4',
      info_arch: 'amd64',
      info_platform: 'native',
      status,
      status_update_at: now,
      created_at: now,
      remote_addr: '192.0.2.7',
      position: '{"latitude":0,"longitude":0}',
      public_url: 0,
      public_url_address: '',
      tags: JSON.stringify(tags),
      last_seen: now,
      online: 0,
    })
  }
  for (const [id, address, audience] of [
    [sample.service, sample.serviceAddress, 'members'],
    [sample.linkedService, 'f'.repeat(32), 'link'],
    [sample.publicService, sample.publicAddress, 'public'],
  ] as const)
    await here.services.insert({
      id,
      address,
      audience,
      device_uid: sample.device,
      name: `${audience} dashboard`,
      host: '127.0.0.1',
      port: 3000,
      scheme: 'http',
      certificate: 'verify',
      tls_name: '',
      pinned: '',
      role: 'observer',
      people: '[]',
      link_hash: '',
      host_header: 'own',
      identify: 0,
      username: '',
      expires_at: null,
      public_url: 0,
      created_at: now,
      created_by: sample.owner.username,
    })
  await here.sessions.insert({
    uid: sample.session,
    device_uid: sample.device,
    username: 'root',
    ip_address: '192.0.2.9',
    started_at: now,
    last_seen: now,
    active: 1,
    authenticated: 0,
    recorded: 0,
    type: 'shell',
    term: 'xterm',
    position: '{"latitude":0,"longitude":0}',
  })
  for (const [fingerprint, filter] of [
    [sample.fingerprint, { hostname: '.*' }],
    [sample.taggedFingerprint, { tags: [sample.tag] }],
  ] as const)
    await here.publicKeys.insert({
      fingerprint,
      data: 'c3No',
      name: 'laptop',
      username: '.*',
      filter: JSON.stringify(filter),
      created_at: now,
    })
  await here.enrolmentKeys.insert({
    fingerprint: sample.enrolmentFingerprint,
    name: 'cranes',
    public_key: 'ssh-ed25519 AAAA',
    created_at: now,
  })
}

/** Invitations, tokens and pairings, and the rules about devices. */
async function addRules({ stores, vault, now, later }: Ground): Promise<void> {
  const here = stores.of(sample.tenant)
  await here.enrolmentTokens.insert({
    id: sample.enrolmentTokenId,
    hash: hashOf(sample.enrolmentToken),
    hint: sample.enrolmentToken.slice(-4),
    name: 'moorings',
    accept: 0,
    tags: '[]',
    name_pattern: '',
    most_devices: 10,
    expires_at: later,
    last_used_at: null,
    created_by: sample.administrator.id,
    created_at: now,
  })
  await here.sessionInvitations.insert({
    id: sample.sessionInvitationId,
    session_uid: sample.session,
    hash: hashOf(sample.sessionInvitation),
    mode: 'watch',
    for_name: '',
    user_id: null,
    used_at: null,
    created_by: sample.administrator.id,
    created_epoch: 1,
    created_token: `${makerSignIn}.`,
    created_at: now,
    expires_at: later,
  })
  await here.acceptRules.insert({
    priority: 1,
    source: '198.51.100.0/24',
    hostname: '^mooring-',
    mac: '',
    platform: '',
    tags: '[]',
  })
  await here.budgets.insert({
    device: sample.device,
    tag: null,
    bytes: 1_000_000_000,
    stop_recordings: 0,
    stop_updates: 0,
    created_at: now,
  })
  await stores.pairings.insert({
    secret: hashOf(sample.pairingSecret),
    code: vault.mark('pairing', sample.pairingCode.replace('-', '')),
    source: '192.0.2.7',
    remote_addr: '192.0.2.7',
    hostname: 'dinghy',
    mac: '00:00:5e:00:53:dd',
    public_key: sample.publicKeyPem,
    fingerprint: 'SHA256:example',
    info: JSON.stringify({
      id: 'debian',
      pretty_name: 'Debian',
      version: 'v1',
      arch: 'amd64',
      platform: 'native',
    }),
    state: 'waiting',
    namespace: null,
    confirmed_by: null,
    created_at: now,
    expires_at: later,
  })
  for (const filter of [{ hostname: '.*' }, { tags: [sample.tag] }])
    await here.firewall.insert({
      action: 'allow',
      active: 1,
      filter: JSON.stringify(filter),
      priority: 1,
      source_ip: '.*',
      username: '.*',
    })
  await here.refusals.add({
    reference: sample.refusal,
    at: now,
    last_at: now,
    times: 1,
    detail: JSON.stringify({
      reason: 'password',
      sshid: 'root@harbour.crane-1',
      source: '192.0.2.9',
      via: 'ssh',
      attempts: 1,
    }),
  })
}

/** The rest: an API key, a connector, an audit stream, invitations of members and sign-ins. */
async function addResources({ stores, vault, now, later }: Ground): Promise<void> {
  const here = stores.of(sample.tenant)
  await here.apiKeys.insert({
    hash: hashOf(sample.apiKey),
    name: sample.apiKeyName,
    role: 'administrator',
    created_by: sample.administrator.id,
    expires_in: -1,
    created_at: now,
    updated_at: now,
  })
  await here.connectors.insert({
    uid: sample.connector,
    enable: 0,
    address: 'engine.invalid',
    port: 2375,
    secure: 0,
    tls: null,
    state: 'disconnected',
    message: '',
    created_at: now,
  })
  await here.auditStreams.insert({
    uid: sample.auditStream,
    name: 'siem',
    receiver: vault.seal(
      'audit stream receiver',
      JSON.stringify({ url: 'https://siem.invalid/hawser', secret: 'rope-and-anchor', ca: null }),
    ),
    enable: 0,
    sent_seq: 0,
    created_at: now,
  })
  await here.auditStreams.addLetter(
    { stream: sample.auditStream, from_seq: 1, to_seq: 1, reason: 'unsent', error: '', at: now },
    1,
  )
  await stores.announcements.insert({
    uuid: sample.announcement,
    title: 'High tide',
    content: 'At **noon**.',
    date: now,
  })
  const invited = { by_mail: 1, valid_days: 1, created_at: now, sent_at: now, expires_at: later } as const
  await here.memberInvitations.insert({
    ...invited,
    id: sample.memberInvitation.id,
    email: sample.memberInvitation.email,
    role: 'observer',
    hash: hashOf(sample.memberInvitation.token),
    invited_by: sample.administrator.id,
  })
  await stores.of(sample.otherTenant).memberInvitations.insert({
    ...invited,
    id: sample.memberInvitation.id.replace('d', 'e'),
    email: sample.observer.email,
    role: 'operator',
    hash: hashOf(sample.memberInvitation.elsewhere),
    invited_by: sample.stranger.id,
  })
  for (const [id, user_id] of [
    [sample.signIn, sample.observer.id],
    [makerSignIn, sample.administrator.id],
  ] as const)
    await stores.signIns.insert({
      id,
      user_id,
      agent: 'hawser/0.1.0 (laptop)',
      source: '192.0.2.9',
      created_at: now,
      used_from: '192.0.2.9',
      used_at: now,
      expires_at: later,
    })
}

/** For links in e-mails, and for the second factor. */
async function addTokens({ stores, vault, now, later }: Ground): Promise<void> {
  const token = (
    kind: Parameters<typeof stores.tokens.insert>[0]['kind'],
    hash: string,
    user_id: string | null,
  ) => stores.tokens.insert({ kind, hash, user_id, expires_at: later })
  await token('activation', vault.mark('activation', sample.activationToken), sample.unconfirmed.id)
  await token('confirm-email', vault.mark('confirm-email', sample.confirmToken), changing.id)
  await stores.identityChanges.insert({
    user_id: sample.administrator.id,
    hash: vault.mark('undo', sample.undoToken),
    epoch: 1,
    email: sample.administrator.email,
    recovery_email: null,
    mfa_secret: null,
    mfa_recovery_codes: '[]',
    expires_at: later,
  })
  await token('recovery', vault.mark('recovery', sample.recoveryToken), sample.observer.id)
  await token('mfa-sign-in', vault.mark('mfa-sign-in', sample.mfaToken), sample.careful.id)
  await token(
    'mfa-reset-main',
    vault.mark('mfa-reset-main', `${sample.careful.id} ${sample.resetCodes.main}`),
    sample.careful.id,
  )
  await token(
    'mfa-reset-recovery',
    vault.mark('mfa-reset-recovery', `${sample.careful.id} ${sample.resetCodes.recovery}`),
    sample.careful.id,
  )
  await token('setup', vault.mark('setup', sample.setupCode), null)
  await stores.users.setRecoveryCodes(sample.careful.id, [
    vault.mark('recovery code', `${sample.careful.id} ${sample.recoveryCode}`),
  ])
  await stores.users.saveDraft({
    user_id: sample.administrator.id,
    secret: vault.seal('mfa draft', sample.draftSecret),
    code_hashes: JSON.stringify([
      vault.mark('recovery code', `${sample.administrator.id} ${sample.recoveryCode}`),
    ]),
    created_at: now,
  })
}

export async function buildWorld(service: Service): Promise<World> {
  const { stores, rules, vault, namespaces } = service.rooms
  const now = iso(service.clock.now())
  const later = iso(service.clock.now() + day_ms)
  const ground = { stores, vault, namespaces, now, later }
  await addPeople(ground)
  await addDevices(ground)
  await addRules(ground)
  await addResources(ground)
  await addTokens(ground)

  const from = { kind: 'anonymous', source: '127.0.0.1', host: 'hawser.test', secure: false } as const
  const tokens = new Map<string, string>()
  return {
    async token(person) {
      const known = tokens.get(person)
      if (known) return known
      const { username, password } = sample[person]
      if (person === 'careful') {
        const answer = await rules.mfa.recover(
          { params: {}, query: {}, body: { identifier: username, recovery_code: sample.recoveryCode } },
          from,
        )
        tokens.set(person, answer.answer.token)
        // The code was spent for this token; the examples need it again.
        await stores.users.setRecoveryCodes(sample.careful.id, [
          vault.mark('recovery code', `${sample.careful.id} ${sample.recoveryCode}`),
        ])
        await stores.tokens.removeOf(sample.careful.id, 'mfa-recovered')
        return answer.answer.token
      }
      const { answer } = await rules.users.login(
        { params: {}, query: {}, body: { username, password } },
        from,
      )
      tokens.set(person, answer.token)
      return answer.token
    },
    deviceToken: () => service.rooms.tokens.forDevice({ uid: sample.device, tenant: sample.tenant }),
    totp: (secret) =>
      new TOTP({ secret: Secret.fromBase32(secret) }).generate({ timestamp: service.clock.now() }),
  }
}
