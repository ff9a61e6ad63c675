// Logins by public key at the same time, on one device, as the same user, while the machine has other work:
// to the real agent and to agents of the field. Some clients begin with their key; others ask `none` first
// and take their time, as somebody who touches a security key does, and then find the leg to the device
// ready. Whoever overtakes whom, everybody gets in. A round is twelve logins.
import { spawn } from 'node:child_process'
import net from 'node:net'
import { availableParallelism } from 'node:os'
import { setTimeout as pause } from 'node:timers/promises'
import { afterAll, beforeAll, describe, expect, test, vi } from 'vitest'
import { openClient, parsePrivateKey, startSession } from '@hawser/ssh'
import { sharedOldAgent, sharedWay } from './way.ts'

const together = 12

export function parallelLogins(rounds: number): void {
  const all = { 'in\n': rounds * together }
  const way = sharedWay()
  vi.setConfig({ testTimeout: rounds * 30_000 })

  /**
   * Processes that never rest, one for each core: what a login waits for then comes in another order each
   * time.
   */
  const busy = Array.from({ length: availableParallelism() }, () => ({ end: (): void => undefined }))
  beforeAll(() => {
    for (const one of busy) {
      const child = spawn(process.execPath, ['-e', 'for (;;);'], { stdio: 'ignore' })
      one.end = () => void child.kill('SIGKILL')
    }
  })
  afterAll(() => {
    for (const one of busy) one.end()
  })

  /** What a login came to: what the program said, or why there was none. */
  type Client = (device: string) => Promise<string>

  const openssh: Client = async (device) => {
    const { status, stdout, stderr } = await way.ssh('echo in', { device })
    return status === 0 ? stdout.toString() : `${status}: ${stderr}`
  }

  /** A client of ours; it signs at once, or asks `none` and signs after a while. */
  const ours =
    (think_ms: number): Client =>
    async (device) => {
      const socket = net.connect(way.service.sshPort, '127.0.0.1')
      try {
        const user = way.sshid({ device })
        const client = await openClient(socket, { checkHostKey: () => true, handshake_ms: 60_000 })
        if (think_ms > 0) {
          await client.attempt(user, { method: 'none' })
          await pause(think_ms)
        }
        const { accepted } = await client.attempt(user, {
          method: 'publickey',
          key: parsePrivateKey(way.where.read('olga')),
        })
        if (!accepted) return 'refused'
        await using connection = client.connection()
        const { channel } = await startSession(connection, { program: { type: 'exec', command: 'echo in' } })
        let said = ''
        for await (const { bytes } of channel) said += bytes.toString()
        return said
      } catch (error) {
        return String(error)
      } finally {
        socket.destroy()
      }
    }

  async function tally(device: string, client: (number: number) => Client): Promise<Record<string, number>> {
    const outcomes: Record<string, number> = {}
    for (let round = 0; round < rounds; round += 1) {
      const said = await Promise.all(
        Array.from({ length: together }, async (_, number) => client(number)(device)),
      )
      for (const one of said) outcomes[one] = (outcomes[one] ?? 0) + 1
    }
    return outcomes
  }

  const old = ([1, 2] as const).map((version) => ({
    kind: `an agent of version ${version}`,
    agent: sharedOldAgent(way, version),
  }))

  describe.each([
    { kind: 'our agent', name: () => way.agent.name },
    ...old.map(({ kind, agent }) => ({ kind, name: () => agent.name })),
  ])('$kind', ({ name }) => {
    test('lets in all of OpenSSH’s clients that come at once', async () => {
      expect(await tally(name(), () => openssh)).toEqual(all)
    })

    test('lets in those who sign at once and those who ask `none` first', async () => {
      expect(await tally(name(), (number) => ours(number % 2 === 0 ? 0 : 200 + 20 * number))).toEqual(all)
    })
  })
}
