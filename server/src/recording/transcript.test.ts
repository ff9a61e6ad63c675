// The text that a person saw on a terminal becomes lines with their moments, and its commands are recognised.
import { describe, expect, test } from 'vitest'
import type { JournalEvent, Mark } from './journal.ts'
import { transcriptOf, type TranscriptLine } from './transcript.ts'

/** Output with its time, or a mark; a pair of numbers is a new size. */
type Shown = readonly [time_ms: number, output: string | readonly [number, number] | Mark]

async function transcript(
  shown: readonly Shown[],
  size = { width: 80, height: 24 },
): Promise<TranscriptLine[]> {
  const events = shown.map(([time_ms, output]): JournalEvent => {
    if (typeof output === 'string') return { kind: 'output', time_ms, bytes: Buffer.from(output) }
    if ('type' in output) return { kind: 'mark', time_ms, mark: output }
    return { kind: 'resize', time_ms, width: output[0], height: output[1] }
  })
  return (await Array.fromAsync(transcriptOf(size, events))).flat()
}

const texts = (lines: readonly TranscriptLine[]): string[] => lines.map(({ text }) => text)
const commands = (lines: readonly TranscriptLine[]): string[] =>
  lines.flatMap(({ text, command }) => (command ? [`${command.source}: ${text.slice(command.at)}`] : []))

describe('lines', () => {
  test('have no colours, no escape codes, and the moment at which they were complete', async () => {
    const lines = await transcript([
      [100, '\u001b[1;31mred\u001b[0m and \u001b]0;a title\u0007plain\r\n'],
      [2_000, 'sec'],
      [2_500, 'ond\r\n'],
    ])
    expect(lines.map(({ time_ms, text }) => [time_ms, text])).toEqual([
      [100, 'red and plain'],
      [2_500, 'second'],
    ])
  })

  test('have a moment at which the screen shows them, however slowly or quickly they came', async () => {
    const quick = await transcript([
      [0, 'first\r\n'],
      [3, 'second\r\n'],
    ])
    expect(quick.find(({ text }) => text === 'second')?.time_ms).toBe(3)
    // Without a pause for seconds: each line is there at its moment, and has not long been.
    const slow = await transcript(
      Array.from({ length: 200 }, (_, index) => [index * 15, `line ${index}\r\n`] as const),
    )
    const late = slow.map(({ time_ms, text }) => time_ms - Number(text.slice('line '.length)) * 15)
    expect(Math.min(...late)).toBe(0)
    expect(Math.max(...late)).toBeLessThanOrEqual(20)
  })

  test('say who of those who joined typed then, within milliseconds, too', async () => {
    const by = (name: string): Mark => ({ type: 'typist', by: name, id: `id of ${name}` })
    const lines = await transcript([
      [100, '$ one\r\n$ '],
      [101, by('oskar')],
      [103, 'two\r\n$ '],
      [104, by('olga')],
      [105, by('adam')],
      [108, 'three\r\n'],
      [109, 'and its output\r\n'],
      [110, { type: 'typist', by: 'whoever opened it' }],
      [111, 'four\r\n'],
    ])
    expect(lines.map(({ text, typist }) => [text, typist?.name, typist?.id])).toEqual([
      ['$ one', undefined, undefined],
      ['$ two', 'oskar', 'id of oskar'],
      ['$ three', 'adam', 'id of adam'],
      ['and its output', 'adam', 'id of adam'],
      ['four', undefined, undefined],
    ])
  })

  test('are whole where the terminal wrapped them, also when a resize wraps them anew', async () => {
    const long = Array.from({ length: 40 }, (_, index) => `word${index}`).join(' ')
    expect(texts(await transcript([[0, `${long}\r\nshort\r\n`]]))).toEqual([long, 'short'])
    const filled = Array.from({ length: 40 }, (_, index) => `line ${index}\r\n`).join('')
    const lines = await transcript([
      [0, `${long}\r\n`],
      [1_000, [33, 10]],
      [2_000, filled],
    ])
    expect(texts(lines).filter((text) => text.startsWith('word0'))).toEqual([long])
    expect(texts(lines)).toContain('line 39')
    expect(texts(lines).filter((text) => text === 'line 3')).toHaveLength(1)
  })

  test('of wide characters are as they were written', async () => {
    const text = '港の灯台は夜も光る。'.repeat(9)
    expect(texts(await transcript([[0, `x${text}\r\n한국어 항구\r\n`]], { width: 41, height: 10 }))).toEqual([
      `x${text}`,
      '한국어 항구',
    ])
  })

  test('that come by the thousand all count, once each and in their order', async () => {
    const many = Array.from({ length: 20_000 }, (_, index) => `number ${index}`)
    const lines = await transcript([[5, `${many.join('\r\n')}\r\n`]])
    expect(texts(lines)).toEqual(many)
  })

  test('that repeat the line before them count once', async () => {
    expect(texts(await transcript([[0, 'y\r\n'.repeat(50_000)]]))).toEqual(['y'])
  })

  test('of a character and a sequence that were cut in two are whole', async () => {
    const bytes = Buffer.from('caf\u00e9 \u001b[32mgreen\u001b[0m\r\n')
    const events = Array.from(bytes, (byte, index): JournalEvent => ({
      kind: 'output',
      time_ms: index * 400,
      bytes: Buffer.from([byte]),
    }))
    const lines = (await Array.fromAsync(transcriptOf({ width: 80, height: 24 }, events))).flat()
    expect(texts(lines)).toEqual(['café green'])
  })

  test('that are not shown are left out', async () => {
    expect(texts(await transcript([[0, 'seen \u001b[8mhunter2\u001b[0m too\r\n']]))).toEqual([
      'seen         too',
    ])
  })
})

