// Who opened a session: the owner of the key, whom a certificate names, or nobody who is known; and how they
// came, with real clients.
import { copyFileSync, globSync } from 'node:fs'
import path from 'node:path'
import { afterAll, beforeAll, describe, expect, test } from 'vitest'
import { sample } from '@hawser/contract/examples'
import type { Session } from '@hawser/contract/sessions'
import { verifyFile } from '../../server/src/commands/verify-recording.ts'
import { keygen, run } from '../../ssh/test/programs.ts'
import { eventually, sharedWay, type How } from './way.ts'

const way = sharedWay()
const nobody = { kind: 'unknown', id: '', name: '' }

beforeAll(async () => {
  for (const name of ['oskars', 'authority', 'holder']) await keygen(way.where, name, '-t', 'ed25519')
  await way.register('oskars', { name: 'laptop of oskar', owner: sample.operator.username })
  await way.register('authority', { certificate_authority: true })
})

const sha256 = async (key: string): Promise<string> =>
  (await run('ssh-keygen', ['-l', '-f', way.where.file(`${key}.pub`)])).stdout.toString().split(' ')[1] ?? ''

/** The session of such a login. */
async function after(how: How): Promise<Session> {
  const { uid } = await way.newest()
  const { status, stderr } = await way.ssh('true', how)
  expect([status, stderr]).toEqual([0, ''])
  const session = await way.newest()
  expect(session.uid).not.toBe(uid)
  return session
}

describe('a session of plain ssh', () => {
  test('with the device’s password is nobody’s, and says how the client calls itself', async () => {
    const session = await after(way.saying(way.user.password))
    expect(session).toMatchObject({ person: nobody, via: 'ssh', method: 'password' })
    expect(session.client).toMatch(/^SSH-2\.0-OpenSSH_/)
    expect(session).not.toHaveProperty('key')
  })

  test('with a key that has no owner is nobody’s, and names the key', async () => {
    expect(await after({})).toMatchObject({
      person: nobody,
      via: 'ssh',
      method: 'publickey',
      key: { name: 'olga', fingerprint: await sha256('olga') },
    })
  })

  test('with a key that has an owner is the owner’s', async () => {
    expect(await after({ key: 'oskars' })).toMatchObject({
      person: { kind: 'user', id: sample.operator.id, name: 'oskar' },
      via: 'ssh',
      method: 'publickey',
      key: { name: 'laptop of oskar', fingerprint: await sha256('oskars') },
    })
    const { entries } = (await way.owner.audit.list({ query: { action: 'session.opened', limit: 1 } })).body
    expect(entries[0]).toMatchObject({
      actor: { kind: 'user', name: sample.operator.username },
      detail: { method: 'publickey', via: 'ssh' },
    })
  })

  test.each([
    ['the key id of the certificate names the person', 'petra@example.com', 'petra@example.com'],
    ['without what a terminal would take for more than text', 'petra\u001b[2J\u202e', 'petra?[2J?'],
  ])('with a certificate: %s', async (_, id, name) => {
    for (const end of ['', '.pub'])
      copyFileSync(way.where.file(`holder${end}`), way.where.file(`certified${end}`))
    const words = ['-q', '-s', way.where.file('authority'), '-I', id, '-n', way.user.name]
    expect((await run('ssh-keygen', [...words, way.where.file('certified.pub')])).status).toBe(0)
    expect(await after({ key: 'certified' })).toMatchObject({
      person: { kind: 'certificate', id: name, name },
      method: 'certificate',
      key: { name: 'authority', fingerprint: await sha256('holder') },
    })
  })
})

