// The server's sentences about what happened to a device, why it is offline, the steps of an explained login,
// and the names of clients. Each is a text with places for values. Answers carry the English sentence and its
// parts by name with their values, so that it can be shown in another language.
import Type, { type Static } from './type.ts'

export const sentences = {
  // Events of a device.
  connected: 'It connected.',
  'connected-from': 'It connected from {address}.',
  'address-changed': 'Its address changed from {before} to {after}.',
  'agent-changed': 'Its agent changed from {before} to {after}.',
  'ended-silent': 'Its network was gone: the server had not heard it for {silent_s}.',
  'ended-lost': 'The connection broke: its network was cut, or its agent was killed.',
  'ended-closed': 'Its agent closed the connection.',
  'ended-broken': 'Its agent broke the protocol.',
  'ended-broken-by': 'Its agent broke the protocol: {detail}',
  'ended-replaced': 'A newer connection of the device took its place.',
  'ended-moved': 'A newer connection of the device, to another node, took its place.',
  'ended-revoked': 'It was rejected or removed.',
  'ended-unproved': 'It could not prove that it holds the device’s key.',
  'ended-stopping': 'The server stopped.',
  ended: 'The connection ended.',
  'had-lasted': 'The connection had lasted {lasted_s}.',
  'key-missing': 'A client with its token, but without its key, tried to connect in its place.',
  'round-trip': 'A round trip takes {milliseconds} ms.',
  'left-stopped': 'Its agent was stopped.',
  'left-shutdown': 'The machine was shut down or restarted.',
  'left-update': 'Its agent restarts for an update.',
  'left-gone': 'Its container was removed.',
  'two-machines':
    'Two machines use its identity: {place} and {address}. Give the copy its own: by `hawser-agent reset-identity`, or without an agent by new SSH host keys.',
  flapping: 'It connected and disconnected all the time: {times} more events in a minute.',
  'status-changed': 'It is {status} now.',
  renamed: 'It was renamed from {before} to {after}.',
  'loss-seen': 'Its agent reports how it lost the connection at {lost_at}: {why}',
  rebooted: 'The machine was started again.',
  'rebooted-at': 'The machine was started again at {started_at}.',
  'clock-right': 'Its clock is right again.',
  'clock-ahead': 'Its clock is {skew_s} ahead.',
  'clock-behind': 'Its clock is {skew_s} behind.',

  'offline-server-lost':
    'The server ended without closing the connection of {up_at}, and the device has not come back.',
  'offline-stopped': 'Its agent was stopped at {left_at}.',
  'offline-shutdown': 'The machine was shut down or restarted at {left_at}.',
  'offline-update': 'Its agent restarts for an update at {left_at}.',
  'offline-gone': 'Its container was removed at {left_at}.',
  'offline-silent': 'Its network has been gone since {gone_at}; the server noticed after {silent_s}.',
  'offline-lost': 'Its connection broke at {ended_at}: its network was cut, or its agent was killed.',
  'offline-closed':
    'Its agent closed the connection at {ended_at}: it was stopped, or the machine was shut down.',
  'offline-broken': 'Its agent broke the protocol at {ended_at}.',
  'offline-broken-by': 'Its agent broke the protocol at {ended_at}: {detail}',
  'offline-revoked': 'It was rejected or removed at {ended_at}.',
  'offline-unproved': 'At {ended_at} it could not prove that it holds the device’s key.',
  'offline-stopping': 'The server stopped at {ended_at}, and the device has not come back.',
  'offline-ended': 'Its connection ended at {ended_at}.',

  'waits-person': 'It waits to be accepted.',
  'waits-set-back': 'A member set it back to pending; someone must accept it again.',
  'waits-connector': 'Its connector accepts containers at once, but cannot accept this one yet.',
  'waits-name':
    'The name {device} is taken by another accepted device. Rename or remove one of them. Container names become device names in lower case, with _ for dots.',
  'waits-twin': 'It is the same container as {device}, which another connector or an agent offers.',
  'waits-mac': 'It has the same MAC address as {device}; accepting it replaces that device.',
  'waits-room': 'The namespace has reached its device limit.',
  'waits-gone':
    'Its container was removed. Its sessions are kept; a new container with the same name becomes this device again.',
  'keeps-name':
    'Its container is called {container}, but another accepted device has that name, so it stays {device}.',

  // The steps of a login, in their order.
  'sign-in-untold': 'Whether {person} is signed in, only they can tell.',
  member: '{person} is a member of the namespace: {role}.',
  'not-member-browser': '{person} is not a member of the namespace, and only members open terminals here.',
  'not-member-ssh':
    '{person} is not a member of the namespace. The key or the password decides about SSH clients.',
  'role-may': 'The role {role} may open sessions.',
  'role-may-not': 'The role {role} may not open sessions this way.',
  'device-accepted': '{device} is an accepted device of {namespace}.',
  'device-unknown': 'The namespace {namespace} has no device {device}.',
  'device-not-accepted': '{device} is {status}: it must be accepted before people can reach it.',
  'device-gone': 'The container of {device} was removed.',
  'device-connected': '{device} is connected.',
  'device-offline': '{device} is offline.',
  'no-rules': 'The namespace has no active firewall rules, so everything is allowed.',
  'no-rule-applies': 'No firewall rule applies, so the login is allowed.',
  'rules-too-slow': 'The firewall rules take too long to evaluate, so the login is denied.',
  'rule-allows': 'Rule {rule} ({action}, priority {priority}) applies and allows the login.',
  'rule-denies': 'Rule {rule} ({action}, priority {priority}) applies and denies the login.',
  'rule-too-slow-denies':
    'Rule {rule} ({action}, priority {priority}) cannot be evaluated within its bound, so it denies the login.',
  'rule-too-slow-allows':
    'Rule {rule} ({action}, priority {priority}) cannot be evaluated within its bound, so it allows nobody.',
  'rule-ignored': 'Rule {rule} ({action}, priority {priority}) does not apply: {list}.',
  'other-source': 'the address {source} does not match {pattern}',
  'other-user': 'the user {username} does not match {pattern}',
  'other-device': 'the device {device} does not match {pattern}',
  'other-tags': 'the device has none of the tags {tags}',
  'no-tags': 'it names no tag',
  'within-limit': 'The namespace is within its device limit.',
  'over-limit': 'This namespace is over its device limit; its owner must remove devices or upgrade.',
  'key-good': 'The key “{key}” is good for {username} on {device}.',
  'key-signs':
    '“{key}” is a certificate authority for {username} on {device}. Whether a certificate that it signed is good depends on the users, addresses and times in it.',
  'key-refused': '{because}',
  'key-refused-named': 'The key “{key}”: {because}',
  'key-old-agent':
    'The agent of {device} ({version}) is too old to check logins by key, so the server makes none. Update it.',
  'key-too-slow':
    'The key “{key}” has a pattern that cannot be evaluated within its bound, so it lets nobody in.',
  'key-not-for': 'The key “{key}” is not for this login: {list}.',
  'key-without-owner':
    '“{key}” has no owner, and this namespace only allows identified users: give it one, or use hawser ssh.',
  'password-names-nobody':
    'This namespace only allows identified users, and a password identifies nobody: use hawser ssh or the terminal in the browser.',
  'person-named': 'This namespace only allows identified users, and this client identifies who is signed in.',
  'attempts-untold':
    'No login from {source} was refused here lately; whether too many failed elsewhere is not told.',
  'attempts-too-many':
    'Too many logins from {source} have failed; passwords from there are refused for {seconds} s.',
  'attempts-few': 'Few enough logins from {source} have failed.',
  'password-not-taken':
    '{device} is a container behind a connector, which does not accept passwords; log in with a public key of the namespace.',
  'account-container': '{username} must be in the /etc/passwd of the container.',
  'account-password': 'The device checks the password; the server does not know it.',
  'account-agentless':
    'The device has no agent: its SSH server has to take the namespace’s login key for {username}.',
  'account-key': 'The device decides whether {username} may log in there.',
  'account-never': 'None of the newest sessions of the namespace was one of {username} there.',
  'account-before': 'A session of {username} began there at {began_at}.',
  'policy-open': 'The policy of the namespace forbids nothing.',
  policy: 'The policy of the namespace forbids {list}.',
  'policy-uploads': 'uploads',
  'policy-downloads': 'downloads',
  'policy-forwards': 'forwarded connections',
  'policy-forwards-to': 'forwarded connections to {exceptions}',
  'policy-forwards-but': 'forwarded connections to other than {exceptions}',
  'policy-subsystems': 'the subsystems',
  'policy-subsystems-of': 'the subsystems {exceptions}',
  'policy-subsystems-but': 'the subsystems other than {exceptions}',
  'policy-services': 'services of devices in browsers',
  'nothing-refuses': 'Nothing here refuses the login; the device itself decides the rest.',

  client: '{program}',
  'client-on-system': '{program} on {system}',
  'client-on-host': '{program} on {host}',
  'client-unknown': 'an unknown client',
} as const
export type SentenceName = keyof typeof sentences

