// Concurrency limits: how many tasks run at once, in what order the others follow, when the queue is full,
// and that a task that fails frees its slot like any other.
import { describe, expect, test } from 'vitest'
import { concurrencyByKey } from './concurrency.ts'

/** A piece of work that ends when it is told to, and remembers that it began. */
function work(begun: string[], name: string) {
  const { promise, resolve, reject } = Promise.withResolvers<string>()
  const run = () => {
    begun.push(name)
    return promise
  }
  return { run, end: () => resolve(name), fail: (error: Error) => reject(error) }
}

/** The result of the taken work; a full queue fails the test. */
function taking<T>(taken: Promise<T> | undefined): Promise<T> {
  if (!taken) throw new Error('the queue is full')
  return taken
}

/** Lets everything that is ready happen. */
const settle = () => new Promise((resolve) => setImmediate(resolve))

/** The queue of a single key. */
function queueOf(waiting: number, each: number) {
  const queue = concurrencyByKey(waiting, { each })
  return { run: <T>(task: () => Promise<T>) => queue.run('a', task) }
}

describe('the queue of a key', () => {
  test('as many run as may at once, the others follow in the order they came', async () => {
    const begun: string[] = []
    const queue = queueOf(10, 2)
    const pieces = ['a', 'b', 'c', 'd'].map((name) => work(begun, name))
    const taken = pieces.map((piece) => taking(queue.run(piece.run)))
    await settle()
    expect(begun).toEqual(['a', 'b'])
    pieces[1]!.end()
    expect(await taken[1]).toBe('b')
    await settle()
    expect(begun).toEqual(['a', 'b', 'c'])
    pieces[0]!.end()
    await settle()
    expect(begun).toEqual(['a', 'b', 'c', 'd'])
    pieces[2]!.end()
    pieces[3]!.end()
    expect(await Promise.all(taken)).toEqual(['a', 'b', 'c', 'd'])
  })

  test('nobody joins a full queue, and there is room again when one has left it', async () => {
    const begun: string[] = []
    const queue = queueOf(1, 1)
    const [first, second, third, fourth] = ['1', '2', '3', '4'].map((name) => work(begun, name))
    const running = queue.run(first!.run)
    const waiting = queue.run(second!.run)
    expect(queue.run(third!.run)).toBeUndefined()
    first!.end()
    await running
    await settle()
    const late = queue.run(fourth!.run)
    expect(late).toBeDefined()
    second!.end()
    fourth!.end()
    expect([await waiting, await late]).toEqual(['2', '4'])
    expect(begun).toEqual(['1', '2', '4'])
  })

  test('a failure reaches the one who asked, and the next gets the place', async () => {
    const begun: string[] = []
    const queue = queueOf(5, 1)
    const [bad, good] = ['bad', 'good'].map((name) => work(begun, name))
    const taken = [queue.run(bad!.run), queue.run(good!.run)]
    bad!.fail(new Error('the rope broke'))
    good!.end()
    await expect(taken[0]).rejects.toThrow('the rope broke')
    expect(await taken[1]).toBe('good')
    expect(await queue.run(async () => 'again')).toBe('again')
  })
})

describe('concurrencyByKey', () => {
  test('one at a time for each key, and keys do not wait for each other', async () => {
    const begun: string[] = []
    const queue = concurrencyByKey(10)
    const [a1, a2, b1] = ['a1', 'a2', 'b1'].map((name) => work(begun, name))
    const taken = [queue.run('a', a1!.run), queue.run('a', a2!.run), queue.run('b', b1!.run)].map(taking)
    await settle()
    expect(begun).toEqual(['a1', 'b1'])
    a1!.end()
    await settle()
    expect(begun).toEqual(['a1', 'b1', 'a2'])
    a2!.end()
    b1!.end()
    expect(await Promise.all(taken)).toEqual(['a1', 'a2', 'b1'])
  })

  test('each key has a queue of its own length', async () => {
    const queue = concurrencyByKey(1)
    const held = [work([], 'a'), work([], 'b')]
    const taken = [
      queue.run('a', held[0]!.run),
      queue.run('a', async () => 'next'),
      queue.run('b', held[1]!.run),
    ].map(taking)
    expect(queue.run('a', async () => 'too many')).toBeUndefined()
    expect(queue.run('b', async () => 'welcome')).toBeDefined()
    for (const piece of held) piece.end()
    await Promise.all(taken)
  })

  test('two pieces of one key never overlap, however many are asked for and fail', async () => {
    const queue = concurrencyByKey(1000)
    let inside = 0
    let most = 0
    const piece = async (i: number) => {
      most = Math.max(most, ++inside)
      await settle()
      inside--
      if (i % 3 === 0) throw new Error('every third')
      return i
    }
    const outcomes = await Promise.allSettled(
      Array.from({ length: 60 }, (_, i) => taking(queue.run('one', () => piece(i)))),
    )
    expect(most).toBe(1)
    expect(outcomes.filter(({ status }) => status === 'fulfilled')).toHaveLength(40)
  })
})

