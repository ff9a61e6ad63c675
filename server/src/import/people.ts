// People, namespaces and memberships of another installation. Ids, names, roles and passwords
// (credentials.ts) stay. Nobody gets in with less than before: a user whose second factor cannot be read has
// to set a new password by e-mail.
import { Role } from '@hawser/contract/access'
import { patterns } from '@hawser/contract/fields'
import type { FoundMember, FoundNamespace, FoundUser } from './source.ts'
import { iso } from '../kit/clock.ts'
import { newUuid } from '../kit/ids.ts'
import { adoptHash } from '../domain/people/credentials.ts'
import { recoveryMark } from '../domain/people/mfa.ts'
import { shown } from './report.ts'
import type { ImportRun } from './run.ts'
import { free_devices } from '../domain/billing/subscriptions.ts'

const fits = (pattern: string, text: string): boolean => new RegExp(pattern, 'u').test(text)
const longest_name = 64
const base32Secret = /^[A-Z2-7]{16,128}$/
/** No hash, which could never be typed. */
const plainCode = /^(?!\$)(?![0-9a-fA-F]{64}$)[\w-]{6,64}$/

export async function importPeople(run: ImportRun): Promise<void> {
  const { source, progress } = run
  for await (const user of source.users())
    if (progress.wanted?.people.has(user.id) ?? true) await importUser(run, user)
  for await (const found of source.namespaces()) {
    const namespace = { ...found, tenant_id: found.tenant_id.toLowerCase() }
    if (progress.wanted?.tenants.has(namespace.tenant_id) ?? true) await importNamespace(run, namespace)
  }
}

async function importUser(run: ImportRun, user: FoundUser): Promise<void> {
  const { inside, report, progress, parts } = run
  const [username, email] = [user.username.toLowerCase(), user.email.toLowerCase()]
  const leave = (sentence: string): void => {
    report.problem(`${user.where}: ${sentence}`)
    report.count('users', 'left')
  }
  if (username === '' && user.password === '') {
    report.note('People who were invited and never came stay behind', user.email)
    return report.count('users', 'left')
  }
  if (!fits(patterns.userId, user.id)) return leave(`${shown(user.id)} is no id of a user.`)
  if (await inside.users.find(user.id)) {
    progress.people.set(user.id, user.id)
    return report.count('users', 'there')
  }
  if (!fits(patterns.knownUsername, username))
    return leave(`the username ${shown(username)} needs 3 to 32 letters, digits or - _ . @`)
  if (!fits(patterns.email, email) || email.length > 254)
    return leave(`the e-mail address ${shown(email)} is not valid.`)
  const taken = await inside.users.taken({ username, email })
  if (taken.length > 0) {
    const other = await inside.users.findByUsername(username)
    const alike = other?.username === username && other.email === email
    // Anybody can register with both. Only a confirmed address identifies a person.
    const same = alike && other.confirmed === 1 && other.former_email === null
    if (same && run.options.samePeople) {
      progress.people.set(user.id, other.id)
      report.note('Existing users keep their password and second factor', username)
      return report.count('users', 'there')
    }
    const value = taken.includes('username')
      ? `the username ${shown(username)}`
      : `the e-mail address ${shown(email)}`
    return leave(
      same
        ? `${shown(username)} is here already; say --same-people if it is the same person.`
        : alike
          ? `${shown(username)} is here already, but has not confirmed the e-mail address ${shown(email)}.`
          : `${value} belongs to somebody else here; rename one of the two.`,
    )
  }
  const secret = user.mfa?.secret.replaceAll(/[\s=]/g, '').toUpperCase() ?? ''
  const lost = user.mfa !== undefined && !base32Secret.test(secret)
  if (lost)
    report.problem(
      `${user.where}: the second factor of ${shown(username)} cannot be read; a new password by e-mail is then needed.`,
    )
  const password = lost ? undefined : await adoptHash(user.password)
  if (password === undefined)
    report.note(
      'People without a password that could be moved; they set a new one by e-mail, or you do',
      username,
    )
  const recovery = user.recovery_email.toLowerCase()
  // The address was confirmed there.
  if (user.confirmed) await inside.addressClaims.end(email, user.id)
  await inside.users.insert({
    id: user.id,
    username,
    email,
    name: (user.name || username).slice(0, longest_name),
    recovery_email: recovery !== email && fits(patterns.email, recovery) ? recovery : null,
    // Empty is no hash of any password.
    password: password ?? '',
    confirmed: user.confirmed ? 1 : 0,
    epoch: 1,
    email_marketing: user.email_marketing ? 1 : 0,
    max_namespaces: user.max_namespaces > 0 ? Math.floor(user.max_namespaces) : -1,
    preferred_tenant: user.preferred_tenant.toLowerCase() || null,
    mfa_secret: user.mfa && !lost ? parts.vault.seal('mfa secret', secret) : null,
    mfa_step: 0,
    created_at: user.created_at ?? iso(parts.clock.now()),
    last_login_at: user.last_login_at ?? null,
  })
  if (user.mfa && !lost) {
    const codes = new Set(user.mfa.codes.filter((code) => plainCode.test(code)))
    await inside.users.setRecoveryCodes(user.id, [
      ...new Set([...codes].map((code) => recoveryMark(parts.vault, user.id, code))),
    ])
    if (codes.size < user.mfa.codes.length)
      report.note(
        'People whose recovery codes cannot be moved; the codes of their second factor keep working',
        username,
      )
  }
  progress.people.set(user.id, user.id)
  report.count('users', 'moved')
}

