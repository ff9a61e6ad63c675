// The filters of the list of devices as somebody types them: `tag:pier is:online pump`. A filter is a name, a colon and
// a value; all else are words. The address keeps each of them as a parameter (device-list.ts); this is the way from
// there to words, from words to there, and from half a word to what it may become.
import { filtersIn, oldAgent, spanOf, tagsOf, unquoted, wordsOf, type DeviceFilters } from '../device-list.ts'
import { msg, t, tn } from '../language/language.ts'

/** In the order of the suggestions. */
const about = {
  is: msg('Online or offline'),
  tag: msg('With this tag'),
  os: msg('Operating system'),
  arch: msg('Processor'),
  agent: msg('Version of the agent, or: old'),
  name: msg('Part of the name'),
  ip: msg('Part of the network address'),
  mac: msg('Part of the MAC address'),
  unseen: msg('Not seen for hours or days: 12h, 7d'),
  added: msg('Added in the last hours or days: 12h, 7d'),
} as const
export type FilterName = keyof typeof about
export const filterNames = Object.keys(about) as FilterName[]

export interface Filter {
  readonly name: FilterName
  readonly value: string
}

export type FilterChange = { [K in keyof DeviceFilters]?: DeviceFilters[K] | undefined }

/** In the order on the screen; words are no filters. */
export function filtersOf(search: DeviceFilters): Filter[] {
  const { online } = search
  return filterNames.flatMap((name): Filter[] => {
    if (name === 'tag') return tagsOf(search).map((value) => ({ name, value }))
    if (name === 'is') return online === undefined ? [] : [{ name, value: online ? 'online' : 'offline' }]
    const value = search[name]
    return value === undefined ? [] : [{ name, value }]
  })
}

export function withFilters(search: DeviceFilters, added: readonly Filter[]): FilterChange {
  const change: FilterChange = {}
  const tags = added.filter(({ name }) => name === 'tag').map(({ value }) => value)
  if (tags.length > 0) change.tag = [...tagsOf(search), ...tags]
  for (const { name, value } of added)
    if (name === 'is') change.online = value === 'online'
    else if (name !== 'tag') change[name] = value
  return change
}

export function withoutFilter(search: DeviceFilters, { name, value }: Filter): FilterChange {
  if (name === 'tag') return { tag: tagsOf(search).filter((tag) => tag !== value) }
  return { [name === 'is' ? 'online' : name]: undefined }
}

/** All filters, unset. */
export const noFilters: FilterChange = {
  find: undefined,
  online: undefined,
  ...Object.fromEntries(filterNames.map((name) => [name, undefined])),
}

export const isFiltered = (search: DeviceFilters): boolean => Object.keys(filtersIn(search)).length > 0

/** The name and the value of a word in the form of a filter. */
function halves(word: string): Filter | undefined {
  const colon = word.indexOf(':')
  const name = filterNames.find((one) => one === word.slice(0, Math.max(colon, 0)).toLowerCase())
  return name && { name, value: unquoted(word.slice(colon + 1)).trim() }
}

/** Undefined: the word is plain, or has no such value. */
function filterIn(word: string): Filter | undefined {
  const found = halves(word)
  if (!found?.value) return undefined
  const { name } = found
  const value = name === 'is' || name in spans ? found.value.toLowerCase() : found.value
  if (name === 'is' && value !== 'online' && value !== 'offline') return undefined
  if (name in spans && !spanOf(value)) return undefined
  return { name, value }
}

const blankAfterName = new RegExp(`((?:^|\\s)(?:${filterNames.join('|')}):)\\s+`, 'gi')

export interface Read {
  readonly filters: readonly Filter[]
  readonly text: string
  /** The plain words in it, to search for. */
  readonly find: string
}

/** A filter is finished when a blank follows, or when the whole text is. */
export function readTyped(given: string, isFinished = false): Read {
  // People write a blank after a colon.
  const typed = given.replaceAll(blankAfterName, '$1')
  const words = wordsOf(typed)
  const isOpen = !isFinished && words.length > 0 && !/\s$/.test(typed)
  const filters: Filter[] = []
  const rest: string[] = []
  for (const [index, word] of words.entries()) {
    const filter = isOpen && index === words.length - 1 ? undefined : filterIn(word)
    if (filter) filters.push(filter)
    else rest.push(word)
  }
  const isHalf = (word: string, index: number) =>
    isOpen && index === rest.length - 1 ? halves(word) : halves(word)?.value === ''
  const plain = rest.filter((word, index) => !isHalf(word, index))
  const room = rest.length > 0 && !isOpen && !isFinished ? ' ' : ''
  const text = filters.length === 0 && !isFinished ? typed : rest.join(' ') + room
  return { filters, text, find: plain.join(' ') }
}

const spans = { unseen: true, added: true } as const

export interface Known {
  readonly tags: readonly string[]
  readonly systems: readonly string[]
  readonly arches: readonly string[]
  readonly agents: readonly string[]
}

