// A held session is a shell that somebody has left open. Whoever is not that person must not get it, whatever
// they know of it; a device must not act on whoever comes back by what it wrote meanwhile; and nobody may
// make the server hold more than it wants to.
import net from 'node:net'
import { beforeAll, describe, expect, test } from 'vitest'
import { sample } from '@hawser/contract/examples'
import type { Client } from '@hawser/contract/client'
import { connect, generatePrivateKey, publicKeyLine, startSession, type PrivateKey } from '@hawser/ssh'
import {
  heldSessions,
  identityOf,
  limits,
  type HoldableSession,
} from '../../server/src/gateway/terminal/held.ts'
import { apiOf, sharedQuarters } from '../clients/web.ts'
import { eventually } from '../harness/eventually.ts'

const quarters = sharedQuarters({ env: { HAWSER_SSH_FAILURE_LIMIT: '0/60' } })
const keys = { olga: generatePrivateKey('ed25519'), rogue: generatePrivateKey('ed25519') }
let owner: Client

beforeAll(async () => {
  owner = await apiOf(quarters(), 'owner')
  for (const [name, { type, blob }] of Object.entries(keys)) {
    const data = Buffer.from(publicKeyLine(type, blob)).toString('base64')
    await owner.publicKeys.create({ body: { data, name, username: '.*', filter: { hostname: '.*' } } })
  }
})

/** A program in a terminal, as somebody with this key. */
async function open(key: PrivateKey, command?: string) {
  const { service, agent, user } = quarters()
  const socket = net.connect(service.sshPort, '127.0.0.1')
  const connection = await connect(socket, {
    user: `${user.name}@${sample.namespace}.${agent.name}`,
    proofs: [{ method: 'publickey', key }],
    checkHostKey: () => true,
  })
  const { channel } = await startSession(connection, {
    program: command === undefined ? { type: 'shell' } : { type: 'exec', command },
    pty: { terminal: 'xterm', columns: 80, rows: 24, width: 0, height: 0, modes: new Map() },
  })
  let text = ''
  void channel.readAll(({ bytes }) => void (text += bytes.toString())).catch(() => undefined)
  return {
    type: async (typed: string) => channel.write(Buffer.from(typed)),
    shown: () => text,
    until: async (pattern: RegExp) => eventually(() => expect(text).toMatch(pattern)),
    lose: () => void socket.resetAndDestroy(),
    [Symbol.dispose]: () => void connection.end(),
  }
}

const active = async () =>
  (await owner.sessions.list({ query: { active: true, device_uid: quarters().agent.uid } })).body
const oneHeld = async () =>
  eventually(async () => {
    const found = (await active()).filter(({ held }) => held)
    expect(found).toHaveLength(1)
    return found[0]!
  })
async function clear(): Promise<void> {
  for (const { uid, device_uid } of await active())
    await owner.sessions.close({ params: { uid }, body: { device: device_uid } })
  await eventually(async () => expect(await active()).toEqual([]))
}

describe('whoever comes back', () => {
  test('is shown cells: nothing that the device wrote meanwhile can ask, name, copy or link', async () => {
    const lost = await open(
      keys.olga,
      String.raw`echo begun; sleep 1; printf '\033[c\033[6n\033]0;title\007\033]52;c;aGk=\007\033]8;;http://x\007link\033]8;;\007\033P$qm\033\\\033[5i\n'; stty -echo; IFS= read -r -n 1 -t 3 answer; echo "answer=[$answer]"; sleep 600`,
    )
    await lost.until(/begun/)
    lost.lose()
    const { uid } = await oneHeld()
    // Nobody answered the questions of the device.
    await eventually(async () => {
      const { body } = await owner.sessions.play({ params: { uid } })
      expect(body.map(({ message }) => message).join('')).toContain('answer=[]')
    })
    using back = await open(keys.olga, 'hawser-attach -s')
    await back.until(/answer=\[\]/)
    expect(back.shown()).toContain('link')
    // No OSC, DCS, question or printing; only text, colours, cursor and modes.
    // eslint-disable-next-line no-control-regex
    expect(back.shown()).not.toMatch(/\u001b[\]P_^X]|\u001b\[[0-9;?>=]*[cni]|title|aGk=/)
    await clear()
  })

  test('is the same person: another key of the namespace neither is asked nor finds it by its id', async () => {
    const lost = await open(keys.olga)
    await lost.type('SECRET=treasure; echo rea""dy\n')
    await lost.until(/ready\r\n/)
    lost.lose()
    const { uid } = await oneHeld()
    for (const command of [`hawser-attach ${uid}`, 'hawser-attach', 'hawser-attach -s']) {
      using rogue = await open(keys.rogue, command)
      await rogue.until(/You have no such session/)
    }
    using shell = await open(keys.rogue)
    await shell.type('echo "have ${SECRET:-nothing}"\n')
    await shell.until(/have nothing/)
    expect(shell.shown()).not.toContain('still there')
    // Neither do other users in a browser, of whatever role.
    for (const who of ['owner', 'observer'] as const)
      await expect(
        (await apiOf(quarters(), who)).terminals.attach({ body: { session: uid } }),
      ).rejects.toMatchObject({ status: 404 })
    await clear()
  })

  test('is judged anew: a firewall rule that was made meanwhile counts', async () => {
    const lost = await open(keys.olga)
    await lost.type('echo rea""dy\n')
    await lost.until(/ready\r\n/)
    lost.lose()
    const { uid } = await oneHeld()
    const { body: rule } = await owner.firewall.create({
      body: {
        action: 'deny',
        active: true,
        priority: 0,
        source_ip: '.*',
        username: '.*',
        filter: { hostname: '.*' },
      },
    })
    try {
      await expect(open(keys.olga, `hawser-attach ${uid}`)).rejects.toThrow()
      expect((await oneHeld()).uid).toBe(uid)
    } finally {
      await owner.firewall.remove({ params: { id: rule.id } })
    }
    await clear()
  })

  test('does not find a device’s words for the command in the way of others', async () => {
    using odd = await open(keys.olga, 'hawser-attach ../../etc; id')
    await odd.until(/usage: ssh -t/)
    using other = await open(keys.olga, 'hawser-attachments || echo unknown to us')
    await other.until(/unknown to us/)
    await clear()
  })
})

