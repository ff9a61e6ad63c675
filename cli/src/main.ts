// The entry of the hawser command: finds the command that the words name, parses its options, runs it, and
// turns any error into a sentence and an exit code (errors.ts). Most commands are generated from the contract
// (generated-commands.ts). Commands that do more than one operation are written by hand (commands/).
import { version } from '@hawser/contract/version'
import { completer } from './commands/completion.ts'
import { handWrittenCommands } from './commands/index.ts'
import { check, closest, parse, type Command, type ParsedArgs } from './command.ts'
import { generatedCommands } from './generated-commands.ts'
import { CliError, toCliError, usageCode } from './errors.ts'
import { openContext } from './context.ts'
import { safeText } from './safe-text.ts'
import { aliases, helpOfCommand, helpOfNoun, helpOfTopic, overview } from './help.ts'

export async function main(args: string[]): Promise<void> {
  process.stdout.on('error', (error: NodeJS.ErrnoException) => {
    // The reader of the pipe has closed it, as `head` does; that is no failure.
    process.exit(error.code === 'EPIPE' ? 0 : 1)
  })
  process.exitCode = await run(args)
}

/** All commands. One written by hand replaces the generated one with the same words. */
export function allCommands(): Command[] {
  const mine = handWrittenCommands()
  const taken = new Set(mine.map(({ words }) => words.join(' ')))
  return [
    ...mine,
    ...generatedCommands().filter(({ words }) => !taken.has(words.join(' '))),
    completer(allCommands),
  ]
}

async function run(args: readonly string[]): Promise<number> {
  const commands = allCommands()
  let context: ReturnType<typeof openContext> | undefined
  try {
    if (args.length === 1 && args[0] === '--version') return say(version)
    const { global, words } = split(args, commands)
    if (words.length === 0 || words[0] === 'help') return help(commands, words.slice(1))
    if (/^(-h|--help)$/.test(words[1] ?? '') && words[0] !== '__complete')
      return help(commands, words.slice(0, 1))
    const command = find(commands, words)
    const rest = words.slice(command.words.length)
    const given = command.raw ? { ...global, words: rest } : parse(command.options ?? [], rest)
    if (given.flag('help') || global.flag('help')) return help(commands, command.words)
    context = openContext(process.env, {
      server: given.value('server') ?? global.value('server'),
      output: given.value('output') ?? global.value('output'),
    })
    if (!command.raw) check(command, given)
    return (await command.run(given, context)) ?? 0
  } catch (error) {
    return fail(error, context)
  }
}

function fail(error: unknown, context: ReturnType<typeof openContext> | undefined): number {
  const failure = toCliError(error, context?.credential())
  if (!failure) {
    process.stderr.write(
      `hawser: internal error; please report it.\n${error instanceof Error ? error.stack : String(error)}\n`,
    )
    return 1
  }
  const lines = failure.message.split('\n').map(safeText)
  if (failure.message) process.stderr.write(`hawser: ${lines.join('\n')}\n`)
  return failure.code
}

/** Splits off the global options before the command; everything after them belongs to the command. */
function split(
  args: readonly string[],
  commands: readonly Command[],
): { global: ParsedArgs; words: string[] } {
  let i = 0
  while (i < args.length && args[i]!.startsWith('-')) i += /^(-o|--output|--server)$/.test(args[i]!) ? 2 : 1
  const [first = '', ...rest] = args.slice(i)
  const noun = aliases[first] ?? first
  const words = args.length > i ? [noun, ...rest] : []
  // A noun without a verb lists.
  const lists = commands.some((command) => command.words.join(' ') === `${noun} list`)
  if (lists && (rest[0] === undefined || /^-(?!h$|-help$)/.test(rest[0]))) words.splice(1, 0, 'list')
  return { global: parse([], args.slice(0, i)), words }
}

function find(commands: readonly Command[], words: readonly string[]): Command {
  const [first = '', second = ''] = words
  const command = commands.find((one) => one.words.every((word, i) => word === words[i]))
  if (command) return command
  const verbs = commands.filter((one) => one.words.length === 2 && one.words[0] === first)
  if (verbs.length > 0) {
    if (second === '' || second.startsWith('-')) {
      throw new CliError(`What shall be done with ${first}?\n\n${helpOfNoun(commands, first)}`, usageCode)
    }
    throw new CliError(
      `There is no \`hawser ${first} ${second}\`${meant(
        second,
        verbs.map((one) => one.words[1]!),
        `hawser ${first}`,
      )}`,
      usageCode,
    )
  }
  const firsts = [...new Set(commands.filter(({ hidden }) => !hidden).map((one) => one.words[0]!)), 'keys']
  throw new CliError(`There is no command \`${first}\`${meant(first, firsts, 'hawser')}`, usageCode)
}

const meant = (word: string, words: readonly string[], before: string): string => {
  const near = closest(word, words)
  return near ? `. Did you mean \`${before} ${near}\`?` : `. \`${before} --help\` lists what there is.`
}

function say(line: string): number {
  process.stdout.write(`${line}\n`)
  return 0
}

function help(commands: readonly Command[], words: readonly string[]): number {
  const noun = aliases[words[0] ?? ''] ?? words[0]
  const topic = words.length === 1 ? helpOfTopic(words[0]!) : undefined
  if (noun === undefined) process.stdout.write(`${overview(commands)}\n`)
  else if (topic !== undefined) process.stdout.write(`${topic}\n`)
  else {
    const named = [noun, ...words.slice(1)]
    if (named.length === 1 && commands.some((one) => one.words.length === 2 && one.words[0] === noun)) {
      process.stdout.write(`${helpOfNoun(commands, noun)}\n`)
    } else process.stdout.write(`${helpOfCommand(find(commands, named))}\n`)
  }
  return 0
}
