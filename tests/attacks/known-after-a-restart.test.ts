// Strangers crowd the SSH port while the server restarts. The sources from which people had logged in were known to the
// process alone, so after the restart everybody was a stranger and was dropped with the crowd. They are kept in the
// database for a day, and no more of them than the process itself remembers.
import { once } from 'node:events'
import net from 'node:net'
import { expect, test } from 'vitest'
import { generatePrivateKey } from '@hawser/ssh'
import { startups } from '../../server/src/gateway/login/startups.ts'
import { day_ms } from '../../server/src/kit/clock.ts'
import { ownFolder } from '../contract/people.ts'
import { startService, type Service } from '../harness/service.ts'
import { sshid, startDoor } from './door.ts'

const env = { HAWSER_SSH_RATE_LIMIT: '3/60' }
const [person, stranger] = ['192.0.2.9', '198.51.100.1']

/** Whether the server speaks to a connection from this address, or closes it. */
async function isTaken({ sshPort }: Service, from: string): Promise<boolean> {
  const socket = net.connect(sshPort, '127.0.0.1').on('error', () => undefined)
  await once(socket, 'connect')
  socket.write(`PROXY TCP4 ${from} ${from} 4242 22\r\n`)
  const taken = await Promise.race([
    once(socket, 'data').then(() => true),
    once(socket, 'close').then(() => false),
  ])
  socket.destroy()
  return taken
}
async function takenOf(service: Service, from: string, count: number): Promise<number> {
  let taken = 0
  for (let knock = 0; knock < count; knock += 1) if (await isTaken(service, from)) taken += 1
  return taken
}

test(
  'a source from which somebody logged in is known after a restart, for a day',
  { timeout: 60_000 },
  async () => {
    using folder = ownFolder()
    {
      await using door = await startDoor(env, folder.path)
      const olga = generatePrivateKey('ed25519')
      await door.register(olga)
      const client = await door.knock({ from: person })
      expect(await client.attempt(sshid, { method: 'publickey', key: olga })).toEqual({ accepted: true })
      await client.connection().end()
      await door.service.rooms.background.settled()
    }
    {
      await using service = await startService({ env, folder: folder.path })
      expect([await takenOf(service, person, 8), await takenOf(service, stranger, 8)]).toEqual([8, 3])
      // A day later it is a stranger like others.
      service.clock.forward(day_ms)
      expect(await takenOf(service, person, 8)).toBe(3)
      const { knownSources } = service.rooms.stores
      const ever = '2000-01-01T00:00:00.000Z'
      expect((await knownSources.list(ever, 10)).map(({ source }) => source)).toEqual([person])
      await knownSources.sweep(new Date(service.clock.now() - day_ms).toISOString(), 10)
      expect(await knownSources.list(ever, 10)).toEqual([])
    }
  },
)

test('a source that logs in all the time is written once an hour', () => {
  const clock = { ms: 1_000_000_000_000, now: () => clock.ms }
  const noted: [string, number][] = []
  const all = startups(clock, {
    perSource: 10,
    rate: { max: Infinity, window_ms: 1_000 },
    memory: { known: [], note: (source, at) => void noted.push([source, at - 1_000_000_000_000]) },
  })
  for (let minute = 0; minute < 130; minute += 1) {
    const entered = all.enter(person, false)
    if (typeof entered === 'string') throw new Error(entered)
    entered.loggedIn()
    entered[Symbol.dispose]()
    clock.ms += 60_000
  }
  expect(noted).toEqual([0, 60, 120].map((minute) => [person, minute * 60_000]))
})
