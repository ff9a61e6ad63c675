// What sessions of the real OpenSSH client leave in the audit log: who came in, who was refused and why, when
// it was over, and who looked at the recording.
import { describe, expect, test } from 'vitest'
import type { AuditEntry } from '@hawser/contract/audit'
import { eventually, sharedWay } from './way.ts'

const way = sharedWay()

/** Entries about an action since one number, oldest first; waits until there are so many. */
async function entries(action: string, since: number, count: number): Promise<AuditEntry[]> {
  return eventually(async () => {
    await way.service.rooms.auditedRefusals.settled()
    const found = (await way.owner.audit.list({ query: { action, after: since } })).body.entries
    expect(found).toHaveLength(count)
    return found
  })
}
const now = async (): Promise<number> => (await way.owner.audit.head({})).body.seq

describe('a session', () => {
  test('is opened and closed', async () => {
    const since = await now()
    await way.ssh('true')
    const { uid } = await way.newest()
    const [opened, closed] = await entries('session.', since, 2)
    const about = {
      actor: { kind: 'anonymous' },
      source: '127.0.0.1',
      target: { kind: 'session', id: uid, name: way.user.name },
      detail: { device: way.agent.uid },
    }
    expect(opened).toMatchObject({ action: 'session.opened', ...about })
    expect(closed).toMatchObject({ action: 'session.closed', ...about })
  })

  test('that is recorded tells who played, downloaded and removed it', async () => {
    await way.ssh('echo canary', { flags: ['-tt'] })
    const { uid } = await eventually(async () => {
      const newest = await way.newest()
      expect(newest).toMatchObject({ active: false, recorded: true })
      return newest
    })
    const since = await now()
    const params = { uid }
    await Promise.all([1, 2, 3].map(() => way.owner.sessions.play({ params })))
    await way.owner.recordings.window({ params: { uid, channel: '0' }, query: { at: 0 } })
    await way.owner.sessions.cast({ params, query: {} })
    await way.owner.sessions.removeRecording({ params })
    await way.owner.sessions.removeRecording({ params })
    const found = await entries('recording.', since, 3)
    expect(found.map(({ action }) => action)).toEqual([
      'recording.played',
      'recording.downloaded',
      'recording.removed',
    ])
    for (const { actor, target } of found) expect([actor.name, target.id]).toEqual(['olga', uid])
    expect(JSON.stringify(found)).not.toContain('canary')
  })

  test('that a member ends says so', async () => {
    await using running = way.start('sleep 60')
    const { uid } = await eventually(async () => {
      const newest = await way.newest()
      expect(newest.active).toBe(true)
      return newest
    })
    const since = await now()
    await way.owner.sessions.close({ params: { uid }, body: { device: way.agent.uid } })
    await running.status
    const found = await entries('session.', since, 2)
    expect(found.map(({ action }) => action)).toEqual(['session.terminated', 'session.closed'])
  })
})

test('a refused login tells the reason, and hides the password', async () => {
  const since = await now()
  const refused = await way.ssh('true', way.saying('canary-password'))
  expect(refused.status).not.toBe(0)
  const [entry] = await entries('login.refused', since, 1)
  expect(entry).toMatchObject({
    actor: { kind: 'anonymous' },
    source: '127.0.0.1',
    target: { kind: 'device', id: way.agent.uid },
    detail: { reason: 'password', method: 'password', username: way.user.name },
  })
  expect(JSON.stringify(entry)).not.toContain('canary')
})
