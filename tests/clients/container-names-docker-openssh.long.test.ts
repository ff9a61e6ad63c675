// Containers of a real engine are followed by their names: after each thing that people and deployments do to
// them, every name leads to the container that has it. The containers say themselves which they are.
import { beforeAll, describe, expect, test } from 'vitest'
import { sharedDock } from './dock.ts'
import { eventually } from './way.ts'

const dock = sharedDock({ tcp: true })
let connector = ''
beforeAll(async () => {
  connector = (await dock.connect({ accept: true })).uid
})

const docker = (...words: string[]) => dock.docker.docker(...words)
const idOf = async (name: string): Promise<string> =>
  (await docker('inspect', '-f', '{{.Id}}', name)).slice(0, 12)

/** Each name leads to the container that has it: without other settings a container's host name is its id. */
async function eachLeadsToItsOwn(...names: string[]): Promise<void> {
  for (const name of names) {
    const id = await idOf(name)
    await eventually(async () => {
      const { stdout, stderr } = await dock.ssh(name, 'hostname')
      expect(stdout.toString().trim(), stderr).toBe(id)
    })
    await dock.device(name, { identity: { mac: id }, status: 'accepted', online: true })
  }
}
const replace = async (...names: string[]): Promise<void> => {
  await docker('rm', '-f', ...names)
  for (const name of names) await dock.docker.container(name)
}
const accepted = async (): Promise<number> =>
  (await dock.owner.devices.list({ query: { status: 'accepted', per_page: 1 } })).total

describe('each name leads to the container that has it', () => {
  test.each([true, false])('after a container was replaced; with a session before: %s', async (used) => {
    const name = `ferry-${used}`
    await dock.docker.container(name)
    const { uid } = await dock.device(name, { status: 'accepted', online: true })
    await dock.owner.devices.setTags({ params: { uid }, body: { tags: ['pier'] } })
    if (used) await eachLeadsToItsOwn(name)
    await replace(name)
    await eachLeadsToItsOwn(name)
    expect(await dock.device(name)).toMatchObject({ uid, tags: ['pier'] })
    // With time in between, in which it has neither name nor place.
    const before = await accepted()
    await docker('rm', '-f', name)
    await dock.device(name, { uid, status: 'removed', online: false })
    expect(await accepted()).toBe(before - 1)
    const { body } = await dock.owner.sessions.list({ query: { per_page: 100 } })
    expect(body.filter(({ device }) => device?.uid === uid)).not.toEqual([])
    await dock.docker.container(name)
    await eachLeadsToItsOwn(name)
    expect(await dock.device(name)).toMatchObject({ uid, tags: ['pier'] })
    await docker('rm', '-f', name)
  })

  test('after it was renamed, and a live session in it goes on', async () => {
    await dock.docker.container('tender')
    const { uid } = await dock.device('tender', { status: 'accepted', online: true })
    await using running = dock.start('tender', 'echo in; cat')
    await running.until(/in\n/)
    await docker('rename', 'tender', 'Tender.Two')
    await dock.device('tender_two', { uid, status: 'accepted' })
    expect((await dock.ssh('tender_two', 'hostname')).stdout.toString().trim()).toBe(await idOf('Tender.Two'))
    expect((await dock.ssh('tender_two', 'echo $HAWSER_DEVICE')).stdout.toString()).toBe('tender_two\n')
    expect((await dock.ssh('tender', 'true')).status).toBe(255)
    running.child.stdin.end('still here\n')
    expect(await running.status).toBe(0)
    expect(running.stdout()).toContain('still here')
    await docker('rm', '-f', 'Tender.Two')
  })

  test('after a blue/green swap, and so do firewall rules by name', async () => {
    for (const name of ['web', 'web-new']) await dock.docker.container(name)
    await eachLeadsToItsOwn('web', 'web-new')
    const { body: rule } = await dock.owner.firewall.create({
      body: {
        action: 'deny',
        active: true,
        filter: { hostname: '^web-old$' },
        priority: 0,
        source_ip: '.*',
        username: '.*',
      },
    })
    const old = await idOf('web')
    await docker('rename', 'web', 'web-old')
    await docker('rename', 'web-new', 'web')
    await dock.device('web-old', { identity: { mac: old }, status: 'accepted' })
    await eachLeadsToItsOwn('web')
    expect((await dock.ssh('web-old', 'true')).stderr).toContain('due a policy rule')
    await dock.owner.firewall.remove({ params: { id: rule.id } })
    await eachLeadsToItsOwn('web', 'web-old')
    await docker('rm', '-f', 'web-old')
    await eachLeadsToItsOwn('web')
    await docker('rm', '-f', 'web')
  })

  test('after fifty were replaced at once, while the engine was restarted', async () => {
    const names = Array.from({ length: 50 }, (_, number) => `barge-${number}`)
    for (const name of names) await dock.docker.container(name)
    await eventually(async () => {
      const there = (await dock.devices()).filter(({ name }) => name.startsWith('barge-'))
      expect(there.filter(({ status, online }) => status === 'accepted' && online)).toHaveLength(50)
    })
    await eachLeadsToItsOwn(...names.slice(0, 10))
    const before = await accepted()
    await replace(...names.slice(0, 25))
    await dock.docker.kill()
    await dock.docker.start()
    await replace(...names.slice(25))
    await docker('start', ...names)
    await dock.state(connector, 'connected')
    await eachLeadsToItsOwn(...names)
    expect(await accepted()).toBe(before)
    await docker('rm', '-f', ...names)
    await eventually(async () => expect(await accepted()).toBe(before - 50))
  }, 300_000)
})
