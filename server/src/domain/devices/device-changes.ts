// Changes that members make to a device: its name, its public address and its tags.
import { Failure } from '@hawser/contract/failures'
import type { With } from '../audit/parts.ts'
import type { MemberCaller } from '../callers/callers.ts'
import type { Rules } from '../callers/rules.ts'
import { publicAddress, switchPublicUrl } from '../services/public-url.ts'
import { mustFindDevice, nameTaken, orNameTaken, targetOf } from './device-rows.ts'
import type { Timeline } from './timeline.ts'

export interface DeviceChangeParts extends With<'stores' | 'audit' | 'bus' | 'clock'> {
  timeline: Pick<Timeline, 'note'>
  mostTags: number
  /** A container's device may be waiting for the name. */
  nameFreed(tenant_id: string): void
}

type DeviceChangeRules = Pick<Rules<'devices'>, 'update' | 'rename' | 'addTag' | 'setTags' | 'removeTag'>

export function deviceChanges(parts: DeviceChangeParts): DeviceChangeRules {
  const { stores, audit, bus, clock, mostTags } = parts

  async function update(
    uid: string,
    wanted: { name?: string; public_url?: boolean },
    caller: MemberCaller,
  ): Promise<void> {
    const { tenant_id } = caller
    const created_by = caller.kind === 'key' ? caller.name : caller.username
    const names = await orNameTaken(parts, caller, async (inside, record) => {
      const device = await mustFindDevice(inside, tenant_id, uid)
      const mine = inside.of(tenant_id).devices
      const name = wanted.name?.toLowerCase() ?? device.name
      if (name !== device.name && (await mine.findAcceptedByName(name))) throw nameTaken()
      const public_url = wanted.public_url ?? device.public_url === 1
      const address = public_url ? publicAddress(device) : device.public_url_address
      const service =
        wanted.public_url === undefined
          ? undefined
          : await switchPublicUrl(inside, record, device, public_url, { clock, created_by })
      const named = wanted.name === undefined ? device.named : name === device.container ? 0 : 1
      await mine.save(uid, { name, named, public_url: public_url ? 1 : 0, public_url_address: address })
      record({
        action: 'device.updated',
        target: targetOf(device),
        before: { name: device.name, public_url: device.public_url === 1 },
        after: { name, public_url },
      })
      return { before: device.name, after: name, service }
    })
    if (names.service !== undefined) bus.tell('service.changed', { tenant_id, id: names.service })
    const isRenamed = names.before !== names.after
    if (isRenamed) parts.timeline.note(uid, { kind: 'renamed', before: names.before, after: names.after })
    bus.tell('device.changed', {
      tenant_id,
      uid,
      status: (await mustFindDevice(stores, tenant_id, uid)).status,
    })
    if (isRenamed) parts.nameFreed(tenant_id)
  }

  async function setTags(
    uid: string,
    caller: MemberCaller,
    next: (tags: string[]) => string[],
  ): Promise<void> {
    await audit.change(caller, async (inside, record) => {
      const device = await mustFindDevice(inside, caller.tenant_id, uid)
      const before = JSON.parse(device.tags) as string[]
      const tags = next(before)
      await inside.of(caller.tenant_id).devices.save(uid, { tags: JSON.stringify(tags) })
      record({
        action: 'device.tags.updated',
        target: targetOf(device),
        before: { tags: before },
        after: { tags },
      })
    })
  }

  return {
    update: ({ params, body }, caller) => update(params.uid, body, caller),
    rename: ({ params, body }, caller) => update(params.uid, body, caller),

    addTag: ({ params, body }, caller) =>
      setTags(params.uid, caller, (tags) => {
        if (tags.includes(body.tag))
          throw new Failure('conflict', { message: 'The device has this tag already.' })
        if (tags.length >= mostTags)
          throw new Failure('tooManyTags', {
            message: `The device already has ${tags.length} tags, the maximum.`,
          })
        return [...tags, body.tag]
      }),
    setTags({ params, body }, caller) {
      if (body.tags.length > mostTags)
        throw new Failure('invalid', { message: `tags: may have at most ${mostTags}` })
      return setTags(params.uid, caller, () => body.tags)
    },
    removeTag: ({ params }, caller) =>
      setTags(params.uid, caller, (tags) => {
        if (!tags.includes(params.tag)) throw new Failure('notFound')
        return tags.filter((tag) => tag !== params.tag)
      }),
  }
}
