// A gateway takes terminals over from agents that answer over SSH, in memory: what it asks of them, what becomes of
// the record, and what it believes of their answers.
import { generateKeyPairSync } from 'node:crypto'
import { duplexPair } from 'node:stream'
import { afterEach, describe, expect, test, vi } from 'vitest'
import { attachSubsystem, detachText, detachVariable } from '@hawser/contract/tunnel'
import { acceptConnection, generatePrivateKey, privateKeyFrom, readRequest } from '@hawser/ssh'
import type { Reachable } from '../../domain/access/logins.ts'
import type { ClaimAnswer } from '../../domain/sessions/detached-sessions.ts'
import { takeOver, type Handed, type TakeOverParts } from './take-over.ts'

afterEach(() => void vi.useRealTimers())

const hostKey = generateKeyPairSync('ed25519')
const gatewayKey = generatePrivateKey('ed25519')
const [uid, secret] = ['1'.repeat(64), '2'.repeat(64)]
const until = '2030-01-01T00:00:00.000Z'
const by = { source: '192.0.2.1', via: 'ssh' } as const
const head: object = { columns: 80, rows: 24, bytes: 4, whole: true }

/** An agent that lets the gateway in, and gives it a terminal with this head and this output. */
function agent({ answers = true, accepts = true, silent = false, output = 'kept', told = head } = {}) {
  const asked: string[] = []
  const closed = Promise.withResolvers<void>()
  const ended = Promise.withResolvers<void>()
  const openSsh = async () => {
    const [near, far] = duplexPair()
    void acceptConnection(far, {
      hostKeys: [privateKeyFrom(hostKey.privateKey)],
      methods: ['publickey'],
      authenticate: async () => (accepts ? 'accept' : 'refuse'),
      channelTypes: ['session'],
    }).then(
      async (connection) => {
        void connection.ended.then(() => ended.resolve())
        for await (const opening of connection.channels) {
          const channel = opening.accept()
          void channel.closed.then(() => closed.resolve())
          for await (const { type, payload, reply } of channel.requests) {
            const request = readRequest(type, payload)
            asked.push(request.type === 'env' ? `${request.name} ${request.value}` : request.type)
            if (request.type === 'subsystem') asked.push(request.name)
            if (silent) continue
            reply(answers)
            if (!answers || request.type !== 'subsystem') continue
            await channel.write(Buffer.from(JSON.stringify(told)), 1)
            await channel.write(Buffer.from(output))
          }
        }
      },
      () => ended.resolve(),
    )
    return near
  }
  return { asked, closed: closed.promise, ended: ended.promise, openSsh }
}

function place(from: ReturnType<typeof agent>, claim: Partial<Record<'claim' | 'take', ClaimAnswer>>) {
  const noted: string[] = []
  const handed: Handed[] = []
  const parts = {
    log: new Proxy({}, { get: () => () => undefined }),
    detachSecret: () => secret,
    detached: { claim: async () => claim.claim, take: async () => claim.take },
    letGo: async (node: string) => void noted.push(`let go, ${node}`),
    run: (...[, , , , given]: Parameters<TakeOverParts['run']>) => void handed.push(given),
    findTunnel: async () => ({ features: new Set(), openSsh: from.openSsh }),
    spares: { take: () => undefined, has: () => false, refill: () => undefined },
    signer: { open: () => ({ known: async () => undefined, [Symbol.dispose]: () => undefined }) },
    gatewayKey: async () => gatewayKey,
  } as unknown as TakeOverParts
  const to = {
    namespace: { reconnect_grace_s: 0 },
    device: {
      uid: 'd',
      tenant_id: 't',
      public_key: hostKey.publicKey.export({ type: 'spki', format: 'pem' }),
      mustProve: false,
      enrolment_key: null,
      info_version: 'v9.0.0',
      info_platform: 'native',
    },
  } as unknown as Reachable
  const stopping = new AbortController()
  const answer = (state: 'left' | 'over', node = ''): ClaimAnswer =>
    ({
      state,
      session: { uid, username: 'root', until: Date.parse(until), node },
      record: {
        leave: (held_until: string) => void noted.push(`left until ${held_until}`),
        finish: () => void noted.push('finished'),
      },
    }) as unknown as ClaimAnswer
  const take = async (who?: typeof by) => takeOver(parts, to, uid, stopping.signal, who)
  return { claim, noted, handed, answer, take }
}
/** A session that no node has, by its record. */
function left(from: ReturnType<typeof agent>, node = '') {
  const one = place(from, {})
  one.claim.claim = one.answer('left')
  one.claim.take = one.answer('left', node)
  return one
}