async function importNamespace(run: ImportRun, namespace: FoundNamespace): Promise<void> {
  const { inside, report, progress, parts } = run
  const { tenant_id } = namespace
  const name = namespace.name.toLowerCase()
  const leave = (sentence: string): void => {
    report.problem(
      `${namespace.where}: the namespace ${shown(name)} cannot be moved, with all that is in it: ${sentence}`,
    )
    progress.left.add(tenant_id)
    report.count('namespaces', 'left')
  }
  const created_at = namespace.created_at ?? iso(parts.clock.now())
  const owner = progress.people.get(namespace.owner)
  const here = await inside.namespaces.find(tenant_id)
  if (here) report.count('namespaces', 'there')
  else {
    if (!fits(patterns.uuid, tenant_id)) return leave('its tenant id is no UUID.')
    if (!fits(patterns.namespaceName, name))
      return leave('a name needs letters, digits and hyphens, at most 63.')
    if (owner === undefined) return leave('its owner is not among the people who can be moved.')
    if (await inside.namespaces.findByName(name))
      return leave('another one has this name here; rename one of the two.')
    const ofShellHub = /Welcome to ShellHub/.test(namespace.connection_announcement)
    if (ofShellHub)
      report.note('The announcement that ShellHub shows unless one writes another is not taken over', name)
    await inside.namespaces.insert({
      tenant_id,
      name,
      owner,
      session_record: namespace.session_record ? 1 : 0,
      connection_announcement: ofShellHub ? '' : namespace.connection_announcement,
      max_devices: parts.billed ? free_devices : -1,
      free_devices: parts.billed ? free_devices : null,
      billing: null,
      created_at,
      imported: 1,
    })
    report.count('namespaces', 'moved')
  }
  progress.namespaces.add(tenant_id)
  const owning: FoundMember = { id: namespace.owner, role: 'owner', pending: false, added_at: created_at }
  const others = namespace.members.filter((member) => member.id !== namespace.owner)
  const since = namespace.members.find((member) => member.id === namespace.owner)?.added_at ?? created_at
  for (const member of [{ ...owning, added_at: since }, ...others])
    await importMember(run, namespace, member, here ? here.owner : owner, created_at)
}

async function importMember(
  { inside, report, progress }: ImportRun,
  { tenant_id, name, where }: FoundNamespace,
  member: FoundMember,
  owner: string | undefined,
  created_at: string,
): Promise<void> {
  if (member.pending) {
    report.note('Invitations that were not answered stay behind: add these people as members', name)
    return report.count('members', 'left')
  }
  const user_id = progress.people.get(member.id)
  if (user_id === undefined) {
    report.note('Members without a user stay behind', name)
    return report.count('members', 'left')
  }
  if (await inside.namespaces.member(tenant_id, user_id)) return report.count('members', 'there')
  const found = Role.enum.find((role) => role === member.role)
  if (!found) {
    report.problem(`${where}: ${shown(member.role)} is no role that a member can have.`)
    return report.count('members', 'left')
  }
  const role = found === 'owner' && user_id !== owner ? 'administrator' : found
  if (role !== found)
    report.note('Owners of namespaces that have another owner here become administrators', name)
  await inside.namespaces.addMember({
    tenant_id,
    user_id,
    role,
    epoch: newUuid(),
    created_at: member.added_at ?? created_at,
  })
  report.count('members', 'moved')
}
