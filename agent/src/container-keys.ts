// Which key each container has. A device of the connector mode is a key and the id that its first container
// had; next to the key is a note of the container that the device is now, and of its name. So the device stays
// the same while its container is renamed, and when a new one takes the name of one that is gone. The keys of
// containers that are gone wait for such a successor for a month, the newest 2,000 of them.
import { mkdirSync, readdirSync, readFileSync, rmSync } from 'node:fs'
import path from 'node:path'
import type { Container } from '@hawser/engine'
import { namespaceFile } from './namespace.ts'
import { serverKeyFile } from './server-key.ts'
import { writeWhole } from './whole-file.ts'

/** The device that a container is. */
export interface KeptContainer {
  readonly keyFile: string
  /** The short id of its first container, which identifies the device at the server. */
  readonly identity: string
  readonly id: string
  readonly name: string
  readonly image: string
  /** Milliseconds since 1970; absent: the container exists. */
  readonly gone_at?: number | undefined
  /** Whether the server knows that it is gone. */
  readonly told?: boolean | undefined
}

export interface ContainerKeys {
  /** Compares with the containers of the engine. `isThere`: whether it may still have a container. */
  settle(offered: readonly Container[], isThere: (id: string) => boolean): void
  /** Undefined: the container is new. */
  of(id: string): KeptContainer | undefined
  add(container: Container): KeptContainer
  /** Removed devices of which the server is not yet notified. */
  untold(): KeptContainer[]
  told(device: KeptContainer): void
}

/** The length of a container's short id. */
export const shown = 12
const kept_ms = 30 * 24 * 60 * 60 * 1_000
/** Every job that runs in a container of its own leaves one behind. */
const mostGone = 2_000
const noteOf = (keyFile: string): string => `${keyFile}.container`

export function containerKeys(folder: string, now: () => number = Date.now): ContainerKeys {
  const all = new Map<string, KeptContainer>()
  const byId = new Map<string, string>()
  for (const device of readAll(folder)) enter(device)

  function enter(device: KeptContainer): void {
    leave(device.identity)
    all.set(device.identity, device)
    byId.set(device.id, device.identity)
  }

  function leave(identity: string): void {
    const id = all.get(identity)?.id ?? ''
    if (byId.get(id) === identity) byId.delete(id)
  }

  function keep(device: KeptContainer): KeptContainer {
    const before = all.get(device.identity)
    enter(device)
    const { keyFile, identity: _, ...note } = device
    const text = JSON.stringify(note)
    if (before && text === JSON.stringify({ ...before, keyFile: undefined, identity: undefined }))
      return device
    try {
      mkdirSync(folder, { recursive: true, mode: 0o700 })
      writeWhole(noteOf(keyFile), `${text}\n`)
    } catch {
      // On a full disk the note counts until the agent stops.
    }
    return device
  }

  function forget({ keyFile, identity }: KeptContainer): void {
    leave(identity)
    all.delete(identity)
    for (const file of [keyFile, noteOf(keyFile), namespaceFile(keyFile), serverKeyFile(keyFile)])
      rmSync(file, { force: true })
  }

  const of = (id: string): KeptContainer | undefined => all.get(byId.get(id) ?? '')

  return {
    of,
    settle(offered, isThere) {
      const heirless = new Map<string, KeptContainer>()
      for (const device of all.values())
        if (!isThere(device.id) && !heirless.has(device.name)) heirless.set(device.name, device)
      for (const { id, name, image } of offered) {
        const device = of(id) ?? heirless.get(name)
        heirless.delete(name)
        if (device) keep({ keyFile: device.keyFile, identity: device.identity, id, name, image })
      }
      const gone = [...all.values()]
        .filter(({ id }) => !isThere(id))
        .map((device) => ({ device, since: device.gone_at ?? now() }))
        .toSorted((one, other) => other.since - one.since)
      for (const [at, { device, since }] of gone.entries())
        if (at >= mostGone || since < now() - kept_ms) forget(device)
        else if (device.gone_at === undefined) keep({ ...device, gone_at: since })
    },
    add({ id, name, image }) {
      const identity = id.slice(0, shown)
      return keep({ keyFile: path.join(folder, `${identity}.key`), identity, id, name, image })
    },
    untold: () => [...all.values()].filter(({ gone_at, told }) => gone_at !== undefined && told !== true),
    told: ({ identity }) => {
      const device = all.get(identity)
      if (device?.gone_at !== undefined) keep({ ...device, told: true })
    },
  }
}

/** An unreadable note is ignored: its container becomes a new device, with the same key. */
function readAll(folder: string): KeptContainer[] {
  const files = names(folder).filter((file) => /^[0-9a-f]{12}\.key\.container$/.test(file))
  return files.flatMap((file): KeptContainer[] => {
    const identity = file.slice(0, shown)
    try {
      const { id, name, image, gone_at, told } = JSON.parse(
        readFileSync(path.join(folder, file), 'utf8'),
      ) as Record<string, unknown>
      if (typeof id !== 'string' || typeof name !== 'string' || typeof image !== 'string') return []
      const keyFile = path.join(folder, `${identity}.key`)
      const gone = typeof gone_at === 'number' ? { gone_at, told: told === true } : {}
      return [{ keyFile, identity, id, name, image, ...gone }]
    } catch {
      return []
    }
  })
}

function names(folder: string): string[] {
  try {
    return readdirSync(folder)
  } catch {
    return []
  }
}