describe('what is drawn over', () => {
  test('a progress bar is a line once, as it was in the end', async () => {
    const steps: Shown[] = Array.from({ length: 101 }, (_, percent) => [
      percent * 400,
      `\r[${'#'.repeat(percent / 5).padEnd(20)}] ${percent}% of image.iso`,
    ])
    const lines = texts(await transcript([...steps, [41_000, '\r\ndone\r\n']]))
    expect(lines.at(-1)).toBe('done')
    expect(lines).toContain('[####################] 100% of image.iso')
    expect(lines.length).toBeLessThan(5)
  })

  test('a line that stood for a while and was replaced counts, with the moment at which it came', async () => {
    const lines = await transcript([
      [0, 'top\r\n'],
      [1_000, 'Compiling anchor'],
      [5_000, '\r\u001b[KLinking chain'],
      [9_000, '\r\u001b[Kfinished\r\n'],
    ])
    expect(texts(lines).toSorted()).toEqual(['Compiling anchor', 'Linking chain', 'finished', 'top'])
    expect(lines.find(({ text }) => text === 'Compiling anchor')?.time_ms).toBe(1_000)
  })

  test('a screen that is cleared is not lost', async () => {
    const lines = texts(
      await transcript([
        [0, 'before one\r\nbefore two\r\n'],
        [1_000, '\u001b[H\u001b[2J\u001b[3Jafter\r\n'],
      ]),
    )
    expect(lines.toSorted()).toEqual(['after', 'before one', 'before two'])
  })

  test('an editor shows each line once, whatever it redraws, and leaves the shell as it was', async () => {
    const page = (from: number): string =>
      `\u001b[H${Array.from({ length: 23 }, (_, row) => `${from + row} setting ${from + row}\u001b[K`).join('\r\n')}`
    const scrolling: Shown[] = Array.from({ length: 60 }, (_, index) => [3_000 + index * 500, page(index)])
    const lines = texts(
      await transcript([
        [0, 'host:~$ '],
        [1_000, 'vi harbour.conf\r\n'],
        [2_000, '\u001b[?1049h\u001b[2J'],
        ...scrolling,
        [40_000, '\u001b[24;1H:wq'],
        [41_000, '\u001b[?1049l'],
        [42_000, 'host:~$ exit\r\n'],
      ]),
    )
    for (const setting of [0, 41, 81])
      expect(lines.filter((text) => text === `${setting} setting ${setting}`)).toHaveLength(1)
    expect(lines).toContain(':wq')
    expect(lines.slice(-2)).toEqual(['host:~$ vi harbour.conf', 'host:~$ exit'])
  })

  test('a table of figures that is refreshed counts once a minute, not at each refresh', async () => {
    const steps: Shown[] = Array.from({ length: 600 }, (_, second) => [
      second * 1_000,
      `\u001b[Hload ${second}.5\u001b[K\r\n${4_000 + second} root harbourd ${second % 90}.0\u001b[K`,
    ])
    const lines = texts(await transcript(steps))
    expect(lines.length).toBeGreaterThan(10)
    expect(lines.length).toBeLessThan(50)
  })

  test('lines that scroll by in a part of the screen count, as in tmux', async () => {
    const many = Array.from(
      { length: 2_000 },
      (_, index) => `step ${['alpha', 'beta'][index % 2]} ${name(index)}`,
    )
    const lines = texts(
      await transcript([
        [0, '\u001b[?1049h\u001b[1;23r\u001b[24;1H[0] 0:bash*\u001b[1;1H'],
        [1_000, many.join('\r\n')],
        [3_000, '\u001b[?1049l'],
      ]),
    )
    expect(many.filter((text) => !lines.includes(text))).toEqual([])
  })

  test('what was typed and erased again was seen', async () => {
    const lines = texts(
      await transcript([
        [0, 'host:~$ '],
        [1_000, 'rm -rf /srv/harbour'],
        [3_000, `${'\b'.repeat(19)}\u001b[K`],
        [4_000, 'ls\r\n'],
      ]),
    )
    expect(lines.toSorted()).toEqual(['host:~$ ls', 'host:~$ rm -rf /srv/harbour'])
  })
})

/** Letters only: a line that differs in numbers counts as the same. */
const name = (index: number): string =>
  Array.from(index.toString(26), (digit) => `x${digit}`)
    .join('')
    .replaceAll(/\d/g, (digit) => 'qrstuvwyzj'[Number(digit)] ?? '')

describe('commands', () => {
  test('are those between the marks of a shell, and nothing is guessed then', async () => {
    const lines = await transcript([
      [0, '\u001b]133;A\u0007deck> \u001b]133;B\u0007'],
      [1_000, 'uname -a'],
      [1_500, '\r\n\u001b]133;C\u0007'],
      [1_600, 'Linux harbour\r\n\u001b]133;D;0\u0007\u001b]133;A\u0007deck> \u001b]133;B\u0007'],
      [5_000, '\r\n$ not a command\r\n'],
    ])
    expect(commands(lines)).toEqual(['marks: uname -a'])
    expect(lines.find(({ command }) => command)?.time_ms).toBe(1_500)
    expect(texts(lines)).toContain('deck> uname -a')
  })

  test('are guessed behind a prompt that waited, long ones as a whole', async () => {
    const long = `echo ${Array.from({ length: 30 }, (_, index) => `argument${index}`).join(' ')}`
    const lines = await transcript([
      [0, '\u001b[32mroot@harbour\u001b[0m:~# '],
      [900, 'l'],
      [1_000, 's\r\nanchor  chain\r\nroot@harbour:~# '],
      [2_000, long],
      [2_500, '\r\nok\r\nroot@harbour:~# pasted\r\n'],
    ])
    expect(commands(lines)).toEqual(['prompt: ls', `prompt: ${long}`, 'prompt: pasted'])
    expect(texts(lines)).toContain('anchor  chain')
  })

  test('a file that is printed holds no commands', async () => {
    const lines = await transcript([
      [0, 'a@b:~$ '],
      [1_000, 'cat notes\r\n$ make\r\nprice > 5\r\n'],
    ])
    expect(commands(lines)).toEqual(['prompt: cat notes'])
  })

  test('what a client asked for by name is a command', async () => {
    const events: JournalEvent[] = [
      { kind: 'mark', time_ms: 3, mark: { type: 'program', program: 'exec', command: 'make\tworld' } },
      { kind: 'output', time_ms: 5, bytes: Buffer.from('made\r\n') },
    ]
    const lines = (await Array.fromAsync(transcriptOf({ width: 80, height: 24 }, events))).flat()
    expect(commands(lines)).toEqual(['exec: make world'])
  })
})

test('output of an attacker costs no more than its length', async () => {
  const huge = '2147483647'
  const sequences = ['S', 'T', 'L', 'M', '@', 'P', 'X', 'b', 'A', 'B', 'H', 'I', 'Z'].map(
    (final) => `word\u001b[${huge}${final}`,
  )
  const lines = await transcript(
    sequences.map((sequence, index) => [index * 400, sequence] as const),
    { width: 1_000_000, height: 1_000_000 },
  )
  expect(lines.length).toBeLessThan(100)
})
