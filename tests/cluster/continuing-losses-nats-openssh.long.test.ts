// Sessions that are continued by way of another node, while one of the two does not answer, is killed or stops.
import { expect, test } from 'vitest'
import { run } from '../../ssh/test/programs.ts'
import { startService } from '../harness/service.ts'
import { args, attach, cluster, home, isHeld, leaveBehind, other, ready, sit, target } from './continuing.ts'
import { startNode } from './node.ts'

test('one that does not answer is named, and a new shell begins', async () => {
  await using node = await startNode(cluster)
  const { uid } = await leaveBehind(node, 'silent')
  node.child.kill('SIGSTOP')
  try {
    using fresh = sit(other)
    await fresh.until(/You have sessions on a node of the server that does not answer now: [0-9a-f]{8}\./)
    await ready(fresh, 'new')
    fresh.type('exit\n')
    expect(await fresh.ended).toBe(0)
    const { status, stdout } = await run('ssh', [...args(home), '-tt', target(), `hawser-attach ${uid}`])
    expect([status, String(stdout)]).toEqual([1, expect.stringContaining('does not answer now')])
  } finally {
    node.child.kill('SIGCONT')
  }
  using back = attach(other, uid)
  await back.until(/ready\r\n>/)
})

test('when the node of the client is killed, the session is held at its own', async () => {
  await using node = await startNode(cluster)
  const { uid } = await leaveBehind(home, 'outlives')
  using there = attach(node, uid)
  await there.until(/ready\r\n>/)
  await node.kill()
  await there.ended
  await isHeld(uid)
  using back = attach(other, uid)
  await back.until(/ready\r\n>/)
  back.type('echo "it $VALUE"\n')
  await back.until(/it outlives\r\n/)
})

test('when the node of the session is killed, the client is told and let go', async () => {
  await using node = await startNode(cluster)
  const { uid } = await leaveBehind(node, 'gone')
  using there = attach(other, uid)
  await there.until(/ready\r\n>/)
  await node.kill()
  await there.until(/The connection to the part of the server that has the session is lost/)
  expect(await there.ended).toBe(255)
})

test('when the node of the session stops, the client is told that it goes on, and is let go as a lost one', async () => {
  const env = { ...cluster.env, HAWSER_DRAIN: '0' }
  const node = await startService({ env, database: cluster.database })
  const { uid } = await leaveBehind(node, 'stopped')
  using there = attach(other, uid)
  await there.until(/ready\r\n>/)
  await node[Symbol.asyncDispose]()
  await there.until(/Your session goes on: log in again in a moment to continue it\./)
  expect(await there.ended).toBe(255)
})

test('a node that stops leaves the sessions of its clients held at the others', async () => {
  const { uid } = await leaveBehind(home, 'drained')
  const env = { ...cluster.env, HAWSER_DRAIN: '0' }
  const node = await startService({ env, database: cluster.database })
  using there = attach(node, uid)
  await there.until(/ready\r\n>/)
  await node[Symbol.asyncDispose]()
  await there.ended
  await isHeld(uid)
})
