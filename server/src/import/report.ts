// The result of an import, or of its trial: counts per kind, problems, and notes. A problem is something that
// would differ from before; nothing is written while there is one, unless such things are to be left out. The
// report's size is bounded.

export const kinds = [
  'users',
  'namespaces',
  'members',
  'devices',
  'public keys',
  'firewall rules',
  'API keys',
] as const
export type Kind = (typeof kinds)[number]
export type Outcome = 'moved' | 'there' | 'left'

const most_problems = 100
const most_examples = 5
const longest_name = 60

/** Without characters that could manipulate a terminal. */
export function shown(text: string): string {
  const short = text.length > longest_name ? `${text.slice(0, longest_name)}…` : text
  return `"${short.replaceAll(/[\p{Cc}\p{Cf}\p{Co}\p{Zl}\p{Zp}]/gu, '?')}"`
}

export function importReport() {
  const counts = new Map(kinds.map((kind) => [kind, { moved: 0, there: 0, left: 0 }]))
  const problems: string[] = []
  const notes = new Map<string, { n: number; examples: string[] }>()
  let problemCount = 0

  return {
    count(kind: Kind, outcome: Outcome): void {
      counts.get(kind)![outcome]++
    },
    counted: (kind: Kind, outcome: Outcome): number => counts.get(kind)![outcome],

    problem(sentence: string): void {
      problemCount++
      if (problems.length < most_problems) problems.push(sentence)
    },
    get problems(): number {
      return problemCount
    },

    /** `sentence` covers all cases; the affected are counted, and a few are named. */
    note(sentence: string, who?: string): void {
      const told = notes.get(sentence) ?? { n: 0, examples: [] }
      told.n++
      if (who !== undefined && told.examples.length < most_examples) told.examples.push(shown(who))
      notes.set(sentence, told)
    },

    lines(): string[] {
      const width = Math.max(...kinds.map((kind) => kind.length))
      const row = (name: string, ...cells: (string | number)[]): string =>
        `${name.padEnd(width)}${cells.map((cell) => String(cell).padStart(15)).join('')}`
      const more = problemCount - problems.length
      return [
        row('', 'moved', 'there already', 'left out'),
        ...[...counts].map(([kind, { moved, there, left }]) => row(kind, moved, there, left)),
        ...(problems.length > 0 ? ['', 'In the way:', ...problems.map((sentence) => `- ${sentence}`)] : []),
        ...(more > 0 ? [`- and ${more} more like these`] : []),
        ...(notes.size > 0 ? ['', 'To know:'] : []),
        ...[...notes].map(([sentence, { n, examples }]) => {
          const names = examples.join(', ') + (n > examples.length && examples.length > 0 ? ', …' : '')
          return examples.length > 0
            ? `- ${sentence}: ${n} (${names})`
            : `- ${sentence}${n > 1 ? `: ${n}` : ''}`
        }),
      ]
    },
  }
}

export type ImportReport = ReturnType<typeof importReport>
