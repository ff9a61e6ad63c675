// A ShellHub moves in, from each of its shapes, into each of our databases, by the real command: and then
// everybody is who they were. They sign in with the password they had, devices come back as accepted, keys and
// rules hold.
import { existsSync, readdirSync, readFileSync } from 'node:fs'
import path from 'node:path'
import { Secret, TOTP } from 'otpauth'
import { describe, expect, test } from 'vitest'
import type { Client } from '@hawser/contract/client'
import { sample } from '@hawser/contract/examples'
import { startOldAgent } from '../harness/old-agent.ts'
import { startService, type Service } from '../harness/service.ts'
import { counted, hostname, rowsOf, shellHub, target } from './fixture.ts'

const kinds = ['users', 'namespaces', 'members', 'devices', 'public keys', 'firewall rules', 'API keys']

async function signedIn(service: Service, person: { username: string; password: string }): Promise<Client> {
  const { body } = await service.api().users.login({ body: person })
  return service.api({ token: body.token })
}

async function hashOf(service: Service, username: string): Promise<string> {
  return (await service.rooms.stores.users.findByIdentifier(username))!.password
}

const ways = [
  ['relaxed', 'sqlite'],
  ['canonical', 'postgres'],
  ['postgres', 'sqlite'],
  ['postgres', 'postgres'],
] as const

