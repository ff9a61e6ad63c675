// Connectors with a real engine that speaks TLS and listens on a socket as well: how it may be reached and
// how not, who may say so, and what becomes of its containers when a connector is changed.
import { describe, expect, test } from 'vitest'
import { run } from '../../ssh/test/programs.ts'
import { certificates } from '../harness/docker.ts'
import { startService } from '../harness/service.ts'
import { buildWorld } from '../harness/world.ts'
import { sharedDock } from './dock.ts'
import { eventually } from './way.ts'

const dock = sharedDock({ tls: true })
const refused = (status: number) => ({ status })
const names = async () => (await dock.devices()).map(({ name }) => name)
const secure = () => ({ secure: true, tls: dock.docker.tls! })
const remove = (uid: string) => dock.owner.connectors.remove({ params: { uid } })

describe('an engine with TLS', () => {
  test('is reached with our certificate, and so are its containers, files included', async () => {
    await dock.docker.container('sealed')
    const { uid } = await dock.connect(secure())
    await dock.accepted('sealed')
    const { status, stdout, stderr } = await dock.ssh('sealed', 'cat; echo wrong >&2; exit 3', {
      input: 'right',
    })
    expect([status, stdout.toString(), stderr]).toEqual([3, 'right', 'wrong\n'])
    const args = dock.args().map((word) => (word === '-p' ? '-P' : word))
    const there = `${dock.sshid('sealed', 'pilot')}:note`
    expect((await run('scp', [...args, dock.where.write('note', 'in words'), there])).status).toBe(0)
    expect((await run('scp', [...args, there, dock.where.file('back')])).status).toBe(0)
    expect(dock.where.read('back')).toBe('in words')
    await dock.docker.docker('rm', '-f', 'sealed')
    await remove(uid)
  })

  test.each([
    [
      'an authority that did not sign the engine’s',
      /\. Its certificate was not signed by the certificate authority of this connector\.$/,
      async () => ({ ca: (await certificates(dock.docker.folder, 'other-')).ca }),
    ],
    [
      'one that the engine does not know',
      /\. It does not accept the client certificate of this connector\.$/,
      async () => {
        const { cert, key } = await certificates(dock.docker.folder, 'other-')
        return { cert, key }
      },
    ],
    [
      'a key that does not belong to it',
      /^The certificates or the key for TLS cannot be used\.$/,
      async () => ({ key: (await certificates(dock.docker.folder, 'other-')).key }),
    ],
  ])('is not reached with a certificate of %s: the status says failed, and why', async (_, why, wrong) => {
    await dock.docker.container('hidden')
    const connector = await dock.connect(
      { secure: true, tls: { ...dock.docker.tls, ...(await wrong()) } },
      'failed',
    )
    expect(connector.status.message).toMatch(why)
    await expect(dock.owner.connectors.info({ params: { uid: connector.uid } })).rejects.toMatchObject({
      status: 424,
      body: { message: connector.status.message },
    })
    expect(await names()).not.toContain('hidden')
    await remove(connector.uid)
    await dock.docker.docker('rm', '-f', 'hidden')
  })

  test('is not reached in the clear', async () => {
    const { uid, status } = await dock.connect({}, 'failed')
    expect(status.message).toMatch(/^The engine /)
    await remove(uid)
  })
})

describe('an engine on a socket of the machine', () => {
  test('is reached if the administrator allows it, and says of itself what it is', async () => {
    const { uid } = await dock.connect({ address: dock.docker.socket, port: 0 })
    const { body } = await dock.owner.connectors.info({ params: { uid } })
    const said = JSON.parse(await dock.docker.docker('info', '--format', '{{json .}}')) as Record<
      string,
      unknown
    >
    for (const field of ['ID', 'Driver', 'Images', 'MemoryLimit', 'Plugins'])
      expect(body[field]).toEqual(said[field])
    await remove(uid)
  })

  test('is the server’s own otherwise, whatever it is called, and so is every other way to the machine', async () => {
    await using service = await startService()
    const world = await buildWorld(service)
    const owner = service.api({ token: await world.token('owner') })
    for (const address of [dock.docker.socket, '127.0.0.1', 'localhost', '0.0.0.0', '127.1']) {
      const body = {
        enable: true,
        address,
        port: dock.docker.port,
        ...(address.startsWith('unix') ? {} : secure()),
      }
      const { body: made } = await owner.connectors.create({ body })
      expect(made.status).toMatchObject({
        state: 'failed',
        message: expect.stringContaining('has not allowed it') as unknown,
      })
      await expect(owner.connectors.info({ params: { uid: made.uid } })).rejects.toMatchObject(refused(424))
    }
    for (const address of ['unix://docker.sock', 'unix:///run/../etc/x y', '/run/docker.sock', 'unix://'])
      await expect(owner.connectors.create({ body: { address, port: 0 } })).rejects.toMatchObject(
        refused(400),
      )
    const tls = dock.docker.tls!
    await expect(
      owner.connectors.create({ body: { address: dock.docker.socket, port: 0, secure: true, tls } }),
    ).rejects.toMatchObject(refused(400))
    expect((await owner.devices.list({})).total).toBe(2)
  })
})

