// Who gets in with the real OpenSSH client and who does not: passwords are the device's to judge, keys the
// namespace's, for the users and devices that each key names. Whoever is refused reads what a client says
// then, and nothing was recorded.
import { beforeAll, describe, expect, test } from 'vitest'
import { sample } from '@hawser/contract/examples'
import { fingerprintMd5, parsePublicKeyLine } from '@hawser/ssh'
import { keygen, type Outcome } from '../../ssh/test/programs.ts'
import { eventually, sharedOldAgent, sharedWay, type How } from './way.ts'

const way = sharedWay()

const isIn = ({ status, stdout }: Outcome): void => expect([stdout.toString(), status]).toEqual(['in\n', 0])
const isOut = ({ status, stdout, stderr }: Outcome): void => {
  expect([stdout.toString(), status]).toEqual(['', 255])
  expect(stderr).toContain('Permission denied (password,publickey,keyboard-interactive).')
}
const knock = async (how?: How): Promise<Outcome> => way.ssh('echo in', how)
const makeKey = async (name: string, ...kind: string[]): Promise<string> => {
  await keygen(way.where, name, ...(kind.length > 0 ? kind : ['-t', 'ed25519']))
  return name
}

describe('passwords', () => {
  test('the right one gets in, a wrong one does not and leaves no record', async () => {
    isIn(await knock(way.saying(way.user.password)))
    const { uid } = await way.newest()
    isOut(await knock(way.saying(`${way.user.password}!`)))
    isOut(await knock(way.saying('')))
    expect((await way.newest()).uid).toBe(uid)
  })

  test('a user who does not exist does not get in', async () => {
    isOut(await knock({ ...way.saying(way.user.password), user: 'nobody-at-all' }))
  })

  test('a key that is refused leaves the password its chance', async () => {
    await makeKey('unknown')
    const { env } = way.saying(way.user.password)
    isIn(await knock({ key: 'unknown', settings: ['BatchMode=no'], env }))
  })
})

describe('keys', () => {
  test('a key that the namespace does not know gets in nowhere', async () => {
    isOut(await knock({ key: await makeKey('stranger') }))
  })

  test.each([
    ['ed25519', '-t', 'ed25519'],
    ['ecdsa 256', '-t', 'ecdsa', '-b', '256'],
    ['ecdsa 384', '-t', 'ecdsa', '-b', '384'],
    ['ecdsa 521', '-t', 'ecdsa', '-b', '521'],
    ['rsa 2048', '-t', 'rsa', '-b', '2048'],
  ])(
    'a key of type %s gets in once it is registered, and not after it was removed',
    async (type, ...kind) => {
      const key = await makeKey(type.replace(' ', ''), ...kind)
      isOut(await knock({ key }))
      await way.register(key)
      isIn(await knock({ key }))
      const fingerprint = fingerprintMd5(parsePublicKeyLine(way.where.read(`${key}.pub`)).blob)
      await way.owner.publicKeys.remove({ params: { fingerprint } })
      isOut(await knock({ key }))
    },
  )

  test('an RSA key below 2048 bits does not get in, even if an older database has it', async () => {
    const key = await makeKey('short', '-t', 'rsa', '-b', '1024')
    const { blob } = parsePublicKeyLine(way.where.read('short.pub'))
    await way.service.rooms.stores.of(sample.tenant).publicKeys.insert({
      fingerprint: fingerprintMd5(blob),
      data: Buffer.from(way.where.read('short.pub')).toString('base64'),
      name: 'short',
      username: '.*',
      filter: JSON.stringify({ hostname: '.*' }),
      created_at: new Date().toISOString(),
    })
    isOut(await knock({ key }))
    expect(way.service.log()).toContain('The key is too weak.')
  })

  test('a key is for the users that its pattern names', async () => {
    await way.register(await makeKey('named'), { username: `^${way.user.name}$` })
    await way.register(await makeKey('other'), { username: '^skipper$' })
    isIn(await knock({ key: 'named' }))
    isOut(await knock({ key: 'other' }))
  })

  test('a key is for the devices that its pattern names', async () => {
    await way.register(await makeKey('here'), { filter: { hostname: '^gan' } })
    await way.register(await makeKey('elsewhere'), { filter: { hostname: '^crane' } })
    isIn(await knock({ key: 'here' }))
    isOut(await knock({ key: 'elsewhere' }))
  })

  test('a key is for the devices that have one of its tags, from the moment they have it', async () => {
    const key = await makeKey('tagged')
    await way.register(key, { filter: { tags: [sample.tag] } })
    isOut(await knock({ key }))
    const params = { uid: way.agent.uid }
    await way.owner.devices.addTag({ params, body: { tag: sample.tag } })
    isIn(await knock({ key }))
    await way.owner.devices.removeTag({ params: { ...params, tag: sample.tag } })
    isOut(await knock({ key }))
  })
})

