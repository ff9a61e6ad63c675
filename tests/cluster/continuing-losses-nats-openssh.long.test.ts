// Sessions that are continued at another node, while one of the two does not answer, is killed or stops.
import { once } from 'node:events'
import { expect, test } from 'vitest'
import { startService } from '../harness/service.ts'
import { attach, cluster, home, isHeld, leaveBehind, list, other, question, sit } from './continuing.ts'
import type { Terminal } from '../clients/terminal.ts'
import { startNode } from './node.ts'

async function says(terminal: Terminal, value: string): Promise<void> {
  terminal.type('echo "it $VALUE"\n')
  await terminal.until(new RegExp(`it ${value}\r\n`))
}

test('a node that does not answer loses the session to its person, and does not end it later', async () => {
  await using node = await startNode(cluster)
  const { uid } = await leaveBehind(node, 'silent')
  node.child.kill('SIGSTOP')
  using back = sit(other)
  try {
    await back.until(question)
    back.type('\r')
    await back.until(/ready\r\n>/)
    await says(back, 'silent')
  } finally {
    node.child.kill('SIGCONT')
  }
  // What it writes before it has stopped changes nothing about the session.
  node.child.kill('SIGTERM')
  await once(node.child, 'exit')
  await says(back, 'silent')
  expect(await list()).toContainEqual(expect.objectContaining({ uid, held: false, active: true }))
})

test('when the node of the client is killed, the session is held again where the device is', async () => {
  await using node = await startNode(cluster)
  const { uid } = await leaveBehind(home, 'outlives')
  using there = attach(node, uid)
  await there.until(/ready\r\n>/)
  await node.kill()
  await there.ended
  await isHeld(uid)
  using back = attach(other, uid)
  await back.until(/ready\r\n>/)
  await says(back, 'outlives')
})

test.each(['killed', 'stopped'])(
  'a node that is %s takes no session along that it has let go',
  async (how) => {
    const env = { ...cluster.env, HAWSER_DRAIN: '0' }
    await using node =
      how === 'killed' ? await startNode(cluster) : await startService({ env, database: cluster.database })
    const { uid } = await leaveBehind(node, how)
    using there = attach(other, uid)
    await there.until(/ready\r\n>/)
    if ('kill' in node) await node.kill()
    else await node[Symbol.asyncDispose]()
    await says(there, how)
  },
)

test('a node that stops tells its clients that their sessions go on, and they are held again', async () => {
  const { uid } = await leaveBehind(home, 'drained')
  const env = { ...cluster.env, HAWSER_DRAIN: '0' }
  const node = await startService({ env, database: cluster.database })
  using there = attach(node, uid)
  await there.until(/ready\r\n>/)
  await node[Symbol.asyncDispose]()
  await there.until(/Your session goes on: log in again in a moment to continue it\./)
  expect(await there.ended).toBe(255)
  await isHeld(uid)
  using back = attach(other, uid)
  await back.until(/ready\r\n>/)
  await says(back, 'drained')
})
