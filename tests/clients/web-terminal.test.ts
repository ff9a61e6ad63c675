// Terminals of a browser on a real device, by the messages of both protocols: what is typed
// arrives, what is shown comes back, by password and by keys that real WebCrypto signs with; the session is
// one like any other, with its record, its recording, its announcement and its end.
import { generateKeyPairSync, randomUUID } from 'node:crypto'
import { describe, expect, test } from 'vitest'
import { sample } from '@hawser/contract/examples'
import { mostUnshown_bytes } from '@hawser/contract/terminals'
import { blobOf, fingerprintMd5, publicKeyLine } from '@hawser/ssh'
import { startAgent } from '../harness/agent.ts'
import { eventually, longestWait_ms } from '../harness/eventually.ts'
import { apiOf, dial, openQuarters, sharedQuarters, terminal, ticket, type Dialled } from './web.ts'

const quarters = sharedQuarters()
/** A new size and what is typed after it take different ways, so that one asks until it has arrived. */
const asking = async (ask: () => void, shell: Dialled, answer: string): Promise<void> =>
  eventually(
    () => {
      if (!shell.text().includes(answer)) ask()
      expect(shell.text()).toContain(answer)
    },
    longestWait_ms,
    200,
  )
const over = async (uid: string) => {
  const api = await apiOf(quarters())
  return eventually(async () => {
    const { body } = await api.sessions.get({ params: { uid } })
    expect(body.active).toBe(false)
    return body
  })
}

