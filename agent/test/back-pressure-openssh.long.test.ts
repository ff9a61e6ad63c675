// A slow reader slows the program and nobody else: nothing piles up in the agent, on pipes, terminals
// and forwarded connections, in either direction. Measured where it would show: how far the program gets, and
// the agent's own memory.
import { spawn, type ChildProcess } from 'node:child_process'
import { readFileSync } from 'node:fs'
import net, { type AddressInfo } from 'node:net'
import { startSession, writeTcpForward } from '@hawser/ssh'
import { afterEach, expect, test, vi } from 'vitest'
import { outputOf } from '../../ssh/test/reading.ts'
import { atRest, eventually } from '../../tests/harness/eventually.ts'
import { inBothModes, type Place } from './modes.ts'
import { whenGone } from './running.ts'

vi.setConfig({ testTimeout: 120_000, hookTimeout: 60_000 })

/**
 * Everything between a program and a reader that stands still: windows, pipes and sockets of two processes.
 */
const onTheWay_bytes = 16 * 1024 * 1024
/** How much the agent and the tests may grow: far less than is sent. */
const growth_bytes = 96 * 1024 * 1024
const sent_bytes = 200_000_000

const children: ChildProcess[] = []
afterEach(() => {
  for (const child of children.splice(0)) child.kill('SIGKILL')
})

function written(pid: number): number {
  return Number(/^wchar: (\d+)$/m.exec(readFileSync(`/proc/${pid}/io`, 'latin1'))![1])
}

/** Resolves when a process has stopped writing. */
const stuckAt = async (pid: number, measure = written): Promise<number> => atRest(() => measure(pid), 500, 1)

/** The real client, whose output nobody reads. */
function unread(place: Place, options: string[], command: string): ChildProcess {
  const child = spawn('ssh', [...place.args(), ...options, `${place.who.name}@127.0.0.1`, command], {
    stdio: ['pipe', 'pipe', 'ignore'],
  })
  children.push(child)
  return child
}

async function pidFrom(place: Place, name: string): Promise<number> {
  return eventually(() => {
    const pid = Number(readFileSync(`${place.who.home}/${name}`, 'utf8'))
    expect(pid).toBeGreaterThan(0)
    return pid
  })
}

async function count(stream: AsyncIterable<Buffer>, largest: { rss: number }): Promise<number> {
  let total = 0
  for await (const chunk of stream) {
    total += chunk.length
    largest.rss = Math.max(largest.rss, process.memoryUsage.rss())
  }
  return total
}

inBothModes((place) => {
  test.each([
    ['pipes', [], sent_bytes],
    // Slower, and no less telling.
    ['a terminal', ['-tt'], sent_bytes / 10],
  ])('a program on %s waits for its reader, and the agent keeps nothing', async (_, options, expected) => {
    const name = `pid-${expected}`
    const child = unread(place, options, `echo $$ > ${name}; exec head -c ${expected} /dev/zero`)
    expect(await stuckAt(await pidFrom(place, name))).toBeLessThan(onTheWay_bytes)
    const before = process.memoryUsage.rss()
    const largest = { rss: before }
    expect(await count(child.stdout!, largest)).toBe(expected)
    expect(largest.rss - before).toBeLessThan(growth_bytes)
  })

  test('a session that stands still does not hold up another on the same connection', async () => {
    await using connection = await place.connect()
    const stuck = await startSession(connection, { program: { type: 'exec', command: 'echo $$; exec yes' } })
    const first = await stuck.channel.read()
    const pid = Number(first!.bytes.toString().split('\n', 1)[0])
    expect(await stuckAt(pid)).toBeLessThan(onTheWay_bytes)
    expect((await outputOf(connection, 'echo quick')).stdout.toString()).toBe('quick\n')
    await stuck.channel.close('now')
    await whenGone(pid)
  })

  test('input waits for the program', async () => {
    await using connection = await place.connect()
    const session = await startSession(connection, {
      program: { type: 'exec', command: 'echo $$; read go; cat | wc -c' },
    })
    const pid = Number((await session.channel.read())!.bytes.toString())
    let sent = 0
    const feed = async (): Promise<void> => {
      await session.channel.write(Buffer.from('go\n'))
      for (; sent < 40_000_000; sent += 100_000) await session.channel.write(Buffer.alloc(100_000))
      await session.channel.end()
    }
    // Stopped before it can read.
    process.kill(-pid, 'SIGSTOP')
    const feeding = feed()
    expect(await stuckAt(pid, () => sent)).toBeLessThan(onTheWay_bytes)
    process.kill(-pid, 'SIGCONT')
    await feeding
    expect((await session.channel.read())?.bytes.toString().trim()).toBe('40000000')
  })

  test('a forwarded connection that nobody reads waits, too', async () => {
    let written_bytes = 0
    const source = net.createServer((socket) => {
      socket.on('error', () => undefined)
      const more = (): void => {
        do written_bytes += 65_536
        while (socket.write(Buffer.alloc(65_536)))
      }
      socket.on('drain', more)
      more()
    })
    await new Promise<void>((resolve) => void source.listen(0, '127.0.0.1', resolve))
    const { port } = source.address() as AddressInfo
    await using connection = await place.connect()
    const channel = await connection.open(
      'direct-tcpip',
      writeTcpForward({ host: '127.0.0.1', port, origin: '127.0.0.1', originPort: 1 }),
    )
    expect(await stuckAt(0, () => written_bytes)).toBeLessThan(onTheWay_bytes)
    await channel.close('now')
    source.close()
  })
})
