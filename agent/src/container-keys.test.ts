// Which device a container is: by its id first, then by the name of one that is gone, also after a restart.
import { existsSync, mkdirSync, mkdtempSync, readdirSync, rmSync, writeFileSync } from 'node:fs'
import os from 'node:os'
import path from 'node:path'
import { afterAll, describe, expect, test } from 'vitest'
import { containerKeys } from './container-keys.ts'

const root = mkdtempSync(path.join(os.tmpdir(), 'hawser-container-keys-'))
afterAll(() => rmSync(root, { recursive: true, force: true }))
const day_ms = 86_400_000
const box = (digit: string, name: string) => ({
  id: digit.repeat(64),
  name,
  image: 'local/busybox:1',
  running: true,
  labels: {},
})
const there =
  (...boxes: { id: string }[]) =>
  (id: string) =>
    boxes.some((each) => each.id === id)

function fresh(name: string) {
  const folder = path.join(root, name)
  let now = 0
  const open = () => containerKeys(folder, () => now)
  return { folder, open, wait: (ms: number) => void (now += ms) }
}

describe('a device of the connector mode', () => {
  test('stays with its container when that is renamed, and when two swap their names', () => {
    const { open } = fresh('renamed')
    const keys = open()
    const [blue, green] = [keys.add(box('a', 'web')), keys.add(box('b', 'web-new'))]
    const swapped = [box('a', 'web-old'), box('b', 'web')]
    keys.settle(swapped, there(...swapped))
    expect(keys.of(box('a', '').id)).toMatchObject({ identity: blue.identity, name: 'web-old' })
    expect(keys.of(box('b', '').id)).toMatchObject({ identity: green.identity, name: 'web' })
    expect(keys.untold()).toEqual([])
  })

  test('goes over to a new container with the name of one that is gone, also after a restart', () => {
    const { open } = fresh('replaced')
    const { identity } = open().add(box('a', 'web'))
    const next = [box('b', 'web')]
    const keys = open()
    keys.settle(next, there(...next))
    expect(keys.of(next[0]!.id)).toMatchObject({ identity })
    expect(open().of(next[0]!.id)).toMatchObject({ identity, name: 'web' })
  })

  test('does not while the other container may exist: then the new one is a device of its own', () => {
    const { open } = fresh('cut')
    const keys = open()
    keys.add(box('a', 'web'))
    keys.settle([box('b', 'web')], () => true)
    expect(keys.of(box('b', '').id)).toBeUndefined()
    expect(keys.of(box('a', '').id)).toMatchObject({ name: 'web' })
  })

  test('whose container is gone is told of once, and its key is forgotten after a month', () => {
    const { folder, open, wait } = fresh('gone')
    const device = open().add(box('a', 'web'))
    writeFileSync(device.keyFile, 'key')
    open().settle([], there())
    const keys = open()
    expect(keys.untold()).toMatchObject([{ identity: device.identity, image: 'local/busybox:1' }])
    keys.told(device)
    expect(open().untold()).toEqual([])
    wait(29 * day_ms)
    keys.settle([], there())
    expect(existsSync(device.keyFile)).toBe(true)
    wait(2 * day_ms)
    keys.settle([], there())
    expect(existsSync(device.keyFile)).toBe(false)
    expect(containerKeys(folder).of(device.id)).toBeUndefined()
  })

  test('is forgotten before a month when 2,000 others are gone for a shorter time', () => {
    const { folder, open } = fresh('many')
    const many = Array.from({ length: 2_003 }, (_, at) => ({
      ...box('0', `job-${at}`),
      id: at.toString(16).padStart(12, '0').padEnd(64, '0'),
    }))
    mkdirSync(folder)
    for (const [at, { id, name, image }] of many.entries())
      writeFileSync(
        path.join(folder, `${id.slice(0, 12)}.key.container`),
        JSON.stringify({ id, name, image, gone_at: at }),
      )
    const keys = open()
    keys.settle([], () => false)
    expect(many.filter(({ id }) => !keys.of(id)).map(({ name }) => name)).toEqual(['job-0', 'job-1', 'job-2'])
    expect(readdirSync(folder)).toHaveLength(2_000)
    // The newest one still has an heir.
    const heir = { ...many.at(-1)!, id: 'f'.repeat(64) }
    keys.settle([heir], there(heir))
    expect(keys.of(heir.id)).toMatchObject({ identity: many.at(-1)!.id.slice(0, 12) })
    expect(keys.of(many.at(-1)!.id)).toBeUndefined()
  })

  test('has a note that anybody may have damaged: then its container begins anew with the same key', () => {
    const { folder, open } = fresh('damaged')
    const { keyFile, id } = open().add(box('a', 'web'))
    for (const text of ['', '{', '[]', 'null', '{"id":1,"name":"x","image":""}']) {
      writeFileSync(`${keyFile}.container`, text)
      expect(open().of(id)).toBeUndefined()
    }
    expect(containerKeys(folder).add(box('a', 'web')).keyFile).toBe(keyFile)
  })
})
