// The description of a command, and the parser of its command line. Help, completions and error messages all
// come from this one description. Options may stand anywhere; `--` ends them. A `raw` command passes its
// words on unparsed, because they belong to another program, such as ssh.
import type { Context } from './context.ts'
import { CliError, usageCode } from './errors.ts'

/** The source of completions for a word: names of this kind on the server, or files. */
export type NameSource = 'device' | 'session' | 'namespace' | 'service' | 'page' | 'tag' | 'file'

export interface Argument {
  readonly name: string
  readonly doc: string
  readonly optional?: boolean
  /** Takes all remaining words. */
  readonly many?: boolean
  readonly choices?: readonly string[]
  readonly completes?: NameSource | undefined
}

export interface Option {
  readonly name: string
  readonly short?: string
  /** Another name that also works; help does not list it. */
  readonly also?: string | undefined
  /** The name of its value. Absent: the option is a flag, and `--no-…` switches it off. */
  readonly value?: string
  readonly doc: string
  readonly required?: boolean
  readonly many?: boolean
  readonly choices?: readonly string[] | undefined
  readonly completes?: NameSource | undefined
}

export interface Command {
  readonly words: readonly string[]
  readonly summary: string
  readonly arguments?: readonly Argument[]
  readonly options?: readonly Option[]
  readonly details?: readonly string[]
  readonly raw?: boolean
  /** Works, but help does not list it. */
  readonly hidden?: boolean
  /** Runs the command. Returns the exit code; none is 0. */
  run(given: ParsedArgs, context: Context): Promise<number | void>
}

export interface ParsedArgs {
  readonly words: readonly string[]
  /** The last value of an option. */
  value(option: string): string | undefined
  values(option: string): readonly string[]
  /** Undefined: the command line has neither form. */
  flag(option: string): boolean | undefined
}

export const globalOptions: readonly Option[] = [
  {
    name: 'output',
    short: 'o',
    value: 'form',
    doc: 'table for people, json for programs',
    choices: ['table', 'json'],
  },
  {
    name: 'server',
    value: 'address',
    doc: 'the server, instead of HAWSER_SERVER and of the one signed in to last',
  },
  { name: 'help', short: 'h', doc: 'what this command does' },
]

export function parse(options: readonly Option[], words: readonly string[]): ParsedArgs {
  const known = [...options, ...globalOptions]
  const found = new Map<string, string[]>()
  const rest: string[] = []
  const note = (option: Option, text: string): void => {
    if (option.choices && !option.choices.includes(text)) {
      throw new CliError(`${spell(option)} is one of ${option.choices.join(', ')}, not ${text}.`, usageCode)
    }
    const values = found.get(option.name) ?? []
    if (values.length > 0 && option.value !== undefined && !option.many) {
      throw new CliError(`${spell(option)} is given twice.`, usageCode)
    }
    found.set(option.name, [...values, text])
  }
  for (let i = 0; i < words.length; i += 1) {
    const word = words[i]!
    if (word === '--') {
      rest.push(...words.slice(i + 1))
      break
    }
    if (!word.startsWith('-') || word === '-') {
      rest.push(word)
      continue
    }
    const [, name = word, text] = /^([^=]+)=([^]*)$/.exec(word) ?? []
    const option = known.find((one) => isSpelled(one, name))
    if (option?.value !== undefined) {
      if (text === undefined) i += 1
      const value = text ?? words[i]
      if (value === undefined)
        throw new CliError(`${name} needs a value: ${name} <${option.value}>.`, usageCode)
      note(option, value)
      continue
    }
    const off = known.find((one) => one.value === undefined && name === `--no-${one.name}`)
    const flag = option ?? off
    if (!flag) throw unknownOption(name, known)
    if (text !== undefined && text !== 'true' && text !== 'false')
      throw new CliError(`${name} is true or false, not ${text}.`, usageCode)
    note(flag, String((text !== 'false') === (flag === option)))
  }
  const values = (option: string): readonly string[] => found.get(option) ?? []
  const value = (option: string): string | undefined => values(option).at(-1)
  return {
    words: rest,
    value,
    values,
    flag: (option) => (value(option) === undefined ? undefined : value(option) === 'true'),
  }
}

