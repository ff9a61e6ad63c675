// Echo prediction against a model: a terminal, a device at the other end of a slow link, and a program there
// that echoes, echoes nothing, or echoes stars, as it likes from line to line.
import fc from 'fast-check'
import { describe, expect, test } from 'vitest'
import { prediction, slow_ms, type Grid } from './prediction.ts'

type Echo = 'all' | 'none' | 'stars'

const cols = 60

/** With letters, line ends, backspace and the alternate screen. */
class Model implements Grid {
  readonly cols = cols
  isPlain = true
  rows: string[] = ['']
  at = 0
  cursor() {
    return { line: this.rows.length - 1, column: this.at }
  }
  text(line: number, from: number): string {
    return (this.rows[line] ?? '').slice(from).trimEnd()
  }
  draw(output: string): void {
    for (const key of output)
      if (key === '\r') this.at = 0
      else if (key === '\n') this.rows.push('')
      else if (key === '\b') this.at = Math.max(0, this.at - 1)
      else {
        const row = this.rows.at(-1)!.padEnd(this.at)
        this.rows[this.rows.length - 1] = row.slice(0, this.at) + key + row.slice(this.at + 1)
        this.at += 1
      }
  }
  /** The last line with the overlay. */
  seen(overlay: { line: number; column: number; text: string } | undefined): string {
    const row = this.rows.at(-1)!
    if (!overlay) return row.trimEnd()
    const before = row.padEnd(overlay.column).slice(0, overlay.column)
    return (before + overlay.text + row.slice(before.length + overlay.text.length)).trimEnd()
  }
}

/** A program on the device. Each line is read with the next echo mode of its list. */
class Program {
  line = ''
  count = 0
  readonly echoes: readonly Echo[]
  constructor(echoes: readonly Echo[]) {
    this.echoes = echoes
  }
  get echo(): Echo {
    return this.echoes[this.count % this.echoes.length] ?? 'all'
  }
  prompt(): string {
    return this.echo === 'all' ? '$ ' : 'Password: '
  }
  key(key: string): string {
    if (key === '\r') {
      this.line = ''
      this.count += 1
      return `\r\n${this.prompt()}`
    }
    if (key === '\u007f') {
      if (this.line === '') return ''
      this.line = this.line.slice(0, -1)
      return this.echo === 'none' ? '' : '\b \b'
    }
    // An arrow, Ctrl+C and Tab do something of their own.
    if (['\t', '\u0003', '\u001b[A'].includes(key)) return key === '\t' ? 'completed' : ''
    this.line += key
    return this.echo === 'all' ? key : this.echo === 'stars' ? '*' : ''
  }
}

/** A person, the link and the device, with a clock of their own. */
class World {
  time = 0
  readonly screen = new Model()
  readonly guesses = prediction(this.screen, () => this.time)
  readonly program: Program
  oneWay_ms: number
  #onWay: { at: number; act: () => void }[] = []
  /** Called when something may have become visible. */
  look = (): void => undefined

  constructor(echoes: readonly Echo[], oneWay_ms: number) {
    this.program = new Program(echoes)
    this.oneWay_ms = oneWay_ms
    this.#arrives(this.program.prompt())
    this.pass(oneWay_ms * 4)
  }
  #later(act: () => void): void {
    this.#onWay.push({ at: this.time + this.oneWay_ms, act })
  }
  #arrives(output: string): void {
    if (output === '') return
    this.#later(() => {
      this.screen.draw(output)
      this.guesses.update()
      this.look()
    })
  }
  key(key: string): void {
    this.guesses.typed(key)
    this.look()
    this.#later(() => this.#arrives(this.program.key(key)))
  }
  pass(ms: number): void {
    const end = this.time + ms
    for (;;) {
      const next = this.#onWay.toSorted((a, b) => a.at - b.at).find(({ at }) => at <= end)
      if (!next) break
      this.#onWay = this.#onWay.filter((one) => one !== next)
      this.time = Math.max(this.time, next.at)
      next.act()
    }
    this.time = end
    this.guesses.update()
    this.look()
  }
  type(text: string, each_ms: number): void {
    for (const key of text) {
      this.key(key)
      this.pass(each_ms)
    }
  }
}

