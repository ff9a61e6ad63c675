// The few tools that benches share: a loop that measures, a comparison that is fair, and a table to print. A
// claim about speed is a ratio from one run on one machine, with both sides taken in turns: absolute numbers
// from different runs say more about the machine's mood than about the code.

export interface Measurement {
  readonly calls: number
  readonly perSecond: number
  /** Percentiles of the duration of one call, in milliseconds. */
  readonly p50: number
  readonly p95: number
  readonly p99: number
  readonly max: number
}

export interface Measuring {
  readonly seconds: number
  /** Concurrent calls; 1 unless stated. */
  readonly concurrency?: number
}

/** Repeats `fn` for that long. A failing call ends the measurement. */
export async function measure(
  fn: () => unknown,
  { seconds, concurrency = 1 }: Measuring,
): Promise<Measurement> {
  const times: number[] = []
  const started = performance.now()
  const end = started + seconds * 1000
  async function loop(): Promise<void> {
    for (let before = performance.now(); before < end; before = performance.now()) {
      // Only promises are awaited: a turn of the event loop would be most of the cost of a quick synchronous
      // call.
      const result = fn()
      if (result instanceof Promise) await result
      times.push(performance.now() - before)
    }
  }
  await Promise.all(Array.from({ length: concurrency }, loop))
  const elapsed = (performance.now() - started) / 1000
  const sorted = Float64Array.from(times).toSorted()
  return {
    calls: times.length,
    perSecond: times.length / elapsed,
    p50: percentile(sorted, 50),
    p95: percentile(sorted, 95),
    p99: percentile(sorted, 99),
    max: percentile(sorted, 100),
  }
}

/** The nearest rank: the smallest value that at least `percent` of all do not exceed. NaN of nothing. */
export function percentile(sorted: ArrayLike<number>, percent: number): number {
  return sorted[Math.max(0, Math.ceil((percent / 100) * sorted.length) - 1)] ?? Number.NaN
}

/**
 * Measures every side in each round, so that other work of the machine affects all of them. Every other round
 * goes backwards, because later sides find warmer caches. Returns each side's figures, by round.
 */
export async function inTurns<Name extends string>(
  sides: Readonly<Record<Name, () => Promise<number>>>,
  rounds: number,
): Promise<Record<Name, number[]>> {
  const names = Object.keys(sides) as Name[]
  const figures = Object.fromEntries(names.map((name) => [name, [] as number[]])) as Record<Name, number[]>
  for (let round = 0; round < rounds; round++)
    for (const name of round % 2 === 0 ? names : names.toReversed()) figures[name].push(await sides[name]())
  return figures
}

export function median(figures: readonly number[]): number {
  return percentile(Float64Array.from(figures).toSorted(), 50)
}

export interface Comparison {
  /** The median over the rounds of a's figure divided by b's. */
  readonly ratio: number
  readonly lowest: number
  readonly highest: number
  /** The sides' own medians, for the reader's feeling; the claim is the ratio. */
  readonly a: number
  readonly b: number
}

/** Within each round. */
export function compare(a: readonly number[], b: readonly number[]): Comparison {
  const ratios = Float64Array.from(a, (figure, round) => figure / (b[round] ?? Number.NaN)).toSorted()
  return {
    ratio: percentile(ratios, 50),
    lowest: percentile(ratios, 0),
    highest: percentile(ratios, 100),
    a: median(a),
    b: median(b),
  }
}

/** For two sides, in turns. */
export async function interleaved(
  a: () => Promise<number>,
  b: () => Promise<number>,
  rounds: number,
): Promise<Comparison> {
  const figures = await inTurns({ a, b }, rounds)
  return compare(figures.a, figures.b)
}

export interface Aim {
  readonly text: string
  readonly met: boolean
}
export const atLeast = (aim: number, ratio: number): Aim => ({ text: `ratio ≥ ${aim}`, met: ratio >= aim })
export const atMost = (aim: number, ratio: number): Aim => ({ text: `ratio ≤ ${aim}`, met: ratio <= aim })
export const below = (aim: number, value: number, unit: string): Aim => ({
  text: `< ${aim.toLocaleString('en')} ${unit}`,
  met: value < aim,
})

export type Row = Readonly<Record<string, string | number>>

/** A missed aim is reported and is no failure: the machine may have been busy. */
export function line(
  what: string,
  unit: string,
  { a, b, ratio, lowest, highest }: Comparison,
  aim?: Aim,
): Row {
  const short = (value: number): string =>
    value < 100 ? value.toPrecision(2) : Math.round(value).toLocaleString('en')
  const range = `${short(lowest)}–${short(highest)}`
  return { what, unit, ours: a, reference: b, ratio, range, ...verdict(aim) }
}

/** A figure without a comparison. */
export function single(what: string, unit: string, ours: number, aim?: Aim): Row {
  return { what, unit, ours, reference: '', ratio: '', range: '', ...verdict(aim) }
}

function verdict(aim: Aim | undefined): { aim: string; verdict: string } {
  return { aim: aim?.text ?? '', verdict: aim ? (aim.met ? 'met' : 'MISSED') : '' }
}

/** In aligned columns, in the order of the first row's fields; numbers have three significant digits. */
export function table(rows: readonly Row[], print: (line: string) => void = console.log): void {
  const names = Object.keys(rows[0] ?? {})
  const numeric = names.map((name) => rows.every((row) => typeof row[name] === 'number' || row[name] === ''))
  const lines = [names, ...rows.map((row) => names.map((name) => cell(row[name])))]
  const widths = names.map((_, column) => Math.max(...lines.map((line) => line[column]?.length ?? 0)))
  for (const line of lines) {
    const cells = line.map((text, column) =>
      numeric[column] ? text.padStart(widths[column] ?? 0) : text.padEnd(widths[column] ?? 0),
    )
    print(cells.join('  ').trimEnd())
  }
}

function cell(value: string | number | undefined): string {
  if (typeof value !== 'number') return value ?? ''
  if (Number.isInteger(value) || Math.abs(value) >= 100) return Math.round(value).toLocaleString('en')
  return value.toPrecision(3)
}
