// What stands in the way of a move: names that somebody else has here, things that our rules refuse. It is
// all listed, and nothing at all is written, unless one goes on without it; then the rest comes, and nobody
// has more than they had.
import { createHash } from 'node:crypto'
import { describe, expect, test } from 'vitest'
import { sample } from '@hawser/contract/examples'
import { admin, environmentFor, hawser, run, startProgram } from '../failures/program.ts'
import { startService } from '../harness/service.ts'
import { counted, rowsOf, shellHub, target, type Target } from './fixture.ts'

const nothing = async (here: Target): Promise<void> => expect((await rowsOf(here))['devices']).toEqual([])
const json = (value: unknown): string => `${JSON.stringify(value)}\n`

describe('somebody is here already', () => {
  test('with the same name: nothing is written, until one says that it is the same person', async () => {
    using shellhub = await shellHub('relaxed')
    using here = await target('sqlite')
    await admin(here.folder, ['migrate'])
    expect(
      await admin(here.folder, ['user', 'create', 'olga', 'another-rope', 'olga@example.com']),
    ).toMatchObject({ code: 0 })
    expect(
      await admin(here.folder, ['user', 'create', 'pia', 'another-rope', 'stan@example.com']),
    ).toMatchObject({ code: 0 })
    const before = await rowsOf(here)

    const refused = await here.import(shellhub.from)
    expect([refused.code, refused.stdout]).toEqual([1, expect.stringContaining('Nothing was written.')])
    expect(refused.stdout).toContain(
      'users.json, line 1: "olga" is here already; say --same-people if it is the same person.',
    )
    expect(refused.stdout).toContain(
      'users.json, line 7: the e-mail address "stan@example.com" belongs to somebody else here',
    )
    expect(refused.stdout).toContain(
      'namespaces.json, line 2: the namespace "elsewhere" cannot be moved, with all that is in it',
    )
    expect(await rowsOf(here)).toEqual(before)

    const done = await here.import(shellhub.from, '--same-people', '--leave-out')
    expect(done).toMatchObject({ code: 0 })
    expect([counted(done.stdout, 'users'), counted(done.stdout, 'namespaces')]).toEqual([
      [5, 1, 1],
      [1, 0, 1],
    ])
    await using service = await startService({ folder: here.folder })
    const { body } = await service.api().users.login({ body: { username: 'olga', password: 'another-rope' } })
    expect(body).toMatchObject({ tenant: sample.tenant, role: 'owner' })
    await expect(service.api().users.login({ body: sample.owner })).rejects.toMatchObject({ status: 401 })
  })

  test.each([
    ['registered with', { confirmed: 0 }],
    ['changed to', { former_email: 'olga@elsewhere.example' }],
  ] as const)(
    'with an address that was %s and not confirmed: that is nobody’s proof of being the same person',
    async (_, row) => {
      using shellhub = await shellHub('relaxed')
      using here = await target('sqlite')
      await admin(here.folder, ['migrate'])
      await admin(here.folder, ['user', 'create', 'olga', 'another-rope', 'olga@example.com'])
      {
        await using service = await startService({ folder: here.folder })
        const olga = await service.rooms.stores.users.findByUsername('olga')
        await service.rooms.stores.users.save(olga?.id ?? '', row)
      }
      const { code, stdout } = await here.import(shellhub.from, '--same-people')
      expect([code, stdout]).toEqual([1, expect.stringContaining('Nothing was written.')])
      expect(stdout).toContain(
        '"olga" is here already, but has not confirmed the e-mail address "olga@example.com".',
      )
    },
  )

  test('a namespace with the same tenant gets what it has not, and keeps its owner', async () => {
    using shellhub = await shellHub('relaxed')
    using here = await target('sqlite')
    await admin(here.folder, ['migrate'])
    await admin(here.folder, ['user', 'create', 'pia', 'another-rope', 'pia@example.com'])
    await admin(here.folder, ['namespace', 'create', 'port', 'pia', sample.tenant])
    const { code, stdout } = await here.import(shellhub.from)
    expect([code, stdout]).toEqual([0, expect.stringContaining('become administrators: 1 ("harbour")')])
    const rows = await rowsOf(here)
    const owner = rows['members']!.filter((row) => (row as { role: string }).role === 'owner')
    expect(owner).toHaveLength(2)
    expect(rows['members']).toContainEqual(
      expect.objectContaining({ user_id: sample.owner.id, role: 'administrator' }),
    )
    expect(rows['namespaces']).toContainEqual(
      expect.objectContaining({ tenant_id: sample.tenant, name: 'port' }),
    )
  })

  test('a namespace, a device and an API key whose names are taken are named', async () => {
    using shellhub = await shellHub('relaxed')
    using here = await target('sqlite')
    await admin(here.folder, ['migrate'])
    await admin(here.folder, ['user', 'create', 'pia', 'another-rope', 'pia@example.com'])
    await admin(here.folder, ['namespace', 'create', 'elsewhere', 'pia'])
    shellhub.edit('devices.json', (text) =>
      text.replace('"name":"buoy"', '"name":"CRANE-1"').replace('"status":"pending"', '"status":"accepted"'),
    )
    shellhub.edit('api_keys.json', (text) => text + text.replace(/"_id":"[0-9a-f]{4}/, '"_id":"0000'))
    const { code, stdout } = await here.import(shellhub.from)
    expect(code).toBe(1)
    expect(stdout).toContain(
      'the namespace "elsewhere" cannot be moved, with all that is in it: another one has this name here',
    )
    expect(stdout).toContain(
      'devices.json, line 2: another accepted device of the namespace has the name "crane-1"',
    )
    expect(stdout).toContain('api_keys.json, line 2: another API key of the namespace has the name "backup"')
    await nothing(here)
  })
})

describe('what our rules refuse is in the way', () => {
  test('patterns, keys, rules, roles and tags; going on without them leaves out just those', async () => {
    using shellhub = await shellHub('relaxed')
    using here = await target('sqlite')
    const rule = {
      tenant_id: sample.tenant,
      action: 'deny',
      source_ip: '.*',
      username: '.*',
      filter: { hostname: '.*' },
      priority: 9,
      active: true,
    }
    const weak = Buffer.from('ssh-dss AAAAB3NzaC1kc3MAAAAA').toString('base64')
    shellhub.edit(
      'firewall_rules.json',
      (text) =>
        text + json({ ...rule, source_ip: '(a)\\1' }) + json({ ...rule, username: '((x{99}){99}){99}' }),
    )
    shellhub.edit(
      'public_keys.json',
      (text) => text + json({ tenant_id: sample.tenant, data: { $binary: { base64: weak, subType: '00' } } }),
    )
    shellhub.edit('namespaces.json', (text) => text.replace('"role":"operator"', '"role":"captain"'))
    shellhub.edit('devices.json', (text) => text.replace('"quay"', '"not a tag"'))
    const key = {
      _id: 'a'.repeat(64),
      name: 'old',
      tenant_id: sample.tenant,
      role: 'observer',
      created_by: sample.stranger.id,
    }
    shellhub.edit('api_keys.json', (text) => text + json(key))
    const refused = await here.import(shellhub.from)
    expect(refused.code).toBe(1)
    for (const sentence of [
      'firewall_rules.json, line 3: source_ip: this is not a regular expression in RE2 syntax',
      'firewall_rules.json, line 4: username: the regular expression is too large once its repetitions are written out',
      'public_keys.json, line 3: data: ',
      'namespaces.json, line 1: "captain" is no role that a member can have.',
      'devices.json, line 1: "not a tag" cannot be a tag; the device would lose it.',
      'api_keys.json, line 2: the creator of the API key "old" is no longer a member',
    ])
      expect(refused.stdout).toContain(sentence)
    await nothing(here)
    expect(await here.import(shellhub.from, '--leave-out')).toMatchObject({ code: 0 })
    const rows = await rowsOf(here)
    expect(rows['firewall_rules']).toHaveLength(2)
    expect(rows['public_keys']).toHaveLength(2)
    expect(rows['api_keys']).toHaveLength(1)
    expect(rows['devices']).toContainEqual(expect.objectContaining({ name: 'crane-1', tags: '["pier"]' }))
  })

  test('whose second factor cannot be read does not get in with the password alone', async () => {
    using shellhub = await shellHub('relaxed')
    using here = await target('sqlite')
    shellhub.edit('users.json', (text) => text.replace(sample.mfaSecret, 'sealed:0189'))
    const refused = await here.import(shellhub.from)
    expect([refused.code, refused.stdout]).toEqual([
      1,
      expect.stringContaining('the second factor of "cara" cannot be read'),
    ])
    expect(await here.import(shellhub.from, '--leave-out')).toMatchObject({ code: 0 })
    await using service = await startService({ folder: here.folder })
    await expect(service.api().users.login({ body: sample.careful })).rejects.toMatchObject({ status: 401 })
    // By an e-mail to the address they have always had.
    await service.api().users.recover({ body: { username: 'cara' } })
    expect((await service.newestEmail(sample.careful.email)).text).toContain('token=')
  })

  test('names from a dump play no tricks with the terminal', async () => {
    using shellhub = await shellHub('relaxed')
    using here = await target('sqlite')
    shellhub.edit('users.json', (text) =>
      text.replace('"username":"stan"', '"username":"s\\u001b]0;owned\\u0007\\u202etan"'),
    )
    const { stdout, code } = await here.import(shellhub.from)
    expect(code).toBe(1)
    expect(stdout).toContain('the username "s?]0;owned??tan" needs')
    // oxlint-disable-next-line no-control-regex -- this is what must not be there
    expect(stdout).not.toMatch(/[\u0000-\u0009\u000b-\u001f\u007f-\u009f\u202e]/)
  })
})

test('devices and keys of namespaces that are gone stay behind without being in the way', async () => {
  using shellhub = await shellHub('relaxed')
  using here = await target('sqlite')
  shellhub.edit(
    'devices.json',
    (text) =>
      text +
      json({ uid: 'f'.repeat(64), tenant_id: '00000000-0000-4000-8000-00000000dead', status: 'accepted' }),
  )
  const { code, stdout } = await here.import(shellhub.from)
  expect([code, counted(stdout, 'devices')]).toEqual([0, [2, 0, 1]])
  expect(stdout).toContain('Of devices: those in namespaces that are gone stay behind')
})

test('a device whose uid is not made of its key comes, and it is said that it will ask once more', async () => {
  using shellhub = await shellHub('relaxed')
  using here = await target('sqlite')
  const other = createHash('sha256').update('other').digest('hex')
  shellhub.edit('devices.json', (text) => text.replace(shellhub.uid, other))
  const { code, stdout } = await here.import(shellhub.from)
  expect([code, stdout]).toEqual([
    0,
    expect.stringContaining('they will ask to be accepted once more: 1 ("crane-1")'),
  ])
})

test('beside a running server nothing is imported', async () => {
  using shellhub = await shellHub('relaxed')
  using here = await target('sqlite')
  await using program = await startProgram({ folder: here.folder })
  expect(program.url).toMatch(/^http/)
  const { code, stdout, stderr } = await here.import(shellhub.from)
  expect([code, stdout, stderr]).toEqual([1, '', expect.stringContaining('stop it first')])
})

test('what is typed wrong is answered with the usage, and never repeats what was typed', async () => {
  using here = await target('sqlite')
  const said = async (...words: string[]) =>
    run([process.execPath, hawser, 'import', ...words], { env: environmentFor(here.folder) })
  for (const words of [[], ['--help']]) {
    const { code, stdout } = await said(...words)
    expect([code, stdout]).toEqual([0, expect.stringContaining('Usage: hawser import shellhub')])
  }
  for (const words of [
    ['shellhub'],
    ['teleport', 'x'],
    ['shellhub', 'a', 'b'],
    ['shellhub', 'a', '--sekret=x'],
  ]) {
    const { code, stderr } = await said(...words)
    expect([code, stderr]).toEqual([1, expect.stringContaining('Usage: hawser import shellhub')])
    expect(stderr).not.toContain('sekret')
  }
  const own = 'postgres://root:sekret@127.0.0.1/hawser'
  const same = await run(
    [process.execPath, hawser, 'import', 'shellhub', 'postgresql://admin@127.0.0.1:5432/hawser'],
    {
      env: environmentFor(here.folder, { HAWSER_DATABASE: own }),
    },
  )
  expect([same.code, same.stderr]).toEqual([1, expect.stringContaining('Hawser needs one of its own')])
  const mongo = await said('shellhub', 'mongodb://root:sekret@127.0.0.1/main')
  expect([mongo.code, mongo.stderr]).toEqual([
    1,
    expect.stringContaining('A folder of JSON files or the address of a PostgreSQL'),
  ])
  expect(mongo.stderr).not.toContain('sekret')
})