describe('a terminal', () => {
  test('shows what is typed and what comes of it, in its size, and ends with the shell', async () => {
    const { user } = quarters()
    const [opened, uid] = await terminal(quarters(), {
      cols: 91,
      rows: 31,
      headers: { 'user-agent': 'Mozilla/5.0 (test)' },
    })
    using shell = opened
    shell.type('stty size; whoami; echo $TERM; echo "über $((40+2))"\r')
    await shell.until(/31 91[^]*xterm-256color[^]*über 42/)
    expect(shell.text()).toContain(user.name)
    shell.say({ kind: 'resize', width: 120, height: 40 })
    await asking(() => shell.type('stty size\r'), shell, '40 120')
    const api = await apiOf(quarters())
    expect((await api.sessions.get({ params: { uid } })).body).toMatchObject({
      active: true,
      authenticated: true,
      ip_address: '127.0.0.1',
      person: { kind: 'user', id: sample.observer.id, name: sample.observer.username },
      via: 'browser',
      method: 'password',
      client: 'Mozilla/5.0 (test)',
    })
    shell.type('exit\r')
    expect(await shell.closed).toBe(1000)
    expect(shell.news.filter(({ kind }) => kind === 'end')).toEqual([])
    expect(await over(uid)).toMatchObject({
      type: 'shell',
      term: 'xterm-256color',
      username: user.name,
      recorded: true,
    })
    const owner = await apiOf(quarters(), 'owner')
    const { body } = await owner.sessions.play({ params: { uid } })
    expect(body.map(({ message }) => message).join('')).toContain('über 42')
  })

  test('of the old protocol shows text and takes bytes as numbers and as base64', async () => {
    const { service, agent, user } = quarters()
    const api = await apiOf(quarters())
    const { body } = await api.terminals.openOld({
      body: { device: agent.uid, username: user.name, password: user.password },
    })
    using shell = await dial(service, body.token)
    shell.say({ kind: 1, data: [...Buffer.from('echo "alt $((6*7)) ü"')] })
    const type = (text: string) => shell.say({ kind: 1, data: Buffer.from(text).toString('base64') })
    type('\r')
    await shell.until('alt 42 ü')
    shell.say({ kind: 2, data: { cols: 100, rows: 30 } })
    await asking(() => type('stty size\r'), shell, '30 100')
    expect(shell.news).toEqual([])
    using refused = await dial(
      service,
      (await api.terminals.openOld({ body: { device: agent.uid, username: user.name, password: 'wrong' } }))
        .body.token,
    )
    await refused.until('The user name or the password is wrong.')
    expect(await refused.closed).toBe(1008)
  })

  test('is recorded with the browser’s address, as a trusted proxy names it, and the device hears of it', async () => {
    const [opened, uid] = await terminal(quarters(), { headers: { 'x-real-ip': '192.0.2.77' } })
    using shell = opened
    shell.type('echo "from $SSH_CLIENT"\r')
    await shell.until('from 192.0.2.77 0')
    const api = await apiOf(quarters())
    expect((await api.sessions.get({ params: { uid } })).body.ip_address).toBe('192.0.2.77')
  })

  test('that an administrator closes says so; one that the browser leaves is over, too', async () => {
    const owner = await apiOf(quarters(), 'owner')
    const [first, uid] = await terminal(quarters())
    using shell = first
    await owner.sessions.close({ params: { uid }, body: { device: quarters().agent.uid } })
    expect(await shell.hear('end')).toBe('The session was closed by an administrator.')
    expect(await shell.closed).toBe(1000)
    const [second, other] = await terminal(quarters())
    second.close(1000)
    await over(other)
    expect(quarters().service.reach.sessions.has(other)).toBe(false)
  })

  test('can be watched while it goes on', async () => {
    const { service } = quarters()
    const [opened, uid] = await terminal(quarters())
    using shell = opened
    shell.type('echo lighthouse-$((1+1))\r')
    await shell.until('lighthouse-2')
    const seen: string[] = []
    const { token } = (await (await apiOf(quarters(), 'owner')).sessions.ticket({ params: { uid } })).body
    const viewer = new WebSocket(
      `${service.url.replace('http', 'ws')}/api/sessions/${uid}/live?ticket=${token}`,
    )
    viewer.binaryType = 'arraybuffer'
    viewer.addEventListener(
      'message',
      ({ data }) => void (typeof data !== 'string' && seen.push(Buffer.from(data as ArrayBuffer).toString())),
    )
    await eventually(() => expect(seen.join('')).toContain('lighthouse-2'))
    viewer.close()
  })

  test('shows the announcement of the namespace first', async () => {
    const owner = await apiOf(quarters(), 'owner')
    const settings = { connection_announcement: 'Mind the gap.' }
    await owner.namespaces.edit({ params: { tenant: sample.tenant }, body: { settings } })
    const [opened] = await terminal(quarters())
    using shell = opened
    await shell.until('Mind the gap.\r\n')
    await owner.namespaces.edit({
      params: { tenant: sample.tenant },
      body: { settings: { connection_announcement: '' } },
    })
  })

  test('that does not keep up is not sent more than it can show', async () => {
    const [opened] = await terminal(quarters())
    using shell = opened
    shell.say({ kind: 'shown', bytes: 0 })
    shell.type('head -c 3000000 /dev/zero | tr "\\0" x; echo; echo don"e"\r')
    const received = (): number => Buffer.byteLength(shell.text())
    await eventually(() => expect(received()).toBeGreaterThan(mostUnshown_bytes))
    // A few more pieces may be on their way; then it waits.
    let [last, same] = [0, 0]
    await eventually(() => {
      same = received() === last ? same + 1 : 0
      last = received()
      expect(same).toBeGreaterThan(10)
    })
    expect(last).toBeLessThan(mostUnshown_bytes + 300_000)
    expect(shell.text()).not.toContain('done')
    const showing = setInterval(() => shell.say({ kind: 'shown', bytes: received() }), 5)
    await shell.until('done')
    clearInterval(showing)
    expect(received()).toBeGreaterThan(3_000_000)
  })

  test('takes far more than fits on the way, from a browser that also has to say what it has shown', async () => {
    const [opened] = await terminal(quarters())
    using shell = opened
    shell.say({ kind: 'shown', bytes: 0 })
    shell.type('stty raw -echo; echo ready-$((1+1)); head -c 6000000; echo done-$((1+1))\r')
    await shell.until('ready-2')
    for (let sent = 0; sent < 6_000_000; sent += 4000) shell.type('y'.repeat(4000))
    const showing = setInterval(
      () => shell.say({ kind: 'shown', bytes: Buffer.byteLength(shell.text()) }),
      50,
    )
    await shell.until('done-2')
    clearInterval(showing)
    expect(shell.text().match(/y/g)!.length).toBeGreaterThanOrEqual(6_000_000)
  })

  test('is for its person only while they are a member and sign in as they did', async () => {
    const { service } = quarters()
    const tickets = service.rooms.tickets
    const signIn = randomUUID()
    const holder = {
      user_id: sample.operator.id,
      username: 'oskar',
      tenant_id: sample.tenant,
      epoch: 1,
      token_id: `${signIn}.one`,
    }
    expect(await tickets.holds(holder)).toBe(false)
    const now = new Date(service.clock.now()).toISOString()
    await service.rooms.stores.signIns.insert({
      id: signIn,
      user_id: sample.operator.id,
      agent: '',
      source: '192.0.2.9',
      created_at: now,
      used_from: '192.0.2.9',
      used_at: now,
      expires_at: new Date(service.clock.now() + 3_600_000).toISOString(),
    })
    expect(await tickets.holds(holder)).toBe(true)
    await service.rooms.stores.users.save(sample.operator.id, { epoch: 2, kept_token: holder.token_id })
    expect(await tickets.holds(holder)).toBe(true)
    expect(await tickets.holds({ ...holder, token_id: `${signIn}.two` })).toBe(false)
    await service.rooms.stores.users.save(sample.operator.id, { epoch: 1, kept_token: null })
    const owner = await apiOf(quarters(), 'owner')
    await owner.namespaces.removeMember({ params: { tenant: sample.tenant, uid: sample.operator.id } })
    expect(await tickets.holds(holder)).toBe(false)
    expect(await tickets.holds({ ...holder, user_id: sample.observer.id, epoch: 2 })).toBe(false)
  })
})

