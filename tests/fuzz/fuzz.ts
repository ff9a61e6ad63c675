// A small mutation fuzzer. It starts from the corpus (corpus/<target>.hex, one input a line) and the target's
// own seeds, changes an input it has in one to four places, and feeds it to the target. The target answers
// with how it ended; an input that ends in a new way joins those that are changed further. An input that
// makes the target throw fails the test, which prints it as a line for the corpus. `npm test` feeds a
// thousand inputs to each target, `npm run test:long` a hundred thousand; FUZZ_INPUTS says another
// number. FUZZ_SEED repeats a run; FUZZ_KEEP=1 adds the inputs that ended in a new way to the corpus.
import { existsSync, readFileSync, writeFileSync } from 'node:fs'
import path from 'node:path'
import { setImmediate } from 'node:timers/promises'
import { setFlagsFromString } from 'node:v8'
import { runInNewContext } from 'node:vm'
import { times } from '../harness/tier.ts'

export interface Target {
  readonly name: string
  readonly seeds: readonly Buffer[]
  /** Feeds one input and says how it ended, in a few words; throws where the code under test is wrong. */
  feed(input: Buffer): Promise<string> | string
  /** Inputs of this target are larger or slower than usual: feed this share of them. */
  readonly share?: number
}

export interface Run {
  readonly inputs: number
  readonly endings: ReadonlyMap<string, number>
}

const usualInputs = Number(process.env['FUZZ_INPUTS'] ?? times(1_000, 100_000))
const longest_bytes = 4_096
const mostKept = 2_000
/** Of one run, for the corpus. */
const mostAdded = 40
/** Memory that stays behind is looked for after so many inputs. */
const probeEvery = 50_000
/** Once in so many inputs the event loop has a turn. */
const turnEvery = 500
const mostCollections = 10
const mostGrowth_bytes = 32 * 1024 * 1024

export async function fuzz(target: Target): Promise<Run> {
  const inputs = Math.round(usualInputs * (target.share ?? 1))
  const seed = Number(process.env['FUZZ_SEED'] ?? Date.now() % 2 ** 31)
  const random = randomFrom(seed)
  const file = path.join(import.meta.dirname, 'corpus', `${target.name}.hex`)
  const corpus = existsSync(file) ? readFileSync(file, 'utf8').split('\n').filter(Boolean) : []
  const pool = [...target.seeds, ...corpus.map((line) => Buffer.from(line, 'hex'))]
  const endings = new Map<string, number>()
  const fresh: string[] = []
  let before: number | undefined

  const feed = async (input: Buffer): Promise<boolean> => {
    let ending: string
    try {
      // A copy: the code under test may keep or change what it is given.
      ending = await target.feed(Buffer.from(input))
    } catch (error) {
      const line = input.toString('hex')
      throw new Error(
        `seed ${seed}: this input breaks ${target.name}; keep it in corpus/${target.name}.hex:\n${line}`,
        { cause: error },
      )
    }
    const times = endings.get(ending) ?? 0
    endings.set(ending, times + 1)
    return times === 0
  }

  for (const input of pool) await feed(input)
  for (let fed = 0; fed < inputs; fed += 1) {
    const input = mutate(pool, random)
    if ((await feed(input)) && pool.length < mostKept) {
      // Into memory of its own: the slab that it was cut from is up to 64 KiB, a seed may be longer.
      const kept = Buffer.alloc(input.length)
      input.copy(kept)
      pool.push(kept)
      fresh.push(input.toString('hex'))
    }
    // Targets that never wait would keep the rest of the event loop, and what it frees, from its turn.
    if (fed % turnEvery === turnEvery - 1) await setImmediate()
    if (fed % probeEvery === probeEvery - 1) {
      const held = await heldMemory(before === undefined ? 0 : before + mostGrowth_bytes)
      before ??= held
      if (held - before > mostGrowth_bytes)
        throw new Error(`seed ${seed}: ${target.name} keeps memory: ${before} grew to ${held} bytes`)
    }
  }
  if (process.env['FUZZ_KEEP'] === '1')
    writeFileSync(file, `${[...new Set([...corpus, ...fresh.slice(0, mostAdded)])].join('\n')}\n`)
  return { inputs, endings }
}

/**
 * What is in use after some collections. One of them does not free everything: V8 counts a buffer until a later
 * one has swept it, and objects of C++ go in a task after the collection that found them unused. So it is
 * repeated until no more than `enough` is left, or for as long as another collection may help.
 */
async function heldMemory(enough_bytes: number): Promise<number> {
  setFlagsFromString('--expose-gc')
  const collect = runInNewContext('gc') as () => void
  let held = Infinity
  for (let times = 0; times < mostCollections && held > enough_bytes; times += 1) {
    collect()
    await setImmediate()
    const { heapUsed, arrayBuffers } = process.memoryUsage()
    held = heapUsed + arrayBuffers
  }
  return held
}

export type Random = (below: number) => number

/** Numbers that can be had again: mulberry32. */
export function randomFrom(seed: number): Random {
  let state = seed >>> 0
  return (below) => {
    state = (state + 0x6d2b79f5) >>> 0
    let mixed = Math.imul(state ^ (state >>> 15), state | 1)
    mixed ^= mixed + Math.imul(mixed ^ (mixed >>> 7), mixed | 61)
    return ((mixed ^ (mixed >>> 14)) >>> 0) % below
  }
}

const oddNumbers = [
  0, 1, 2, 0x7f, 0x80, 0xff, 0x100, 0x7fff, 0x8000, 0xffff, 0x1_0000, 0x8000_0000, 0x7fff_ffff, 0xffff_ffff,
]

function mutate(pool: readonly Buffer[], random: Random): Buffer {
  const pick = (): Buffer => pool[random(pool.length)] ?? Buffer.alloc(0)
  let input: Buffer = Buffer.from(pick())
  for (let changes = 1 + random(4); changes > 0; changes -= 1) input = changeOnce(input, pick(), random)
  return input.subarray(0, longest_bytes)
}

function changeOnce(input: Buffer, other: Buffer, random: Random): Buffer {
  const at = random(input.length + 1)
  const length = 1 + random(random(2) === 0 ? 4 : 64)
  switch (random(9)) {
    case 0: // one bit
      if (at < input.length) input[at] = (input[at] ?? 0) ^ (1 << random(8))
      return input
    case 1: // one byte
      if (at < input.length) input[at] = random(256)
      return input
    case 2: // a number, as lengths are written
      if (at + 4 <= input.length) input.writeUInt32BE(oddNumbers[random(oddNumbers.length)] ?? 0, at)
      return input
    case 3: // a number that is almost right
      if (at + 4 <= input.length) input.writeInt32BE((input.readInt32BE(at) + random(9) - 4) | 0, at)
      return input
    case 4: // a piece is lost
      return Buffer.concat([input.subarray(0, at), input.subarray(at + length)])
    case 5: // a piece comes twice
      return Buffer.concat([input.subarray(0, at + length), input.subarray(at)])
    case 6: // a piece of another input
      return Buffer.concat([
        input.subarray(0, at),
        other.subarray(random(other.length + 1)).subarray(0, length),
        input.subarray(at),
      ])
    case 7: // it goes on as another one
      return Buffer.concat([input.subarray(0, at), other.subarray(random(other.length + 1))])
    default: // it ends
      return input.subarray(0, at)
  }
}