describe('what is held', () => {
  const session = (
    uid: string,
    identity: string,
    ended: string[],
    tenant_id = 'harbour',
    device_uid = 'd',
  ): HoldableSession => ({
    uid,
    tenant_id,
    device_uid,
    username: 'root',
    identity,
    started_at: 0,
    hold_s: 60,
    terminal: () => undefined,
    join: () => Promise.resolve(),
    mayContinue: () => Promise.resolve(true),
    leave: () => false,
    handOver: () => false,
    end: () => void ended.push(uid),
  })

  test('has a bound for a person, who loses the oldest, and for a namespace, which others cannot use up', () => {
    const ended: string[] = []
    const held = heldSessions({ now: () => 0 }, { ofPerson: 3, ofNamespace: 5, ofNode: 7 })
    using all = new DisposableStack()
    const hold = (uid: string, identity: string, tenant_id?: string): boolean => {
      const one = session(uid, identity, ended, tenant_id)
      all.use(held.add(one))
      return held.hold(one) !== undefined
    }
    for (const uid of ['a1', 'a2', 'a3']) expect(hold(uid, 'user a')).toBe(true)
    expect(hold('a4', 'user a')).toBe(true)
    expect(ended).toEqual(['a1'])
    for (const uid of ['b1', 'b2']) hold(uid, 'user b')
    expect(hold('c1', 'user c')).toBe(false)
    expect(hold('d1', 'user d', 'elsewhere')).toBe(true)
    expect(ended).toEqual(['a1'])
    expect(limits.ofPerson).toBeLessThanOrEqual(limits.ofNamespace)
  })

  test('is for others, too, when somebody with many namespaces takes all places', () => {
    const ended: string[] = []
    const held = heldSessions({ now: () => 0 }, { ofPerson: 3, ofNamespace: 3, ofNode: 9 })
    using all = new DisposableStack()
    const hold = (uid: string, tenant_id: string): boolean => {
      const one = session(uid, 'user a', ended, tenant_id)
      all.use(held.add(one))
      return held.hold(one) !== undefined
    }
    for (const tenant of ['x', 'y', 'z']) for (const at of [1, 2, 3]) hold(`${tenant}${at}`, tenant)
    expect(held.count).toBe(9)
    // Each namespace gets as much as the fullest of the others, which gives up its oldest.
    expect([hold('h1', 'harbour'), hold('h2', 'harbour'), hold('h3', 'harbour')]).toEqual([true, true, false])
    expect(ended).toEqual(['x1', 'y1'])
    expect(held.count).toBe(9)
  })

  test('of unknown people who share an account is not ended by others, of the account or elsewhere', () => {
    const ended: string[] = []
    const held = heldSessions({ now: () => 0 }, { ofPerson: 2, ofNamespace: 5, ofNode: 7 })
    using all = new DisposableStack()
    const hold = (uid: string, device_uid: string): boolean => {
      const one = session(
        uid,
        identityOf({ kind: 'unknown', id: '', name: '' }, undefined),
        ended,
        'harbour',
        device_uid,
      )
      all.use(held.add(one))
      return held.hold(one) !== undefined
    }
    expect([hold('g1', 'gantry'), hold('g2', 'gantry'), hold('g3', 'gantry')]).toEqual([true, true, false])
    expect([hold('w1', 'winch'), hold('w2', 'winch')]).toEqual([true, true])
    expect(ended).toEqual([])
  })

  test('is not passed by many connections that are lost at the same moment', () => {
    const ended: string[] = []
    const held = heldSessions({ now: () => 0 }, { ofPerson: 3, ofNamespace: 5, ofNode: 7 })
    using all = new DisposableStack()
    const uids = Array.from({ length: 20 }, (_, at) => `a${at}`)
    // None of them has ended before the last one is lost.
    for (const uid of uids) {
      const one = session(uid, 'user a', ended)
      all.use(held.add(one))
      held.hold(one)
    }
    expect(held.count).toBe(3)
    expect(ended).toEqual(uids.slice(0, -3))
  })

  test('is for nobody whom nothing tells apart from others, but by a key or a name', () => {
    const unknown = { kind: 'unknown', id: '', name: '' } as const
    const named = { kind: 'user', id: 'key SHA256:x', name: '' } as const
    const all = [
      identityOf(unknown, undefined),
      identityOf(unknown, 'SHA256:x'),
      identityOf(named, 'SHA256:x'),
      identityOf({ ...named, kind: 'certificate' }, 'SHA256:x', 'one authority'),
      identityOf({ ...named, kind: 'certificate' }, 'SHA256:x', 'another authority'),
      identityOf({ ...named, kind: 'certificate' }, 'SHA256:y', 'one authority'),
      identityOf({ ...named, kind: 'api-key' }, undefined),
    ]
    expect(new Set(all).size).toBe(all.length)
  })
})
