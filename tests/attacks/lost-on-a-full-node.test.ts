// Thousands of clients are lost at the same moment, as when a network is cut, while the server already holds as
// many sessions as it can. Finding room for each one looked at every held session, and nobody else was served
// for seconds. The server looks at the sessions of one namespace and at how many each of the others holds.
import { expect, test } from 'vitest'
import { heldSessions, limits, type HoldableSession } from '../../server/src/gateway/terminal/held.ts'

const namespaces = 500
const lost = 100

test('whoever is lost on a full node does not make the server look at all sessions that it holds', () => {
  const ended: string[] = []
  let reads = 0
  const session = (uid: string, tenant_id: string): HoldableSession =>
    new Proxy<HoldableSession>(
      {
        uid,
        tenant_id,
        device_uid: 'd',
        username: 'root',
        identity: 'user a',
        started_at: 0,
        hold_s: 60,
        terminal: () => undefined,
        join: () => Promise.resolve(),
        mayContinue: () => Promise.resolve(true),
        leave: () => false,
        handOver: () => false,
        end: () => void ended.push(uid),
      },
      {
        get(one, name) {
          reads += 1
          return Reflect.get(one, name) as unknown
        },
      },
    )
  const held = heldSessions({ now: () => 0 })
  using all = new DisposableStack()
  const hold = (uid: string, tenant_id: string): boolean => {
    const one = session(uid, tenant_id)
    all.use(held.add(one))
    return held.hold(one) !== undefined
  }
  for (let at = 0; at < limits.ofNode; at += 1) hold(`${at}`, `namespace ${at % namespaces}`)
  expect(held.count).toBe(limits.ofNode)

  reads = 0
  for (let at = 0; at < lost; at += 1) expect(hold(`lost ${at}`, `another ${at % 20}`)).toBe(true)
  // A few of its own, of at most four others in its namespace, and of the one that makes room.
  expect(reads).toBeLessThan(lost * 40)
  expect(held.count).toBe(limits.ofNode)
  expect(ended).toEqual(Array.from({ length: lost }, (_, at) => `${at}`))
  // Neither does a person who holds as many as they may, and gives up their own oldest.
  reads = 0
  for (let at = 0; at < lost; at += 1) expect(hold(`late ${at}`, `namespace ${400 + at}`)).toBe(true)
  expect(reads).toBeLessThan(lost * 40)
})