/** Values that may be a word or a sentence of the server's own, which other languages translate, too. */
export const wordValues: readonly string[] = ['action', 'because', 'place', 'role', 'status', 'why']

const values = Type.Record(Type.String(), Type.Union([Type.String(), Type.Number()]), {
  description: 'By name: those that end in _at are moments, those that end in _s are seconds.',
})
const name = Type.String({ description: 'Of the sentence; its words may change, its name does not.' })

export const SentencePart = Type.Object({
  name,
  values,
  list: Type.Optional(Type.Array(Type.Object({ name, values }), { description: 'What the sentence lists.' })),
})
export type SentencePart = Static<typeof SentencePart>

/** The parts of a sentence, which answers have in addition to it. */
export const SentenceParts = Type.Array(SentencePart, {
  description: 'The sentence by name, for those who show it in another language.',
})

export interface Sentence {
  readonly sentence: string
  readonly parts: SentencePart[]
}

type Places<Text extends string> = Text extends `${string}{${infer Place}}${infer Rest}`
  ? Exclude<Place, 'list'> | Places<Rest>
  : never
type Values<Name extends SentenceName> = Readonly<Record<Places<(typeof sentences)[Name]>, string | number>>

export const part = <Name extends SentenceName>(
  name: Name,
  ...[given]: [Places<(typeof sentences)[Name]>] extends [never] ? [] : [Values<Name>]
): SentencePart => ({ name, values: { ...given } })

export const say = (...parts: SentencePart[]): Sentence => ({
  sentence: parts.map(inEnglish).join(' '),
  parts,
})

function inEnglish({ name, values: given, list = [] }: SentencePart): string {
  const shown = Object.entries(given).map(([place, value]) => [place, valueText(place, value)] as const)
  const all = new Map([...shown, ['list', list.map(inEnglish).join('; ')]])
  return sentences[name as SentenceName].replaceAll(/\{(\w+)\}/g, (_, place: string) => all.get(place) ?? '')
}

function valueText(place: string, value: string | number): string {
  if (place.endsWith('_at')) return momentText(String(value))
  return place.endsWith('_s') ? durationText(Number(value)) : String(value)
}

const momentText = (at: string): string => `${at.slice(0, 10)} ${at.slice(11, 19)} UTC`

export function durationText(seconds: number): string {
  if (seconds < 120) return `${seconds} s`
  const minutes = Math.floor(seconds / 60)
  if (minutes < 120) return `${minutes} min`
  const hours = Math.floor(minutes / 60)
  return hours < 48 ? `${hours} h ${minutes % 60} min` : `${Math.floor(hours / 24)} days`
}