test('a terminal is asked for with the secret of the installation, and comes with what was kept of it', async () => {
  const from = agent()
  const { take, handed, noted } = left(from)
  expect(await take()).toBe('held')
  expect(from.asked).toEqual([
    `${detachVariable} ${detachText({ id: uid, secret, grace_s: 1 })}`,
    'subsystem',
    attachSubsystem,
  ])
  const [given] = handed
  expect([given?.columns, given?.rows, String(given?.output), given?.isWhole]).toEqual([80, 24, 'kept', true])
  expect(noted).toEqual([])
})

describe('a session that another node has', () => {
  test('stays there until its person reattaches here, for whom the other node lets it go', async () => {
    const from = agent()
    const { take, claim, noted } = left(from, 'node 1')
    claim.claim = { state: 'elsewhere' }
    expect(await take()).toBe('elsewhere')
    expect([from.asked, noted]).toEqual([[], []])
    expect(await take(by)).toBe('held')
    expect(noted).toEqual(['let go, node 1'])
  })

  test('is not asked for at a node when none has it', async () => {
    const { take, noted } = left(agent())
    expect(await take(by)).toBe('held')
    expect(noted).toEqual([])
  })
})

test('a terminal whose session is over is hung up, and nobody gets it', async () => {
  const from = agent()
  const { take, claim, answer, handed } = left(from)
  claim.claim = answer('over')
  expect(await take()).toBe('over')
  await from.closed
  expect(handed).toEqual([])
})

test('a session whose terminal the agent has no more is over', async () => {
  const { take, noted, handed } = left(agent({ answers: false }))
  expect(await take()).toBe('over')
  expect([noted, handed]).toEqual([['finished'], []])
})

describe('the record stays open for another try', () => {
  test('where the agent refuses the login of the server', async () => {
    const from = agent({ accepts: false })
    const { take, noted } = left(from)
    await expect(take()).rejects.toThrow('rejected the login')
    expect(noted).toEqual([`left until ${until}`])
  })

  test('where the agent answers nothing, after half a minute', async () => {
    vi.useFakeTimers({ toFake: ['setTimeout', 'clearTimeout'] })
    const from = agent({ silent: true })
    const { take, noted } = left(from)
    const taken = take().catch((error: unknown) => error)
    for (let turn = 0; !from.asked.includes(attachSubsystem) && turn < 10_000; turn += 1)
      await new Promise(setImmediate)
    await vi.advanceTimersByTimeAsync(30_000)
    expect(await taken).toBeInstanceOf(Error)
    expect(noted).toEqual([`left until ${until}`])
    await from.ended
  })

  test.each([
    ['no columns', { ...head, columns: 0 }],
    ['too many rows', { ...head, rows: 65_536 }],
    ['text for a size', { ...head, rows: '24' }],
    ['more output than an agent keeps', { ...head, bytes: 1024 * 1024 + 1 }],
    ['less output than none', { ...head, bytes: -1 }],
    ['nothing', null as unknown as object],
  ])('where a device reports %s', async (_, told) => {
    const from = agent({ told })
    const { take, noted, handed } = left(from)
    await expect(take()).rejects.toThrow()
    expect([noted, handed]).toEqual([[`left until ${until}`], []])
    await from.ended
  })
})

test('the output of an older agent, which does not say how much it is, comes after it', async () => {
  const { take, handed } = left(agent({ told: { columns: 80, rows: 24 } }))
  expect(await take()).toBe('held')
  expect([handed[0]?.output.length, handed[0]?.isWhole]).toEqual([0, false])
  expect(String((await handed[0]!.channel.read())?.bytes)).toBe('kept')
})
