// The entries of the command palette for a text. Its beginning may be a verb (“accept quay”), which
// leaves the things that the verb fits; a thing by itself (“quay-gate”) comes with its verbs. What the role
// of the person does not allow, or what cannot be done now, is listed with the reason. Nothing here asks the
// server or changes anything.
import { rank, type Role } from '@hawser/contract/access'
import type { Device } from '@hawser/contract/devices'
import type { Session } from '@hawser/contract/sessions'
import { inFull } from '../language/format.ts'
import { msg, t } from '../language/language.ts'
import { themes, type Theme } from '../theme.ts'

export type DeviceVerb = 'accept' | 'reject' | 'rename' | 'tag' | 'remove'

export type Act =
  | { readonly what: 'go'; readonly href: string }
  /** Writes the beginning of a sentence into the field. */
  | { readonly what: 'write'; readonly text: string }
  | { readonly what: 'device'; readonly verb: DeviceVerb; readonly device: Device }
  | { readonly what: 'close'; readonly session: Session }
  | { readonly what: 'switch'; readonly tenant_id: string; readonly name: string }
  | { readonly what: 'theme'; readonly theme: Theme }
  | { readonly what: 'sign-out' }

export interface Entry {
  readonly id: string
  readonly text: string
  readonly about?: string | undefined
  readonly why?: string | undefined
  readonly danger?: boolean | undefined
  readonly act: Act
}

export interface Asking {
  readonly id: string
  readonly role: string
  readonly tenant: string
}

export interface Place {
  readonly to: string
  readonly text: string
}

export interface Things {
  readonly devices: readonly Device[]
  readonly sessions: readonly Session[]
  readonly members: readonly { readonly id: string; readonly username: string; readonly role: string }[]
  readonly namespaces: readonly { readonly tenant_id: string; readonly name: string }[]
}

type Kind = 'device' | 'session' | 'member' | 'namespace'
interface Kinds {
  device: Device
  session: Session
  member: Things['members'][number]
  namespace: Things['namespaces'][number]
}

interface Verb<K extends Kind> {
  readonly of: K
  readonly id: string
  readonly begins: readonly string[]
  readonly says: string
  readonly needs?: Role
  readonly statuses?: readonly Device['status'][]
  readonly danger?: boolean
  fits(thing: Kinds[K], asking: Asking): boolean
  hinders?(thing: Kinds[K]): string | undefined
  act(thing: Kinds[K]): Act
}
type AnyVerb = { [K in Kind]: Verb<K> }[Kind]

const isAccepted = ({ status }: Device): boolean => status === 'accepted'
const isPlayable = ({ recorded, active }: Session): boolean => recorded && !active
const on =
  (verb: DeviceVerb) =>
  (device: Device): Act => ({ what: 'device', verb, device })
const to =
  <T>(address: (thing: T) => string) =>
  (thing: T): Act => ({ what: 'go', href: address(thing) })
const sessionPage = to<Session>(({ uid }) => `/sessions/${uid}`)
/** In the router's notation for a text that might be a number. */
const searchOf = (name: string, value: string): string =>
  `${name}=${encodeURIComponent(JSON.stringify(value))}`

const verbs: readonly AnyVerb[] = [
  {
    of: 'device',
    id: 'terminal',
    begins: [msg('terminal on'), msg('terminal'), 'ssh'],
    says: msg('Terminal on {name}'),
    statuses: ['accepted'],
    fits: isAccepted,
    hinders: ({ online }) => (online ? undefined : t('it is offline')),
    act: to(({ uid }) => `/devices/${uid}/terminal`),
  },
  {
    of: 'device',
    id: 'accept',
    begins: [msg('accept')],
    says: msg('Accept {name}'),
    needs: 'operator',
    statuses: ['pending', 'rejected'],
    fits: (device) => !isAccepted(device),
    act: on('accept'),
  },
  {
    of: 'device',
    id: 'reject',
    begins: [msg('reject')],
    says: msg('Reject {name}'),
    needs: 'operator',
    danger: true,
    statuses: ['pending', 'accepted'],
    fits: ({ status }) => status !== 'rejected',
    act: on('reject'),
  },
  {
    of: 'device',
    id: 'sessions',
    begins: [msg('sessions on')],
    says: msg('Sessions on {name}'),
    fits: isAccepted,
    act: to(({ uid }) => `/sessions?${searchOf('device', uid)}`),
  },
  {
    of: 'device',
    id: 'rename',
    begins: [msg('rename')],
    says: msg('Rename {name} …'),
    needs: 'operator',
    fits: () => true,
    act: on('rename'),
  },
  {
    of: 'device',
    id: 'tag',
    begins: [msg('tags of'), msg('tag')],
    says: msg('Tags of {name} …'),
    needs: 'operator',
    fits: isAccepted,
    act: on('tag'),
  },
  {
    of: 'device',
    id: 'delete',
    begins: [msg('delete'), msg('remove')],
    says: msg('Delete {name} …'),
    needs: 'administrator',
    danger: true,
    fits: () => true,
    act: on('remove'),
  },
  {
    of: 'session',
    id: 'watch',
    begins: [msg('watch')],
    says: msg('Watch {name}'),
    needs: 'administrator',
    fits: ({ active }) => active,
    hinders: ({ recorded }) => (recorded ? undefined : t('it is not being recorded')),
    act: sessionPage,
  },
  {
    of: 'session',
    id: 'replay',
    begins: [msg('replay'), msg('play')],
    says: msg('Replay {name}'),
    needs: 'administrator',
    fits: isPlayable,
    act: sessionPage,
  },
  {
    of: 'session',
    id: 'continue',
    begins: [msg('continue')],
    says: msg('Continue {name}'),
    fits: ({ held, person }, { id }) => held && person.kind === 'user' && person.id === id,
    act: to(({ uid, device_uid }) => `/devices/${device_uid}/terminal?continue=${uid}`),
  },
  {
    of: 'session',
    id: 'close',
    begins: [msg('close session'), msg('close')],
    says: msg('Close the session {name} …'),
    needs: 'administrator',
    danger: true,
    fits: ({ active }) => active,
    act: (session) => ({ what: 'close', session }),
  },
  {
    of: 'member',
    id: 'sessions of',
    begins: [msg('sessions of')],
    says: msg('Sessions of {name}'),
    fits: () => true,
    act: to(({ id }) => `/sessions?${searchOf('person', id)}`),
  },
  {
    of: 'namespace',
    id: 'switch',
    begins: [msg('switch namespace'), msg('switch to'), msg('switch')],
    says: msg('Switch to {name}'),
    fits: ({ tenant_id }, { tenant }) => tenant_id !== tenant,
    act: ({ tenant_id, name }) => ({ what: 'switch', tenant_id, name }),
  },
]

