// What a command is, and how the words of a command line become what it is given. Everything that can be said
// about a command (its help, its completions, its mistakes) is read from this one description. Options may
// stand anywhere; `--` ends them. A command that is `raw` hands its words on as they are: they belong to
// another program, such as ssh.
import type { Context } from './context.ts'
import { Complaint, usageCode } from './complaint.ts'

/** What a word can be completed with: names that only the server knows. */
export type Named = 'device' | 'session' | 'namespace' | 'tag' | 'file'

export interface Argument {
  readonly name: string
  readonly doc: string
  readonly optional?: boolean
  /** Takes all words that are left. */
  readonly many?: boolean
  readonly choices?: readonly string[]
  readonly named?: Named | undefined
}

export interface Option {
  /** Without its dashes. */
  readonly name: string
  readonly short?: string
  /** What its value is; absent: it is on or, as --no-…, off. */
  readonly value?: string
  readonly doc: string
  readonly required?: boolean
  /** May be given several times. */
  readonly many?: boolean
  readonly choices?: readonly string[] | undefined
  readonly named?: Named | undefined
}

export interface Command {
  readonly words: readonly string[]
  readonly summary: string
  readonly arguments?: readonly Argument[]
  readonly options?: readonly Option[]
  /** Further lines of its help. */
  readonly details?: readonly string[]
  readonly raw?: boolean
  /** Works, and is not listed. */
  readonly hidden?: boolean
  /** The exit code; none is 0. */
  run(given: Given, context: Context): Promise<number | undefined>
}

export interface Given {
  readonly words: readonly string[]
  /** The last value of an option. */
  value(option: string): string | undefined
  values(option: string): readonly string[]
  /** Undefined: neither on nor off was said. */
  flag(option: string): boolean | undefined
}

/** Options that every command has. */
export const everywhere: readonly Option[] = [
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

export function parse(options: readonly Option[], words: readonly string[]): Given {
  const known = [...options, ...everywhere]
  const found = new Map<string, string[]>()
  const rest: string[] = []
  const note = (option: Option, text: string): void => {
    if (option.choices && !option.choices.includes(text)) {
      throw new Complaint(`${spell(option)} is one of ${option.choices.join(', ')}, not ${text}.`, usageCode)
    }
    const values = found.get(option.name) ?? []
    if (values.length > 0 && option.value !== undefined && !option.many) {
      throw new Complaint(`${spell(option)} is given twice.`, usageCode)
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
    const option = known.find((one) => name === `--${one.name}` || name === `-${one.short}`)
    if (option?.value !== undefined) {
      if (text === undefined) i += 1
      const value = text ?? words[i]
      if (value === undefined)
        throw new Complaint(`${name} needs a value: ${name} <${option.value}>.`, usageCode)
      note(option, value)
      continue
    }
    const off = known.find((one) => one.value === undefined && name === `--no-${one.name}`)
    const flag = option ?? off
    if (!flag) throw unknownOption(name, known)
    if (text !== undefined && text !== 'true' && text !== 'false')
      throw new Complaint(`${name} is true or false, not ${text}.`, usageCode)
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

/** Complains when words or options are missing, or when there are too many words. */
export function check(command: Command, given: Given): void {
  const { arguments: wanted = [], options = [] } = command
  const say = (sentence: string): never => {
    throw new Complaint(`${sentence}\nUsage: ${usageOf(command)}`, usageCode)
  }
  const missing = wanted.filter((argument, i) => !argument.optional && given.words.length <= i)
  if (missing.length > 0)
    say(`What is missing: ${missing.map(({ name, doc }) => `<${name}> (${doc})`).join(', ')}.`)
  if (!wanted.some(({ many }) => many) && given.words.length > wanted.length) {
    say(`There is one word too many: ${given.words[wanted.length]}.`)
  }
  for (const [i, { name, choices }] of wanted.entries()) {
    const word = given.words[i]
    if (word !== undefined && choices && !choices.includes(word))
      say(`<${name}> is one of ${choices.join(', ')}, not ${word}.`)
  }
  const absent = options.filter((option) => option.required && given.value(option.name) === undefined)
  if (absent.length > 0) say(`What is missing: ${absent.map(spell).join(', ')}.`)
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

function unknownOption(name: string, known: readonly Option[]): Complaint {
  const near = closest(
    name,
    known.map((option) => `--${option.name}`),
  )
  return new Complaint(
    `There is no option ${name}${near ? `; did you mean ${near}?` : '; --help lists them.'}`,
    usageCode,
  )
}

/** The word that somebody may have meant. */
export function closest(word: string, words: readonly string[]): string | undefined {
  const ranked = words.map((one) => ({ one, far: distance(word, one) })).toSorted((a, b) => a.far - b.far)
  const [first] = ranked
  return first && first.far <= Math.max(1, Math.floor(word.length / 3)) ? first.one : undefined
}

/** How many letters must be changed, added or taken away; words of a command line are short. */
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