describe('a connector', () => {
  test('that is switched off lets its containers go, and has them back when it is switched on', async () => {
    await dock.docker.container('switched')
    const { uid } = await dock.connect(secure())
    const { uid: device } = await dock.accepted('switched')
    await dock.owner.connectors.update({ params: { uid }, body: { enable: false } })
    await dock.device('switched', { online: false, status: 'accepted' })
    expect((await dock.state(uid, 'disconnected')).status.message).toBe('')
    expect((await dock.ssh('switched', 'true')).status).toBe(255)
    await dock.owner.connectors.update({ params: { uid }, body: { enable: true } })
    expect((await dock.device('switched', { online: true, status: 'accepted' })).uid).toBe(device)
    expect((await dock.ssh('switched', 'true')).status).toBe(0)
    // Switched off under somebody's hands.
    await using running = dock.start('switched', 'echo in; sleep 1000')
    await running.until(/in\n/)
    await remove(uid)
    expect(await running.status).toBe(255)
    expect(running.stderr()).toMatch(/was lost|is no longer available/)
    // It has a history, so that its device stays, without its name and its place.
    await dock.device('switched', { online: false, status: 'removed' })
    await dock.owner.devices.remove({ params: { uid: device } })
    await dock.docker.docker('rm', '-f', 'switched')
  })

  test('that is deleted takes along the devices that nobody used', async () => {
    await dock.docker.container('unused')
    const { uid } = await dock.connect(secure())
    await dock.accepted('unused')
    await remove(uid)
    await eventually(async () => expect(await names()).not.toContain('unused'))
    await dock.docker.docker('rm', '-f', 'unused')
  })

  test('that says so has its containers accepted at once, as far as their names are free', async () => {
    await dock.docker.container('welcome')
    await dock.docker.container('crane-1')
    const { uid, accept } = await dock.connect({ ...secure(), accept: true })
    expect(accept).toBe(true)
    await dock.device('welcome', { status: 'accepted', online: true })
    expect((await dock.ssh('welcome', 'echo in')).stdout.toString()).toBe('in\n')
    await eventually(async () => {
      const cranes = (await dock.devices()).filter(({ name }) => name === 'crane-1')
      expect(cranes.map(({ status }) => status).toSorted()).toEqual(['accepted', 'pending'])
    })
    await remove(uid)
    await dock.docker.docker('rm', '-f', 'welcome', 'crane-1')
  })

  test('is an administrator’s to make and change; an observer looks', async () => {
    const { uid } = await dock.connect(secure())
    const observer = dock.service.api({ token: await dock.world.token('observer') })
    const administrator = dock.service.api({ token: await dock.world.token('administrator') })
    const params = { uid }
    expect((await observer.connectors.get({ params })).body.status.state).toBe('connected')
    expect((await observer.connectors.info({ params })).body['Driver']).toBeDefined()
    expect(
      (await observer.connectors.list({ query: { enable: true } })).body.map((each) => each.uid),
    ).toContain(uid)
    const body = { address: '127.0.0.1', port: 1 }
    for (const call of [
      () => observer.connectors.create({ body }),
      () => observer.connectors.update({ params, body: { enable: false } }),
      () => observer.connectors.remove({ params }),
    ])
      await expect(call()).rejects.toMatchObject(refused(403))
    expect((await administrator.connectors.update({ params, body: { accept: true } })).body).toMatchObject({
      accept: true,
      enable: true,
    })
    await administrator.connectors.remove({ params })
  })

  test('is of one namespace: the same engine has other devices in another, with other keys', async () => {
    await dock.docker.container('shared')
    const { uid } = await dock.connect(secure())
    const mine = await dock.accepted('shared')
    const stranger = dock.service.api({ token: await dock.world.token('stranger') })
    for (const call of [
      () => stranger.connectors.get({ params: { uid } }),
      () => stranger.connectors.info({ params: { uid } }),
      () => stranger.connectors.update({ params: { uid }, body: { enable: false } }),
      () => stranger.connectors.remove({ params: { uid } }),
    ])
      await expect(call()).rejects.toMatchObject(refused(404))
    const { body: theirs } = await stranger.connectors.create({
      body: { enable: true, accept: true, address: '127.0.0.1', port: dock.docker.port, ...secure() },
    })
    const other = await eventually(async () => {
      const { body } = await stranger.devices.list({})
      const found = body.find(({ name }) => name === 'shared')
      expect(found).toMatchObject({ status: 'accepted', online: true })
      return found!
    })
    expect(other.uid).not.toBe(mine.uid)
    expect(other.public_key).not.toBe(mine.public_key)
    expect((await dock.devices()).map((device) => device.uid)).not.toContain(other.uid)
    // Our key is good for our own.
    const { status, stderr } = await run('ssh', [...dock.args(), 'root@elsewhere.shared@127.0.0.1', 'id'])
    expect([status, stderr]).toEqual([255, expect.stringContaining('Permission denied')])
    expect((await dock.ssh('shared', 'true')).status).toBe(0)
    await stranger.connectors.remove({ params: { uid: theirs.uid } })
    await remove(uid)
    await dock.docker.docker('rm', '-f', 'shared')
  })

  test('goes with its namespace', async () => {
    await dock.docker.container('orphan')
    const { body: namespace } = await dock.owner.namespaces.create({ body: { name: 'shipyard' } })
    const params = { tenant: namespace.tenant_id }
    const { token } = (await dock.owner.users.namespaceToken({ params })).body
    const there = dock.service.api({ token })
    await there.connectors.create({
      body: { enable: true, address: '127.0.0.1', port: dock.docker.port, ...secure() },
    })
    const { uid } = await eventually(async () => {
      const found = (await there.devices.list({})).body.find(({ name }) => name === 'orphan')
      expect(found).toMatchObject({ online: true })
      return found!
    })
    expect(dock.service.reach.tunnels.find(uid)).toBeDefined()
    await there.namespaces.remove({ params })
    await eventually(() => expect(dock.service.reach.tunnels.find(uid)).toBeUndefined())
    await dock.docker.docker('rm', '-f', 'orphan')
  })
})