const searchBegins = [msg('search recordings for'), msg('search recordings'), msg('search for')]

/** In the language of the page. */
const begin = (text: string): string => t(text).toLowerCase()

/** The text after a verb, in English or in the language of the page. */
function restBehind(typed: string, begins: readonly string[]): string | undefined {
  const text = typed.toLowerCase()
  for (const words of begins.flatMap((one) => [begin(one), one]))
    if (text.startsWith(`${words} `)) return typed.slice(words.length).trim()
  return undefined
}

const isBeginning = (typed: string, begins: readonly string[]): boolean =>
  typed !== '' && begins.some((one) => begin(one).startsWith(typed) || one.startsWith(typed))

export interface Sought {
  readonly name: string
  /** Absent: all. */
  readonly statuses?: readonly Device['status'][] | undefined
}

export function soughtIn(typed: string): Sought {
  const text = typed.trimStart()
  for (const { begins, statuses } of verbs) {
    const name = restBehind(text, begins)
    if (name !== undefined) return { name, statuses }
  }
  return { name: text.trim() }
}

const why = (needs: Role | undefined, { role }: Asking): string | undefined =>
  needs === undefined || (role !== '' && rank(role as Role) >= rank(needs))
    ? undefined
    : t('needs the role {role}', { role: t(needs) })

const roleWords = [msg('operator'), msg('administrator'), msg('owner'), msg('observer')] as const
const word = (role: string): string => t(roleWords.find((one) => one === role) ?? role)

const stateOf = ({ status, online }: Device): string =>
  status === 'accepted'
    ? online
      ? t('device, online')
      : t('device, offline')
    : status === 'pending'
      ? t('device, waiting')
      : t('device, rejected')

const sessionName = ({ username, web, device }: Session): string =>
  t('{user} on {device}', { user: web?.name ?? username, device: device.name })
const sessionState = ({ active, held, person, started_at }: Session): string =>
  [held ? t('held session') : active ? t('live session') : t('past session'), person.name, inFull(started_at)]
    .filter(Boolean)
    .join(', ')

const has = (text: string, part: string): boolean => text.toLowerCase().includes(part.toLowerCase())
/** Whether each typed word begins one of the text. */
const fitsWords = (text: string, typed: string): boolean => {
  const words = text.toLowerCase().split(/\s+/)
  return typed.split(/\s+/).every((one) => words.some((word) => word.startsWith(one)))
}
const fitsName = {
  device: ({ name }: Device, part: string) => has(name, part),
  session: (session: Session, part: string) =>
    has(`${sessionName(session)} ${session.person.name} ${session.uid}`, part),
  member: ({ username }: Kinds['member'], part: string) => has(username, part),
  namespace: ({ name }: Kinds['namespace'], part: string) => has(name, part),
}

function entryOf<K extends Kind>(
  verb: Verb<K>,
  thing: Kinds[K],
  name: string,
  uid: string,
  asking: Asking,
): Entry {
  return {
    id: `${verb.id} ${uid}`,
    text: t(verb.says, { name }),
    why: why(verb.needs, asking) ?? verb.hinders?.(thing),
    danger: verb.danger,
    act: verb.act(thing),
  }
}