describe.each(ways)('from %s into %s', (shape, database) => {
  const mongo = shape !== 'postgres'
  const moved: Record<string, number> = {
    users: mongo ? 7 : 6,
    namespaces: 2,
    members: mongo ? 6 : 5,
    devices: 2,
    'public keys': 2,
    'firewall rules': mongo ? 2 : 0,
    'API keys': 1,
  }

  test('everything that is promised moves, once, and goes on to work', async () => {
    using shellhub = await shellHub(shape)
    using here = await target(database)

    const tried = await here.import(shellhub.from, '--dry-run')
    expect([tried.code, tried.stderr, tried.stdout]).toEqual([
      0,
      '',
      expect.stringContaining('This was a dry run: nothing was written.'),
    ])
    for (const kind of kinds) expect([kind, counted(tried.stdout, kind)?.[0]]).toEqual([kind, moved[kind]])
    if (database === 'sqlite') expect(readdirSync(here.folder)).toEqual([])
    else expect((await rowsOf(here))['users']).toEqual([])

    const done = await here.import(shellhub.from)
    expect([done.code, done.stderr, done.stdout]).toEqual([0, '', expect.stringContaining('Done.')])
    for (const kind of kinds)
      expect([kind, counted(done.stdout, kind)?.slice(0, 2)]).toEqual([kind, [moved[kind], 0]])
    const rows = await rowsOf(here)

    const again = await here.import(shellhub.from)
    expect(again).toMatchObject({ code: 0, stderr: '' })
    for (const kind of kinds)
      expect([kind, counted(again.stdout, kind)?.slice(0, 2)]).toEqual([kind, [0, moved[kind]]])
    expect(await rowsOf(here)).toEqual(rows)

    await using service = await startService({ folder: here.folder, database: here.url })

    for (const log of ['', sample.tenant])
      expect(await service.rooms.auditLog.entries(log, { action: 'admin.command', limit: 9 })).toMatchObject(
        Array.from({ length: 2 }, () => ({ actor: { kind: 'admin' }, target: { id: 'import shellhub' } })),
      )

    // People: bcrypt and SHA-256 work once more, and are Argon2id from then on.
    expect(await hashOf(service, 'olga')).toMatch(/^\$2a\$10\$/)
    expect(await hashOf(service, 'adam')).toMatch(/^\$sha256\$argon2id\$/)
    await expect(
      service.api().users.login({ body: { username: 'olga', password: 'rope-and-chain' } }),
    ).rejects.toMatchObject({
      status: 401,
    })
    const olga = await signedIn(service, sample.owner)
    const adam = await signedIn(service, sample.administrator)
    for (const name of ['olga', 'adam']) expect(await hashOf(service, name)).toMatch(/^\$argon2id\$/)
    await signedIn(service, sample.owner)
    await signedIn(service, { username: sample.operator.email, password: sample.operator.password })
    await expect(
      service.api().users.login({ body: { username: 'vera', password: 'rope-and-anchor' } }),
    ).rejects.toMatchObject({
      status: 401,
    })
    await expect(
      service.api().users.login({ body: { username: 'una', password: 'rope-and-anchor' } }),
    ).rejects.toMatchObject({
      status: 403,
    })

    // Namespaces, their settings and members.
    const { body: harbour } = await olga.namespaces.get({ params: { tenant: sample.tenant } })
    expect(harbour).toMatchObject({
      name: 'harbour',
      max_devices: -1,
      created_at: '2024-03-09T08:00:00.000Z',
      settings: { session_record: true, connection_announcement: 'Mind the gap between ship and quay.' },
    })
    const roles = Object.fromEntries(harbour.members.map(({ username, role }) => [username, role]))
    expect(roles).toEqual({
      olga: 'owner',
      adam: 'administrator',
      oskar: 'operator',
      vera: 'observer',
      ...(mongo && { cara: 'observer' }),
    })
    if (mongo) expect(harbour.owner).toBe(sample.owner.id)
    const stan = await signedIn(service, sample.stranger)
    const { body: elsewhere } = await stan.namespaces.get({ params: { tenant: sample.otherTenant } })
    expect(elsewhere).toMatchObject({
      name: 'elsewhere',
      settings: { session_record: false, connection_announcement: '' },
    })

    // The device, as it was; its agent then comes as it always did, and need not be accepted.
    const { body: crane } = await olga.devices.get({ params: { uid: shellhub.uid } })
    expect(crane).toMatchObject({
      name: 'crane-1',
      status: 'accepted',
      tags: ['pier', 'quay'],
      info: {
        id: 'debian',
        pretty_name: 'Debian GNU/Linux 12 (bookworm)',
        version: 'v0.16.4',
        arch: 'amd64',
        platform: 'native',
      },
      created_at: '2024-03-11T08:00:00.000Z',
      status_updated_at: '2024-03-11T09:00:00.000Z',
      position: { latitude: 54.09, longitude: 12.14 },
      online: false,
    })
    {
      await using agent = await startOldAgent(service, {
        version: 2,
        tenant_id: sample.tenant,
        hostname,
        key: shellhub.key,
      })
      expect(agent).toMatchObject({ uid: shellhub.uid, name: 'crane-1' })
      const { body: seen } = await olga.devices.get({ params: { uid: shellhub.uid } })
      expect(seen).toMatchObject({ status: 'accepted', online: true, name: 'crane-1' })
    }
    const { body: stats } = await olga.system.stats({})
    expect(stats).toMatchObject({ registered_devices: 1, pending_devices: 1 })

    // Keys, rules and the API key, by its own text.
    const { body: keys } = await adam.publicKeys.list({ query: {} })
    expect(
      keys.map(({ name, username, filter, fingerprint }) => ({ name, username, filter, fingerprint })),
    ).toEqual([
      {
        name: 'olga at work',
        username: '^(root|deploy)$',
        filter: { hostname: '^crane' },
        fingerprint: '65:96:2d:fc:e8:d5:a9:11:64:0c:0f:ea:00:6e:5b:bd',
      },
      {
        name: 'pier crew',
        username: '.*',
        filter: { tags: ['pier'] },
        fingerprint: 'ee:fb:41:7b:e4:a3:42:78:bf:1b:2d:39:ac:00:76:fe',
      },
    ])
    const { body: rules } = await adam.firewall.list({ query: {} })
    const deny = {
      action: 'deny',
      active: true,
      priority: 1,
      source_ip: '^198\\.51\\.100\\.',
      username: '.*',
      filter: { hostname: '.*' },
    }
    const allow = {
      action: 'allow',
      active: false,
      priority: 2,
      source_ip: '.*',
      username: '^root$',
      filter: { tags: ['pier'] },
    }
    expect(rules).toEqual(mongo ? [expect.objectContaining(deny), expect.objectContaining(allow)] : [])
    const script = service.api({ apiKey: sample.apiKey })
    expect((await script.devices.list({ query: {} })).body.map(({ name }) => name).toSorted()).toEqual([
      'buoy',
      'crane-1',
    ])

    if (mongo) await secondFactor(service)
  })

  async function secondFactor(service: Service): Promise<void> {
    const refused = await service
      .api()
      .users.login({ body: sample.careful })
      .catch((error: unknown) => error as { headers: Headers })
    const token = (refused as { headers: Headers }).headers.get('x-mfa-token')!
    const code = new TOTP({ secret: Secret.fromBase32(sample.mfaSecret) }).generate({
      timestamp: service.clock.now(),
    })
    expect((await service.api().mfa.authenticate({ body: { token, code } })).body.user).toBe('cara')
    const recovered = service
      .api()
      .mfa.recover({ body: { identifier: 'cara', recovery_code: sample.recoveryCode } })
    // Those of the later version are hashes, and were said to stay behind.
    if (shape === 'relaxed') expect((await recovered).body.user).toBe('cara')
    else await expect(recovered).rejects.toMatchObject({ status: 401 })
  }
})