export interface Suggestion {
  readonly text: string
  readonly about: string
  /** Undefined: only the name, which a value has to follow. */
  readonly filter?: Filter
}

const [mostOfName, mostOfAll] = [50, 6] as const

const typedAs = ({ name, value }: Filter): string => `${name}:${/\s/.test(value) ? `"${value}"` : value}`

function valuesOf(name: FilterName, { tags, systems, arches, agents }: Known): readonly string[] {
  if (name === 'is') return ['online', 'offline']
  if (name === 'tag') return tags
  // The first word of a system is its family: Debian, Ubuntu.
  if (name === 'os')
    return [...new Set([...systems.map((system) => system.split(' ')[0] ?? ''), ...systems])].filter(Boolean)
  if (name === 'arch') return arches
  if (name === 'agent') return [oldAgent, ...agents]
  return name in spans ? ['1d', '7d', '30d', '90d'] : []
}

const isShort = ({ name, value }: Filter): boolean =>
  name === 'is' || name in spans || (name === 'agent' && value === oldAgent)

const suggested = (filter: Filter): Suggestion => ({
  text: typedAs(filter),
  // The value is shown already, unless it is short for something.
  about: isShort(filter) ? filterWords(filter) : t(about[filter.name]),
  filter,
})

/** Completions of the last word, without those that are set. */
export function suggestionsFor(typed: string, known: Known, search: DeviceFilters): Suggestion[] {
  const word = /\s$/.test(typed) ? '' : (wordsOf(typed).at(-1) ?? '')
  const begun = halves(word)
  const set = filtersOf(search)
  const isSet = (filter: Filter) =>
    set.some(({ name, value }) => name === filter.name && value === filter.value)
  const containing = (name: FilterName, part: string): Filter[] => {
    const sought = part.toLowerCase()
    const all = valuesOf(name, known).filter((value) => value.toLowerCase().includes(sought))
    // Prefix matches come first.
    const first = all.filter((value) => value.toLowerCase().startsWith(sought))
    return [...new Set([...first, ...all])].map((value) => ({ name, value })).filter((one) => !isSet(one))
  }
  if (begun) {
    const found = containing(begun.name, begun.value)
    const typedOne = filterIn(word)
    const isOffered = found.some(({ value }) => value.toLowerCase().startsWith(begun.value.toLowerCase()))
    const asTyped = typedOne && begun.name !== 'tag' && !isOffered && !isSet(typedOne) ? [typedOne] : []
    return [...found, ...asTyped].slice(0, mostOfName).map(suggested)
  }
  const sought = unquoted(word).toLowerCase()
  const names = filterNames
    .filter(
      (name) =>
        name.startsWith(sought) || (sought.length > 1 && t(about[name]).toLowerCase().includes(sought)),
    )
    .map((name) => ({ text: `${name}:`, about: t(about[name]) }))
  // Before anything is typed, the usual filters; after one letter too much would fit.
  const from = (['is', 'tag', 'os', 'arch', 'agent'] as const).slice(0, sought === '' ? 1 : undefined)
  const values = sought.length === 1 ? [] : from.flatMap((name) => containing(name, sought))
  const offered = values.slice(0, mostOfAll).map(suggested)
  return [...offered, ...names.filter(({ text }) => sought !== '' || text !== 'is:')]
}

export function withSuggestion(typed: string, { text, filter }: Suggestion): string {
  const before = /\s$/.test(typed)
    ? typed
    : typed.slice(0, typed.length - (wordsOf(typed).at(-1) ?? '').length)
  return filter ? `${before}${text} ` : `${before}${text}`
}

/** Whether the last word is a filter with a part of its value: then the first suggestion is likely meant. */
export const isValueBegun = (typed: string): boolean =>
  !/\s$/.test(typed) && (halves(wordsOf(typed).at(-1) ?? '')?.value ?? '') !== ''

const words = {
  tag: msg('Tag: {value}'),
  os: msg('System: {value}'),
  arch: msg('Processor: {value}'),
  agent: msg('Agent: {value}'),
  name: msg('Name: {value}'),
  ip: msg('Address: {value}'),
  mac: msg('MAC address: {value}'),
} as const

export function filterWords({ name, value }: Filter): string {
  if (name === 'is') return value === 'online' ? t('Online') : t('Offline')
  if (name === 'unseen' || name === 'added') return spanWords(name, value)
  if (name === 'agent' && value === oldAgent) return t('Old agent')
  return t(words[name], { value })
}

function spanWords(name: 'unseen' | 'added', value: string): string {
  const { count = 0, unit } = spanOf(value) ?? {}
  if (name === 'unseen')
    return unit === 'h'
      ? tn(count, 'Not seen for {count} hour', 'Not seen for {count} hours')
      : tn(count, 'Not seen for {count} day', 'Not seen for {count} days')
  return unit === 'h'
    ? tn(count, 'Added in the last hour', 'Added in the last {count} hours')
    : tn(count, 'Added in the last day', 'Added in the last {count} days')
}