function all({ devices, sessions, members, namespaces }: Things) {
  return {
    device: devices.map((thing) => ({ thing, name: thing.name, uid: thing.uid, about: stateOf(thing) })),
    session: sessions.map((thing) => ({
      thing,
      name: sessionName(thing),
      uid: thing.uid,
      about: sessionState(thing),
    })),
    member: members.map((thing) => ({
      thing,
      name: thing.username,
      uid: thing.id,
      about: t('member, {role}', { role: word(thing.role) }),
    })),
    namespace: namespaces.map((thing) => ({
      thing,
      name: thing.name,
      uid: thing.tenant_id,
      about: t('namespace'),
    })),
  }
}

const mostOfEach = 8
/** Up to this number of things of a kind, their verbs are offered. */
const few = 2

/** The verb at the beginning of the text, and the things that it fits. */
function acting(verb: AnyVerb, rest: string, things: Things, asking: Asking): Entry[] {
  // This holds for each kind by itself, hence for their union, which the compiler cannot follow.
  const one = verb as Verb<'device'>
  const candidates = all(things)[verb.of] as ReturnType<typeof all>['device']
  const fits = fitsName[verb.of] as (typeof fitsName)['device']
  return candidates
    .filter(({ thing }) => fits(thing, rest) && one.fits(thing, asking))
    .slice(0, mostOfEach)
    .map(({ thing, name, uid, about }) => ({ ...entryOf(one, thing, name, uid, asking), about }))
}

/** Entries without the server: pages, beginnings of sentences, and acts on the console itself. */
export function ownEntries(typed: string, places: readonly Place[], asking: Asking): Entry[] {
  const text = typed.trim().toLowerCase()
  const pages = places
    .filter((place) => has(place.text, text) || fitsWords(place.text, text))
    .map((place): Entry => ({ id: place.to, text: place.text, act: { what: 'go', href: place.to } }))
  const commands: readonly (Entry & { readonly words: string })[] = [
    {
      id: 'invite',
      text: t('Invite someone …'),
      words: t('invite add member colleague person'),
      why: why('administrator', asking),
      act: { what: 'go', href: '/settings' },
    },
    ...themes.map((theme) => ({
      id: `theme ${theme}`,
      text: { system: t('System theme'), light: t('Light theme'), dark: t('Dark theme') }[theme],
      words: t('theme {name}', { name: theme }),
      act: { what: 'theme', theme } as const,
    })),
    { id: 'sign-out', text: t('Sign out'), words: t('sign out log out'), act: { what: 'sign-out' } },
  ]
  const fitting = commands.filter(
    (command) => text !== '' && fitsWords(`${command.text} ${command.words}`, text),
  )
  const beginnings = verbs
    .filter(({ begins }) => isBeginning(text, begins))
    .map(({ id, begins, says, needs }): Entry => ({
      id: `begin ${id}`,
      text: t(says, { name: '…' }).replace('… …', '…'),
      why: why(needs, asking),
      act: { what: 'write', text: `${begin(begins[0]!)} ` },
    }))
  if (isBeginning(text, searchBegins))
    beginnings.push({
      id: 'begin search',
      text: t('Search recordings for {text}', { text: '…' }),
      why: why('administrator', asking),
      act: { what: 'write', text: `${begin(searchBegins[0]!)} ` },
    })
  return [...beginnings, ...pages, ...fitting]
}

/** Things found by name, with their verbs. */
export function foundEntries(typed: string, things: Things, asking: Asking): Entry[] {
  const text = typed.trimStart()
  const sought = restBehind(text, searchBegins)
  if (sought !== undefined) return sought === '' ? [] : [searching(sought, asking)]
  const chosen = verbs.flatMap((verb) => {
    const rest = restBehind(text, verb.begins)
    return rest === undefined ? [] : [{ verb, rest }]
  })
  if (chosen.length > 0) return chosen.flatMap(({ verb, rest }) => acting(verb, rest, things, asking))

  const name = text.trim()
  const entries: Entry[] = []
  const kinds = all(things)
  for (const kind of ['device', 'session', 'member', 'namespace'] as const) {
    const candidates = kinds[kind] as ReturnType<typeof all>['device']
    const fits = fitsName[kind] as (typeof fitsName)['device']
    // Without a text there are devices only.
    const found = (name === '' && kind !== 'device' ? [] : candidates)
      .filter(({ thing }) => fits(thing, name))
      .slice(0, mostOfEach)
    const withVerbs = name !== '' && found.length <= few
    for (const { thing, name: called, uid, about } of found) {
      const address = { device: `/devices/${uid}`, session: `/sessions/${uid}` }[kind as 'device' | 'session']
      if (address !== undefined)
        entries.push({ id: `${kind} ${uid}`, text: called, about, act: { what: 'go', href: address } })
      for (const verb of verbs as readonly Verb<'device'>[])
        if ((verb.of as Kind) === kind && (withVerbs || address === undefined) && verb.fits(thing, asking))
          entries.push({
            ...entryOf(verb, thing, called, uid, asking),
            about: address === undefined ? about : undefined,
          })
    }
  }
  return name.length < 2 ? entries : [...entries, searching(name, asking)]
}

const searching = (text: string, asking: Asking): Entry => ({
  id: 'search',
  text: t('Search recordings for {text}', { text: `“${text}”` }),
  why: why('administrator', asking),
  act: { what: 'go', href: `/search?${searchOf('text', text)}` },
})