describe('names', () => {
  const told = { settings: ['LogLevel=INFO'] }

  test('a device that is not there is offline, as far as anybody can tell', async () => {
    const { status, stderr } = await knock({ ...told, device: 'nowhere' })
    expect(status).toBe(255)
    expect(stderr).toContain(`${sample.namespace}.nowhere is offline or cannot be reached`)
  })

  test('whoever forgets the device is told so', async () => {
    const { status, stderr } = await knock({ ...told, flags: ['-l', 'root'] })
    expect(status).toBe(255)
    expect(stderr).toContain('root is not a valid SSHID')
  })

  test('letters of the device’s name may be large', async () => {
    isIn(await knock({ device: way.agent.name.toUpperCase() }))
  })
})

describe('the keys of the door itself', () => {
  test('a client that has seen one of them learns the other, and comes back to the same ones', async () => {
    // At a first start one of them joins a moment later.
    await way.service.rooms.background.settled()
    const settings = [
      `UserKnownHostsFile=${way.where.file('known')}`,
      'StrictHostKeyChecking=accept-new',
      'UpdateHostKeys=yes',
    ]
    isIn(await knock({ settings }))
    // It asks from the second time on.
    await using client = way.start('exec cat', { settings })
    await eventually(() => {
      const known = way.where.read('known')
      for (const type of ['ssh-ed25519', 'ssh-rsa']) expect(known).toContain(` ${type} `)
    })
    client.child.stdin.end()
    expect(await client.status).toBe(0)
    isIn(
      await knock({ settings: ['StrictHostKeyChecking=yes', 'HostKeyAlgorithms=rsa-sha2-512', ...settings] }),
    )
  })

  test('a client that knows another one does not log in', async () => {
    way.where.write('mistaken', `[127.0.0.1]:${way.service.sshPort} ${way.where.read('olga.pub')}`)
    const { status, stdout, stderr } = await knock({
      settings: [`UserKnownHostsFile=${way.where.file('mistaken')}`, 'StrictHostKeyChecking=yes'],
    })
    expect([stdout.toString(), status]).toEqual(['', 255])
    expect(stderr).toContain('Host key verification failed')
  })
})

describe('the firewall', () => {
  let rule: string
  beforeAll(async () => {
    const body = {
      action: 'deny',
      active: true,
      priority: 0,
      source_ip: '^127',
      username: '^drunk$',
      filter: { hostname: 'gantry' },
    } as const
    rule = (await way.owner.firewall.create({ body })).body.id
  })

  test('refuses before any proof is looked at, and only whom its rule is about', async () => {
    const { status, stderr } = await knock({ user: 'drunk', settings: ['LogLevel=INFO'] })
    expect(status).toBe(255)
    expect(stderr).toContain('due a policy rule')
    isIn(await knock())
    await way.owner.firewall.remove({ params: { id: rule } })
  })
})

describe.each([1, 2] as const)('a device of the field, with a tunnel of version %i', (version) => {
  const old = sharedOldAgent(way, version)
  test('the right password gets in, a wrong one does not', async () => {
    isIn(await knock({ ...way.saying('pilot'), device: old.name }))
    isOut(await knock({ ...way.saying('wrong'), device: old.name }))
  })

  test('a key of the namespace gets in, another one does not', async () => {
    isIn(await knock({ device: old.name }))
    isOut(await knock({ key: await makeKey(`stranger-${version}`), device: old.name }))
  })
})
