// Help: the overview, a noun with its verbs, one command with its arguments and options, and the topics. It
// is generated from the descriptions of the commands.
import { nouns } from '@hawser/contract/openapi'
import { globalOptions, spell, usageOf, type Command, type Option } from './command.ts'
import { kebab } from './generated-commands.ts'
import { exitCodes } from './errors.ts'

/** Short and singular forms of nouns. */
export const aliases: Readonly<Record<string, string>> = {
  keys: 'public-keys',
  device: 'devices',
  session: 'sessions',
  service: 'services',
  namespace: 'namespaces',
  tag: 'tags',
}

/** Nouns without operations, and where their help points to. */
const ownNouns: Readonly<Record<string, readonly [sentence: string, more?: string]>> = {
  members: [
    'People in the namespace, their roles and invitations.',
    'More: `hawser namespaces add-member`, `hawser namespaces update-member`, `hawser namespaces remove-member`, `hawser invitations`, `hawser roles`.',
  ],
  config: ['Settings of other programs.'],
}

const titles = new Map([
  ...Object.entries(nouns).map(([noun, [, sentence]]) => [kebab(noun), sentence] as const),
  ...Object.entries(ownNouns).map(([noun, [sentence]]) => [noun, sentence] as const),
])

const topics: Readonly<Record<string, () => string>> = {
  'exit-codes': () => ['Exit codes:', ...columns(Object.entries(exitCodes))].join('\n'),
  environment: () =>
    [
      'Environment:',
      ...columns([
        ['HAWSER_SERVER', 'the address of the server, such as https://hawser.example.com'],
        ['HAWSER_API_KEY', 'an API key, used instead of a sign-in, for one namespace'],
        ['XDG_CONFIG_HOME', 'the folder of hawser/account.json, which has your tokens; default: ~/.config'],
      ]),
    ].join('\n'),
}

export function helpOfTopic(name: string): string | undefined {
  return Object.hasOwn(topics, name) ? topics[name]!() : undefined
}

export function overview(commands: readonly Command[]): string {
  const alone = commands.filter(({ words, hidden }) => words.length === 1 && !hidden)
  const pairs = commands.filter(({ words, hidden }) => words.length === 2 && !hidden)
  const named = [...new Set(pairs.map(({ words }) => words[0]!))]
  const short = Object.fromEntries(Object.entries(aliases).map(([alias, noun]) => [noun, alias]))
  return [
    'hawser: reach your devices.',
    '',
    'Usage: hawser <command> [arguments] [options]',
    '',
    'Commands:',
    ...columns(alone.map((command) => [command.words[0]!, command.summary])),
    '',
    'Things (`hawser <thing> --help` shows the commands; `hawser <thing>` alone lists them if it has `list`):',
    ...columns(
      named.map((noun) => [
        noun === 'public-keys' ? `${noun}, ${short[noun]}` : noun,
        titles.get(noun) ?? '',
      ]),
    ),
    '',
    'On the server:',
    ...columns([
      ['serve', 'runs the server'],
      ['admin', 'commands for the administrator; without one, lists them'],
      ['import shellhub <source>', 'imports a ShellHub: people, namespaces, devices, keys'],
      ['recording verify <file> [key]', 'verifies that a recording is unchanged'],
    ]),
    '',
    'Global options:',
    ...optionRows(globalOptions),
    '',
    `More: ${Object.keys(topics)
      .map((topic) => `\`hawser help ${topic}\``)
      .join(', ')}.`,
  ].join('\n')
}

export function helpOfNoun(commands: readonly Command[], noun: string): string {
  const own = commands.filter(({ words, hidden }) => words.length === 2 && words[0] === noun && !hidden)
  const more = ownNouns[noun]?.[1]
  return [
    titles.get(noun) ?? '',
    '',
    `Usage: hawser ${noun} <verb> [arguments] [options]`,
    '',
    ...columns(own.map((command) => [command.words[1]!, command.summary])),
    ...(more === undefined ? [] : ['', more]),
  ].join('\n')
}

export function helpOfCommand(command: Command): string {
  const { arguments: wanted = [], options = [], details = [] } = command
  return [
    command.summary,
    '',
    `Usage: ${usageOf(command)}`,
    ...(wanted.length > 0
      ? ['', 'Arguments:', ...columns(wanted.map(({ name, doc }) => [`<${name}>`, doc]))]
      : []),
    ...(options.length > 0 ? ['', 'Options:', ...optionRows(options)] : []),
    ...(command.raw ? [] : ['', 'Global options:', ...optionRows(globalOptions)]),
    ...(details.length > 0 ? ['', ...details] : []),
  ].join('\n')
}

const optionRows = (options: readonly Option[]): string[] =>
  columns(
    options.map((option) => [`${option.short ? `-${option.short}, ` : ''}${spell(option)}`, option.doc]),
  )

/** Two columns; a long left cell has a line of its own. */
function columns(rows: readonly (readonly [string, string])[]): string[] {
  const width = Math.min(34, Math.max(...rows.map(([left]) => left.length)))
  return rows.flatMap(([left, right]) =>
    left.length > width
      ? [`  ${left}`, `  ${' '.repeat(width)}  ${right}`]
      : [`  ${left.padEnd(width)}  ${right}`],
  )
}