test('a device that is lost and a server that stops end the terminal with a sentence', async () => {
  await using own = await openQuarters()
  await (
    await apiOf(own, 'owner')
  ).namespaces.edit({
    params: { tenant: sample.tenant },
    // Where sessions are held, a page is told nothing and comes back.
    body: { settings: { reconnect_grace_s: 1, hold_sessions: 0 } },
  })
  const [first] = await terminal(own)
  using lost = first
  own.agent.kill('SIGKILL')
  await lost.until('The connection to harbour.gantry was lost.')
  expect(await lost.hear('end')).toBe('The connection to harbour.gantry was lost.')
  await using another = await startAgent(own.service, { hostname: 'winch' })
  const [second] = await terminal(own, {}, { device: another.uid })
  using stopped = second
  const stopping = own.service[Symbol.asyncDispose]()
  expect(await stopped.hear('end')).toBe('The server is stopping.')
  await stopped.closed
  await stopping
})

test('the limits of sessions hold: one that is idle ends, and one more than a source may have is refused', async () => {
  await using own = await openQuarters({ env: { HAWSER_SSH_IDLE: '2', HAWSER_SSH_PER_SOURCE: '1' } })
  const [first] = await terminal(own)
  using idle = first
  using second = await dial(own.service, await ticket(own))
  expect(await second.hear('end')).toBe('Too many sessions from your address.')
  expect(await idle.hear('end')).toBe('The session was idle for too long.')
  await idle.closed
  // There is room again when everything of it is closed.
  const token = await eventually(async () => {
    const given = await ticket(own)
    using third = await dial(own.service, given)
    await eventually(() => expect(third.news.length).toBeGreaterThan(0))
    expect(third.news[0]!.kind).toBe('session')
    return given
  })
  expect(own.service.log()).toContain('terminal.opened')
  for (const secret of [own.user.password, token]) expect(own.service.log()).not.toContain(secret)
})