describe('a namespace that demands a known person', () => {
  const settings = (require_person: boolean) =>
    way.owner.namespaces.edit({ params: { tenant: sample.tenant }, body: { settings: { require_person } } })
  beforeAll(() => settings(true))
  afterAll(() => settings(false))

  const whatToDo = /requires an identified user: use hawser ssh .*owner of your public key/
  /** No session comes of it, and the log says why. */
  async function refusedFor(how: How): Promise<string> {
    const { uid } = await way.newest()
    const { status, stdout, stderr } = await way.ssh('echo in', { ...how, settings: ['LogLevel=INFO'] })
    expect([status, stdout.toString()]).toEqual([255, ''])
    expect((await way.newest()).uid).toBe(uid)
    return stderr
  }
  /** The log's last line about a refused login is for this reason. */
  const logged = (reason: string, rule?: string): Promise<void> =>
    eventually(() => {
      const last = way.service
        .log()
        .split('\n')
        .findLast((line) => line.includes('"event":"login.refused"'))
      expect(JSON.parse(last ?? '{}')).toMatchObject({ reason, ...(rule === undefined ? {} : { rule }) })
    })

  test('says what to do to whoever has the right password, and the usual words to everybody else', async () => {
    expect(await refusedFor(way.saying(way.user.password))).toMatch(whatToDo)
    await logged('person-required')
    for (const how of [way.saying('wrong'), { ...way.saying(way.user.password), device: 'dinghy' }]) {
      const stderr = await refusedFor(how)
      expect(stderr).not.toMatch(whatToDo)
      expect(stderr).toContain('is offline or cannot be reached, or does not let you in with this password')
    }
  })

  test('says what to do to the holder of a key without an owner, and tries the next key', async () => {
    expect(await refusedFor({})).toMatch(whatToDo)
    await logged('person-required', 'olga')
    const both = { settings: ['LogLevel=INFO', `IdentityFile=${way.where.file('olga')}`], key: 'oskars' }
    const { status, stderr } = await way.ssh('true', both)
    expect([status, stderr]).toEqual([0, expect.stringMatching(whatToDo)])
    expect(await way.newest()).toMatchObject({ person: { name: 'oskar' } })
  })

  test('says nothing of it to a key that it does not know', async () => {
    expect(await refusedFor({ key: 'holder' })).not.toMatch(whatToDo)
  })

  test('lets in owners of keys, and whom a certificate names; not one that names nobody', async () => {
    await after({ key: 'oskars' })
    for (const end of ['', '.pub'])
      copyFileSync(way.where.file(`holder${end}`), way.where.file(`named${end}`))
    const certify = (id: string) => {
      const words = ['-q', '-s', way.where.file('authority'), '-I', id, '-n', way.user.name]
      return run('ssh-keygen', [...words, way.where.file('named.pub')])
    }
    await certify('petra')
    await after({ key: 'named' })
    await certify('  ')
    expect(await refusedFor({ key: 'named' })).toMatch(whatToDo)
  })
})

test('a recording says who it was, also to whoever has nothing but the file', async () => {
  for (const [key, person] of [
    ['oskars', 'oskar'],
    ['olga', ''],
  ] as const) {
    expect((await way.ssh('echo ropes', { key, flags: ['-tt'] })).status).toBe(0)
    const { uid } = await way.newest()
    const terminals = await eventually(async () => {
      const { body } = await way.owner.recordings.list({ params: { uid } })
      expect(body).toMatchObject([{ ending: 'closed' }])
      return body
    })
    expect(terminals).toMatchObject([{ person }])
    const [file = ''] = globSync(`**/${uid}/0.journal`, { cwd: way.service.folder })
    const { sound, lines } = await verifyFile(path.join(way.service.folder, file), undefined)
    expect([sound, lines]).toEqual([true, expect.arrayContaining([`Person: ${person || 'unknown'}`])])
  }
})

describe('on the device', () => {
  const person = async (how: How): Promise<string> =>
    (await way.ssh('echo "<$HAWSER_PERSON>"', how)).stdout.toString()

  test('programs get the person, and nothing of somebody unknown or of what the client says', async () => {
    expect(await person({ key: 'oskars' })).toBe('<oskar>\n')
    expect(await person({})).toBe('<>\n')
    for (const key of ['oskars', 'olga']) {
      const said = { key, settings: ['SetEnv=HAWSER_PERSON=mallory HAWSER_ENV_HAWSER_PERSON=mallory'] }
      expect(await person(said)).toBe(key === 'oskars' ? '<oskar>\n' : '<>\n')
    }
  })

  test('no namespace can let clients name themselves', async () => {
    const params = { tenant: sample.tenant }
    for (const name of ['HAWSER_PERSON', 'HAWSER_*'])
      await expect(
        way.owner.namespaces.edit({ params, body: { settings: { accept_env: [name] } } }),
      ).rejects.toMatchObject({ status: 400 })
  })
})

test('an owner who has left cannot log in with a key that was added at that moment', async () => {
  await keygen(way.where, 'late', '-t', 'ed25519')
  await way.register('late', { owner: sample.careful.username })
  await after({ key: 'late' })
  // As if the key was added while the membership ended.
  await way.service.rooms.stores.namespaces.removeMember(sample.tenant, sample.careful.id)
  const { status, stderr } = await way.ssh('true', { key: 'late' })
  expect([status, stderr]).toEqual([255, expect.stringContaining('Permission denied')])
})

test('a session that goes on ends when its person is removed from the namespace; those of others go on', async () => {
  const mine = way.ssh('echo in; sleep 600', { key: 'oskars', settings: ['LogLevel=INFO'] })
  const others = way.ssh('echo in; sleep 600', {})
  const running = () => [...way.service.reach.sessions.values()]
  await eventually(() => expect(running()).toHaveLength(2))
  await way.owner.namespaces.removeMember({ params: { tenant: sample.tenant, uid: sample.operator.id } })
  expect((await mine).stderr).toContain('You are no longer a member of the namespace.')
  expect(running().map(({ person }) => person)).toEqual([nobody])
  for (const session of running()) session.end('The test is over.')
  await others
})