describe('concurrencyByKey with a bound for all keys', () => {
  test('keys take turns, and a key with many tasks has one at a time', async () => {
    const begun: string[] = []
    const queue = concurrencyByKey(10, { atOnce: 1 })
    const pieces = ['a1', 'a2', 'a3', 'b1', 'c1', 'b2'].map((name) => work(begun, name))
    const taken = pieces.map((piece, at) => taking(queue.run(['a', 'a', 'a', 'b', 'c', 'b'][at]!, piece.run)))
    for (const piece of pieces) piece.end()
    await Promise.all(taken)
    expect(begun).toEqual(['a1', 'b1', 'c1', 'a2', 'b2', 'a3'])
  })

  test('a task that somebody waits for comes before the others of its key, also where their queue is full', async () => {
    const begun: string[] = []
    const queue = concurrencyByKey(1, { atOnce: 1 })
    const [one, two, three, four] = ['1', '2', '3', '4'].map((name) => work(begun, name))
    const taken = [taking(queue.run('key', one!.run)), taking(queue.run('key', two!.run))]
    expect(queue.hasRoom('key')).toBe(false)
    expect(queue.run('key', three!.run)).toBeUndefined()
    taken.push(taking(queue.run('key', four!.run, { first: true })))
    for (const piece of [one, two, four]) piece!.end()
    await Promise.all(taken)
    expect(begun).toEqual(['1', '4', '2'])
    expect(queue.hasRoom('key')).toBe(true)
  })

  test('a task that somebody waits for does not wait for the turns of many keys', async () => {
    const begun: string[] = []
    const queue = concurrencyByKey(10, { atOnce: 1 })
    const pieces = Array.from({ length: 41 }, (_, at) => work(begun, String(at)))
    const taken = pieces.map((piece, at) => taking(queue.run(`key ${at}`, piece.run, { first: at === 40 })))
    for (const piece of pieces) piece.end()
    await Promise.all(taken)
    expect(begun.indexOf('40')).toBeLessThanOrEqual(2)
    expect(begun).toHaveLength(41)
  })

  test('a bounded number of keys wait, and a key is forgotten with its last task', async () => {
    const queue = concurrencyByKey(10, { atOnce: 1, keys: 2 })
    const one = work([], '1')
    const taken = ['a', 'b', 'c'].map((key) => taking(queue.run(key, one.run)))
    expect(queue.run('d', one.run)).toBeUndefined()
    taken.push(taking(queue.run('b', one.run)))
    one.end()
    await Promise.all(taken)
    await settle()
    expect(['d', 'e', 'f'].map((key) => queue.run(key, one.run) !== undefined)).toEqual([true, true, true])
  })

  test('a task whose caller has left before its turn does not run, and leaves its place', async () => {
    const begun: string[] = []
    const queue = concurrencyByKey(1, { atOnce: 1 })
    const [one, two, three, four] = ['1', '2', '3', '4'].map((name) => work(begun, name))
    const left = new AbortController()
    const first = taking(queue.run('key', one!.run))
    const second = taking(queue.run('key', two!.run, { signal: left.signal }))
    left.abort(new Error('left'))
    await expect(second).rejects.toThrow('left')
    await expect(queue.run('key', four!.run, { signal: left.signal })).rejects.toThrow('left')
    const third = taking(queue.run('key', three!.run))
    for (const piece of [one, three]) piece!.end()
    expect(await Promise.all([first, third])).toEqual(['1', '3'])
    expect(begun).toEqual(['1', '3'])
  })
})
