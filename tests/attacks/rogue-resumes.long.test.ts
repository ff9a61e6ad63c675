// A rogue agent holds a tunnel, serves a session, and then continues its stream and breaks it in a loop. The
// session ends after few attempts, and its person is told why.
import net from 'node:net'
import { expect, test, vi } from 'vitest'
import { sample } from '@hawser/contract/examples'
import { connect, startSession } from '@hawser/ssh'
import { eventually } from '../harness/eventually.ts'
import { startService } from '../harness/service.ts'
import { buildWorld } from '../harness/world.ts'
import { startBreakingAgent } from './breaking-agent.ts'

vi.setConfig({ testTimeout: 180_000 })

test('a session whose agent only breaks ends with a sentence to its person, after few attempts', async () => {
  await using service = await startService({ env: { HAWSER_SSH_FAILURE_LIMIT: '0/60' } })
  const world = await buildWorld(service)
  const owner = service.api({ token: await world.token('owner') })
  using agent = await startBreakingAgent(service, sample.tenant, (uid) =>
    owner.devices.accept({ params: { uid } }),
  )
  const socket = net.connect(service.sshPort, '127.0.0.1')
  const connection = await connect(socket, {
    user: `root@${sample.namespace}.${agent.name}`,
    proofs: [{ method: 'password', password: 'any' }],
    checkHostKey: () => true,
  })
  const { channel } = await startSession(connection, {
    program: { type: 'shell' },
    pty: { terminal: 'xterm', columns: 80, rows: 24, width: 0, height: 0, modes: new Map() },
  })
  let shown = ''
  void channel.readAll(({ bytes }) => void (shown += bytes.toString())).catch(() => undefined)
  agent.begin()
  await channel.write(Buffer.from('typed'))
  await eventually(() => expect(shown).toMatch(/broke again and again, and the session was ended/), 120_000)
  expect(agent.resumes).toBeLessThan(100)
  socket.destroy()
})
