// Completions. A shell runs `hawser __complete <words so far>` and gets one candidate for the last word per
// line, each with a description. Candidates come from the descriptions of the commands. Names of devices,
// tags, sessions and namespaces come from the server, which has two seconds to answer. Names with characters
// that are special in a shell are left out.
import { client, type Client } from '@hawser/contract/client'
import { nouns } from '@hawser/contract/openapi'
import { globalOptions, isSpelled, type Command, type NameSource, type Option } from './command.ts'
import { kebab } from './generated-commands.ts'
import type { Context } from './context.ts'
import { aliases } from './help.ts'
import { byName, filterOf, findDevice, property } from './resolve.ts'

export interface Candidate {
  readonly word: string
  readonly doc: string
}

const timeout_ms = 2000
const plainName = /^[\p{L}\p{N}_.@:/+,=-]+$/u

/** Commands of the server's program. */
const serverCommands: readonly Candidate[] = [
  { word: 'serve', doc: 'runs the server' },
  { word: 'admin', doc: 'commands of the administrator' },
  { word: 'import', doc: 'moves a ShellHub in' },
  { word: 'recording', doc: 'verifies a recording' },
  { word: 'help', doc: 'what there is' },
]

export async function complete(
  commands: readonly Command[],
  words: readonly string[],
  context: Context,
): Promise<Candidate[]> {
  const current = words.at(-1) ?? ''
  const before = words.slice(0, -1)
  const found = await candidates(commands, before, current, context)
  return found.filter(({ word }) => word.startsWith(current) && plainName.test(word))
}

async function candidates(
  commands: readonly Command[],
  before: readonly string[],
  current: string,
  context: Context,
): Promise<Candidate[]> {
  const shown = commands.filter(({ hidden }) => !hidden)
  const skipped = before.findIndex(
    (word, i) => !word.startsWith('-') && !/^(-o|--output|--server)$/.test(before[i - 1] ?? ''),
  )
  const [first, second, ...rest] = skipped < 0 ? [] : before.slice(skipped)
  if (first === undefined) return current.startsWith('-') ? options(globalOptions) : firstWords(shown)
  const noun = aliases[first] ?? first
  const verbs = shown.filter(({ words }) => words.length === 2 && words[0] === noun)
  if (verbs.length > 0 && second === undefined && !current.startsWith('-'))
    return verbs.map(({ words, summary }) => ({ word: words[1]!, doc: summary }))
  const command = shown.find(
    ({ words }) => words[0] === noun && (words.length === 1 || words[1] === (second ?? 'list')),
  )
  if (!command) return []
  const given = command.words.length === 1 ? [second, ...rest].filter((word) => word !== undefined) : rest
  return ofCommand(command, given, current, context)
}

async function ofCommand(
  command: Command,
  given: readonly string[],
  current: string,
  context: Context,
): Promise<Candidate[]> {
  const known = [...(command.options ?? []), ...(command.raw ? [] : globalOptions)]
  const asked = known.find((option) => option.value !== undefined && isSpelled(option, given.at(-1)))
  if (asked)
    return asked.choices
      ? asked.choices.map((word) => ({ word, doc: asked.name }))
      : names(asked.completes, current, context)
  if (current.startsWith('-')) return options(known)
  if (command.raw) return names('device', current, context, command.words[0] === 'scp' ? ':' : '')
  const places = given.filter(
    (word, i) =>
      !word.startsWith('-') &&
      !known.some((option) => option.value !== undefined && isSpelled(option, given[i - 1])),
  ).length
  const wanted = command.arguments ?? []
  const place = wanted[places] ?? (wanted.at(-1)?.many ? wanted.at(-1) : undefined)
  if (place?.choices) return place.choices.map((word) => ({ word, doc: place.name }))
  return names(place?.completes, current, context)
}

const options = (known: readonly Option[]): Candidate[] =>
  known.map(({ name, doc }) => ({ word: `--${name}`, doc }))

function firstWords(commands: readonly Command[]): Candidate[] {
  const sentences = new Map(Object.entries(nouns).map(([noun, [, sentence]]) => [kebab(noun), sentence]))
  const firsts = new Map(
    commands.map(({ words, summary }) => [
      words[0]!,
      words.length === 1 ? summary : (sentences.get(words[0]!) ?? ''),
    ]),
  )
  return [
    ...[...firsts].map(([word, doc]) => ({ word, doc })),
    { word: 'keys', doc: sentences.get('public-keys') ?? '' },
    ...serverCommands,
  ]
}

/** Names from the server. An error gives no candidates: pressing Tab must not print a message. */
async function names(
  source: NameSource | undefined,
  current: string,
  context: Context,
  behind = '',
): Promise<Candidate[]> {
  if (source === undefined || source === 'file') return []
  try {
    const signal = AbortSignal.timeout(timeout_ms)
    return await fromServer[source](client(context.options()), current, signal, behind)
  } catch {
    return []
  }
}

type Source = (api: Client, current: string, signal: AbortSignal, behind: string) => Promise<Candidate[]>

const fromServer: Record<Exclude<NameSource, 'file'>, Source> = {
  async device(api, current, signal, behind) {
    // Keep a leading `user@`.
    const [user = '', part = ''] = /^(.*@)?(.*)$/.exec(current)?.slice(1) ?? []
    const filter = filterOf([], part ? [property('name', 'contains', part)] : [])
    const { body } = await api.devices.list({
      query: { per_page: 100, ...byName, ...filter },
      signal,
    })
    return body.map(({ name, status, online }) => ({
      word: `${user}${name}${behind}`,
      doc: status === 'accepted' ? (online ? 'online' : 'offline') : status,
    }))
  },
  async service(api, _, signal) {
    const { body } = await api.services.list({ query: { per_page: 100 }, signal })
    return body.map(({ device_name, name, host, port }) => ({
      word: `${device_name}/${name}`,
      doc: `${host}:${port}`,
    }))
  },
  /** Behind `device:` its listening ports, behind `device/` its services, else devices. */
  async page(api, current, signal, behind) {
    const [, before, name] = /^((?:.*@)?([^:/]+):)\d*$/.exec(current) ?? []
    if (before === undefined || name === undefined)
      return fromServer[current.includes('/') ? 'service' : 'device'](api, current, signal, behind)
    const { uid } = await findDevice(api, name)
    const { body } = await api.services.scan({ params: { uid }, signal })
    // A program that listens on several addresses has one line.
    const ports = new Map(body.ports.map(({ port, program }) => [port, program]))
    return [...ports].map(([port, doc]) => ({ word: `${before}${port}`, doc }))
  },
  async session(api, _, signal) {
    const { body } = await api.sessions.list({ query: { per_page: 20 }, signal })
    const rows = body.map(({ uid, username, device }) => ({
      word: uid.slice(0, 12),
      doc: `${username} on ${device.name}`,
    }))
    return [{ word: 'last', doc: 'the newest' }, ...rows]
  },
  async namespace(api, _, signal) {
    const { body } = await api.namespaces.list({ query: { per_page: 100 }, signal })
    return body.map(({ name, tenant_id }) => ({ word: name, doc: tenant_id }))
  },
  async tag(api, _, signal) {
    const { body } = await api.tags.list({ signal })
    return body.map((word) => ({ word, doc: 'a tag' }))
  },
}