/** Throws a usage error for missing words or options, and for too many words. */
export function check(command: Command, given: ParsedArgs): void {
  const { arguments: wanted = [], options = [] } = command
  const say = (sentence: string): never => {
    throw new CliError(`${sentence}\nUsage: ${usageOf(command)}`, usageCode)
  }
  const missing = wanted.filter((argument, i) => !argument.optional && given.words.length <= i)
  if (missing.length > 0) say(`Missing: ${missing.map(({ name, doc }) => `<${name}> (${doc})`).join(', ')}.`)
  if (!wanted.some(({ many }) => many) && given.words.length > wanted.length) {
    say(`Unexpected argument: ${given.words[wanted.length]}.`)
  }
  for (const [i, { name, choices }] of wanted.entries()) {
    const word = given.words[i]
    if (word !== undefined && choices && !choices.includes(word))
      say(`<${name}> is one of ${choices.join(', ')}, not ${word}.`)
  }
  const absent = options.filter((option) => option.required && given.value(option.name) === undefined)
  if (absent.length > 0) say(`Missing: ${absent.map(spell).join(', ')}.`)
}

/** The value of an option that is a whole number in a range. */
export function wholeNumber(
  given: ParsedArgs,
  option: string,
  usual: number,
  least: number,
  most: number,
): number {
  const text = given.value(option) ?? String(usual)
  const number = Number(text)
  if (!/^\d{1,6}$/.test(text) || number < least || number > most)
    throw new CliError(`--${option} must be a whole number from ${least} to ${most}, not ${text}.`, usageCode)
  return number
}

export function isSpelled({ name, short, also }: Option, word: string | undefined): boolean {
  return (
    word === `--${name}` ||
    (short !== undefined && word === `-${short}`) ||
    (also !== undefined && word === `--${also}`)
  )
}

export function usageOf({ words, arguments: wanted = [], options = [], raw }: Command): string {
  const places = wanted.map(({ name, optional, many }) => {
    const place = `<${name}>${many ? '…' : ''}`
    return optional ? `[${place}]` : place
  })
  const required = options.filter((option) => option.required).map((option) => spell(option))
  const more = !raw && options.length > required.length ? ['[options]'] : []
  return ['hawser', ...words, ...places, ...required, ...more].join(' ')
}

export function spell({ name, value }: Option): string {
  return value === undefined ? `--${name}` : `--${name} <${value}>`
}

function unknownOption(name: string, known: readonly Option[]): CliError {
  const near = closest(
    name,
    known.map((option) => `--${option.name}`),
  )
  return new CliError(
    `There is no option ${name}${near ? `; did you mean ${near}?` : '; --help lists them.'}`,
    usageCode,
  )
}

/** The most similar word, if it is similar enough for a typing error. */
export function closest(word: string, words: readonly string[]): string | undefined {
  const ranked = words.map((one) => ({ one, far: distance(word, one) })).toSorted((a, b) => a.far - b.far)
  const [first] = ranked
  return first && first.far <= Math.max(1, Math.floor(word.length / 3)) ? first.one : undefined
}

/** The Levenshtein distance: how many characters must be changed, added or removed. */
function distance(a: string, b: string): number {
  let row = Array.from({ length: b.length + 1 }, (_, i) => i)
  for (let i = 1; i <= a.length; i += 1) {
    const next = [i]
    for (let j = 1; j <= b.length; j += 1) {
      next.push(Math.min(row[j]! + 1, next[j - 1]! + 1, row[j - 1]! + (a[i - 1] === b[j - 1] ? 0 : 1)))
    }
    row = next
  }
  return row[b.length]!
}