describe('a private key stays in the browser', () => {
  const kinds = {
    rsa: generateKeyPairSync('rsa', { modulusLength: 2048 }),
    ed25519: generateKeyPairSync('ed25519'),
    'P-256': generateKeyPairSync('ec', { namedCurve: 'P-256' }),
    'P-384': generateKeyPairSync('ec', { namedCurve: 'P-384' }),
    'P-521': generateKeyPairSync('ec', { namedCurve: 'P-521' }),
  } as const
  type Name = keyof typeof kinds
  const line = (name: Name): string => {
    const blob = blobOf(kinds[name].publicKey)
    return publicKeyLine(blob.subarray(4, 4 + blob.readUInt32BE(0)).toString(), blob)
  }
  const register = async (name: Name, username = '.*'): Promise<void> => {
    const owner = await apiOf(quarters(), 'owner')
    const data = Buffer.from(line(name)).toString('base64')
    await owner.publicKeys.create({ body: { data, name, username, filter: { hostname: '.*' } } })
  }

  /** As the browser does it. */
  async function sign(name: Name, asked: Buffer, hash?: string): Promise<Buffer> {
    const challenge = new Uint8Array(asked)
    const pkcs8 = kinds[name].privateKey.export({ type: 'pkcs8', format: 'der' })
    const { subtle } = globalThis.crypto
    if (name === 'rsa') {
      const key = await subtle.importKey(
        'pkcs8',
        pkcs8,
        { name: 'RSASSA-PKCS1-v1_5', hash: hash ?? 'SHA-512' },
        false,
        ['sign'],
      )
      return Buffer.from(await subtle.sign('RSASSA-PKCS1-v1_5', key, challenge))
    }
    if (name === 'ed25519') {
      const key = await subtle.importKey('pkcs8', pkcs8, 'Ed25519', false, ['sign'])
      return Buffer.from(await subtle.sign('Ed25519', key, challenge))
    }
    const key = await subtle.importKey('pkcs8', pkcs8, { name: 'ECDSA', namedCurve: name }, false, ['sign'])
    const hashes = { 'P-256': 'SHA-256', 'P-384': 'SHA-384', 'P-521': 'SHA-512' } as const
    const pair = Buffer.from(await subtle.sign({ name: 'ECDSA', hash: hashes[name] }, key, challenge))
    return Buffer.concat([mpint(pair.subarray(0, pair.length / 2)), mpint(pair.subarray(pair.length / 2))])
  }

  const mpint = (bytes: Buffer): Buffer => {
    let at = 0
    while (at < bytes.length - 1 && bytes[at] === 0) at += 1
    const number =
      bytes[at]! >= 0x80 ? Buffer.concat([Buffer.alloc(1), bytes.subarray(at)]) : bytes.subarray(at)
    const head = Buffer.alloc(4)
    head.writeUInt32BE(number.length)
    return Buffer.concat([head, number])
  }

  const begin = async (name: Name, by: object = { public_key: line(name) }): Promise<[Dialled, Buffer]> => {
    const shell = await dial(quarters().service, await ticket(quarters(), { password: undefined, ...by }))
    return [shell, Buffer.from(await shell.hear('sign'), 'base64')]
  }

  test.each(['rsa', 'ed25519', 'P-256', 'P-384', 'P-521'] as const)(
    '%s logs in with what WebCrypto signs',
    async (name) => {
      await register(name)
      const [opened, challenge] = await begin(name)
      using shell = opened
      expect(challenge.includes(Buffer.from(`${quarters().user.name}@${quarters().agent.uid}`))).toBe(true)
      shell.say({ kind: 'signature', signature: (await sign(name, challenge)).toString('base64') })
      await shell.hear('session')
      shell.type('echo key-$((1+1))\r')
      await shell.until('key-2')
    },
  )

  test('the fingerprint alone names it, as clients of the interface do', async () => {
    const [opened, challenge] = await begin('ed25519', {
      fingerprint: fingerprintMd5(blobOf(kinds.ed25519.publicKey)),
    })
    using shell = opened
    shell.say({ kind: 'signature', signature: (await sign('ed25519', challenge)).toString('base64') })
    await shell.hear('session')
  })

  test('SHA-1 is refused, and so are a signature of another login, another key’s and nonsense', async () => {
    const refused = async (
      name: Name,
      make: (challenge: Buffer) => Promise<Buffer | string>,
    ): Promise<unknown> => {
      const [opened, challenge] = await begin(name)
      using shell = opened
      const made = await make(challenge)
      shell.say({ kind: 'signature', signature: typeof made === 'string' ? made : made.toString('base64') })
      const sentence = await shell.hear('end')
      expect(await shell.closed).toBe(1008)
      expect(shell.news.some(({ kind }) => kind === 'session')).toBe(false)
      return sentence
    }
    expect(await refused('rsa', async (challenge) => sign('rsa', challenge, 'SHA-1'))).toContain(
      'rsa-sha2-512',
    )
    const [first, challenge] = await begin('ed25519')
    const old = await sign('ed25519', challenge)
    first[Symbol.dispose]()
    expect(await refused('ed25519', async () => old)).toContain('not one of this key')
    expect(await refused('ed25519', async (bytes) => sign('P-256', bytes))).toContain('not one of this key')
    expect(await refused('ed25519', async () => 'nonsense!')).toContain('not one of this key')
    expect(await refused('ed25519', async () => '')).toContain('not one of this key')
  })
})