test('the report says what stays behind and whom it concerns, and shows no secret', async () => {
  using shellhub = await shellHub('canonical')
  using here = await target('sqlite')
  const { stdout } = await here.import(shellhub.from)
  for (const sentence of [
    'People without a password that could be moved; they set a new one by e-mail, or you do: 1 ("vera")',
    'People whose recovery codes cannot be moved; the codes of their second factor keep working: 1 ("cara")',
    'Invitations that were not answered stay behind: add these people as members',
    'Devices that were removed stay behind: 1 ("wreck")',
    'Custom fields of devices stay behind: 1 ("crane-1")',
  ])
    expect(stdout).toContain(sentence)
  expect(stdout).not.toMatch(/\$2a|JBSWY3DP|6e05981a|bd7662a5/)
  // Nor does the database have what would be worth stealing from it.
  const kept = readFileSync(path.join(here.folder, 'hawser.db')).toString('latin1')
  expect(existsSync(path.join(here.folder, 'master.key'))).toBe(true)
  for (const secret of [
    '6e05981aeffed48f4987d1f435750771f0841c3b6812bbf50f973d068f6ecf25',
    sample.mfaSecret,
    sample.apiKey,
  ])
    expect(kept).not.toContain(secret)
})

test('of several namespaces one may be chosen: it comes with its members, and nothing else does', async () => {
  using shellhub = await shellHub('relaxed')
  using here = await target('sqlite')
  const unknown = await here.import(shellhub.from, '--namespace', 'atlantis')
  expect([unknown.code, unknown.stderr]).toEqual([
    1,
    expect.stringContaining('There is no namespace "atlantis" in the MongoDB dump'),
  ])
  expect(await here.import(shellhub.from, '--namespace', 'Elsewhere')).toMatchObject({ code: 0 })
  const rows = await rowsOf(here)
  expect(rows['users']).toEqual([
    expect.objectContaining({ username: 'stan', max_namespaces: 3, preferred_tenant: sample.otherTenant }),
  ])
  expect(rows['namespaces']).toEqual([
    expect.objectContaining({ name: 'elsewhere', connection_announcement: '' }),
  ])
  for (const table of ['devices', 'public_keys', 'firewall_rules', 'api_keys'])
    expect(rows[table]).toEqual([])
  // The rest may come later.
  expect(await here.import(shellhub.from)).toMatchObject({ code: 0 })
  expect((await rowsOf(here))['namespaces']).toHaveLength(2)
})