describe('on a slow link', () => {
  test('what is typed is seen at once, after the first letters of a line were echoed', () => {
    const world = new World(['all'], 150)
    world.type('echo', 100)
    expect(world.guesses.roundTrip_ms).toBeCloseTo(300)
    world.pass(1_000)
    world.type('ing', 10)
    expect(world.screen.text(0, 0)).toBe('$ echo')
    expect(world.screen.seen(world.guesses.overlay())).toBe('$ echoing')
    world.type('\u007f\u007f', 10)
    expect(world.screen.seen(world.guesses.overlay())).toBe('$ echoi')
    world.pass(2_000)
    expect(world.guesses.overlay()).toBeUndefined()
    expect(world.screen.text(0, 0)).toBe('$ echoi')
  })

  test('each line has to show anew that it is echoed', () => {
    const world = new World(['all', 'none', 'all'], 150)
    world.type('sudo x', 100)
    world.pass(1_000)
    world.type('y\r', 10)
    expect(world.screen.seen(world.guesses.overlay())).toBe('$ sudo xy')
    world.pass(3_000)
    world.type('secret', 50)
    expect(world.guesses.overlay()).toBeUndefined()
    world.pass(3_000)
    world.type('\r', 3_000)
    world.type('ls', 50)
    expect(world.guesses.overlay()).toBeUndefined()
    world.pass(400)
    world.type(' -l', 10)
    expect(world.screen.seen(world.guesses.overlay())).toBe('$ ls -l')
  })

  test('a star that is typed where stars are echoed is no proof', () => {
    const world = new World(['stars'], 200)
    world.type('**', 1_000)
    world.type('abc', 10)
    expect(world.guesses.overlay()).toBeUndefined()
  })

  test('nothing is shown on the alternate screen, at the end of a line, or when it is switched off', () => {
    const world = new World(['all'], 150)
    world.type('ab', 1_000)
    world.key('c')
    expect(world.guesses.overlay()).toBeDefined()
    world.guesses.enable(false)
    expect(world.guesses.overlay()).toBeUndefined()
    world.guesses.enable(true)
    world.screen.isPlain = false
    expect(world.guesses.overlay()).toBeUndefined()
    world.pass(10)
    world.screen.isPlain = true
    expect(world.guesses.overlay(), 'what was guessed before is gone').toBeUndefined()
    const long = new World(['all'], 150)
    long.type('ab', 1_000)
    long.type('x'.repeat(cols), 1)
    expect(long.guesses.overlay()?.cursor ?? 0).toBeLessThan(cols)
  })
})

test('on a fast link nothing is shown, but the time is measured', () => {
  const world = new World(['all'], slow_ms / 2 - 10)
  world.look = () => expect(world.guesses.overlay()).toBeUndefined()
  world.type('echo hello', 60)
  world.pass(1_000)
  expect(world.guesses.roundTrip_ms).toBeLessThan(slow_ms)
})

test('a link that becomes very slow is noticed', () => {
  const world = new World(['all'], 20)
  world.type('echo', 100)
  expect(world.guesses.roundTrip_ms).toBeLessThan(50)
  world.oneWay_ms = 1_500
  world.type(' a', 5_000)
  expect(world.guesses.roundTrip_ms).toBeGreaterThan(1_000)
  world.type('bcd', 10)
  expect(world.screen.seen(world.guesses.overlay())).toBe('$ echo abcd')
})

const keys = fc.oneof(
  { weight: 12, arbitrary: fc.constantFrom(...'abcdef *-') },
  { weight: 2, arbitrary: fc.constant('\u007f') },
  { weight: 2, arbitrary: fc.constant('\r') },
  { weight: 1, arbitrary: fc.constantFrom('\u0003', '\t', '\u001b[A') },
)
const presses = fc.array(fc.tuple(keys, fc.constantFrom(5, 40, 150, 400, 2_500)), { maxLength: 80 })
const echoes = fc.array(fc.constantFrom<Echo>('all', 'none', 'stars'), { minLength: 1, maxLength: 4 })

test('whatever is typed, when all has arrived the screen is the device’s, and nothing is left over it', () => {
  fc.assert(
    fc.property(echoes, presses, fc.integer({ min: 80, max: 700 }), (modes, typed, oneWay_ms) => {
      const world = new World(modes, oneWay_ms)
      for (const [key, wait_ms] of typed) {
        world.key(key)
        world.pass(wait_ms)
      }
      world.pass(20_000)
      expect(world.guesses.overlay()).toBeUndefined()
    }),
    { numRuns: 300 },
  )
})

test('no letter is ever shown that the program did not echo', () => {
  fc.assert(
    fc.property(echoes, presses, fc.integer({ min: 80, max: 700 }), (modes, typed, oneWay_ms) => {
      const world = new World(modes, oneWay_ms)
      // The person knows the mode of the line: a prompt is read before its answer is typed.
      let hidden = false
      world.look = () => {
        const overlay = world.guesses.overlay()
        if (hidden) expect(overlay?.text.trim() ?? '').toBe('')
      }
      for (const [key, wait_ms] of typed) {
        world.key(key)
        if (key === '\r') world.pass(oneWay_ms * 3)
        hidden = world.program.echo !== 'all'
        world.pass(wait_ms)
      }
    }),
    { numRuns: 300 },
  )
})

test('a guess that was shown and was right stays where it is: the picture of a line only grows as it is typed', () => {
  fc.assert(
    fc.property(
      fc.array(fc.constantFrom(...'abcdefgh'), { minLength: 3, maxLength: 40 }),
      fc.integer({ min: 80, max: 500 }),
      fc.constantFrom(5, 40, 150, 400),
      (typed, oneWay_ms, each_ms) => {
        const world = new World(['all'], oneWay_ms)
        let longest = ''
        world.look = () => {
          const seen = world.screen.seen(world.guesses.overlay())
          expect(seen.startsWith(longest)).toBe(true)
          longest = seen
        }
        world.type(typed.join(''), each_ms)
        world.pass(10_000)
        expect(longest).toBe(`$ ${typed.join('')}`)
      },
    ),
  )
})
