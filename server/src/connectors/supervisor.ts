// Connects every enabled connector and makes its containers reachable: to the gateway each running container
// is a device with a tunnel, whose other end is an SSH server here that speaks to the engine. A changed
// connector begins anew; one that is disabled or gone is dropped, and its containers go offline.
import { createPublicKey, type KeyObject } from 'node:crypto'
import { duplexPair, type Duplex } from 'node:stream'
import {
  serveContainer,
  supervise,
  type Container,
  type EngineClient,
  type EngineFacts,
  type Found,
  type Supervised,
} from '@hawser/engine'
import { privateKeyFrom, type PrivateKey } from '@hawser/ssh'
import { relayTo } from './relay.ts'
import type { Log } from '../kit/log.ts'
import type { Registry } from '../tunnel/registry.ts'
import type { Tunnel, TunnelDevice } from '../tunnel/tunnel.ts'
import type { Engine, EngineAddress } from './engine.ts'

export interface WatchedConnector {
  readonly uid: string
  readonly tenant_id: string
  readonly engine: EngineAddress
  /** Identifies its containers as devices. */
  readonly identity: KeyObject
  readonly accept: boolean
}

export interface ContainerDevice {
  readonly container: Container
  readonly device: TunnelDevice
  readonly name: string
}

export interface ContainerDevices {
  /** Makes devices of containers; returns those that are to be reached now. */
  settle(connector: WatchedConnector, found: Found, facts: EngineFacts): Promise<ContainerDevice[]>
}

export interface SupervisorParts {
  engine: Engine
  connectors: {
    enabled(): Promise<readonly { tenant_id: string; uid: string }[]>
    /** Undefined if it is disabled. */
    watched(tenant_id: string, uid: string): Promise<WatchedConnector | undefined>
    state(connector: WatchedConnector, state: string, message: string): Promise<void>
  }
  devices: ContainerDevices
  tunnels: Pick<Registry, 'offer' | 'seen'>
  /** Whether the gateway is making this login at this moment; true once. */
  approve(device: TunnelDevice, login: { readonly user: string; readonly blob: Buffer }): Promise<boolean>
  /** False where another node follows the connectors. */
  leading(): boolean
  log: Log
}

export interface ConnectorSupervisor {
  /** Starts all of them: at the start, and when it is this node's turn. */
  start(): Promise<void>
  /** The connector's settings changed, or it is gone. */
  changed(tenant_id: string, uid: string): void
  /** A device of the namespace changed: containers are examined again. */
  deviceChanged(tenant_id: string): void
  namespaceRemoved(tenant_id: string): void
  stop(): Promise<void>
}

interface Running extends AsyncDisposable {
  readonly tenant_id: string
  readonly supervised: Supervised
}

export function connectorSupervisor(parts: SupervisorParts): ConnectorSupervisor {
  const { log } = parts
  const running = new Map<string, Running>()
  /** The change under way of each connector; the next one waits for it. */
  const changes = new Map<string, Promise<void>>()
  let stopping = false

  async function renew(tenant_id: string, uid: string): Promise<void> {
    const before = running.get(uid)
    running.delete(uid)
    await before?.[Symbol.asyncDispose]()
    if (stopping) return
    const connector = parts.leading() ? await parts.connectors.watched(tenant_id, uid) : undefined
    if (connector && !stopping) running.set(uid, watch(parts, connector))
  }

  function changed(tenant_id: string, uid: string): void {
    const change: Promise<void> = (changes.get(uid) ?? Promise.resolve())
      .then(async () => renew(tenant_id, uid))
      .catch((err: unknown) => log.error({ event: 'connector.unwatched', connector: uid, err }))
      .finally(() => {
        if (changes.get(uid) === change) changes.delete(uid)
      })
    changes.set(uid, change)
  }

  return {
    async start() {
      for (const { tenant_id, uid } of await parts.connectors.enabled()) changed(tenant_id, uid)
    },
    changed,
    deviceChanged(tenant_id) {
      for (const each of running.values()) if (each.tenant_id === tenant_id) each.supervised.poke()
    },
    namespaceRemoved(tenant_id) {
      for (const [uid, each] of running) if (each.tenant_id === tenant_id) changed(tenant_id, uid)
    },
    async stop() {
      stopping = true
      while (changes.size > 0) await Promise.all(changes.values())
      await Promise.all([...running.values()].map(async (each) => each[Symbol.asyncDispose]()))
      running.clear()
    },
  }
}

function watch(parts: SupervisorParts, connector: WatchedConnector): Running {
  const { log } = parts
  const { uid, tenant_id } = connector
  const client = parts.engine.client(connector.engine)
  const hostKey = privateKeyFrom(connector.identity)
  const tunnels = new Map<string, Tunnel>()
  /** Names of containers' devices, by the id of the container. */
  const names = new Map<string, string>()

  const close = (why: string, keep: ReadonlySet<string> = new Set()): void => {
    for (const [id, tunnel] of tunnels) if (!keep.has(id)) tunnel.close(why)
  }

  async function offer(found: ContainerDevice): Promise<void> {
    const { id } = found.container
    const tunnel = containerTunnel(parts, client, hostKey, found, () => names.get(id) ?? found.name)
    tunnels.set(id, tunnel)
    void tunnel.ended.then(() => {
      if (tunnels.get(id) !== tunnel) return
      tunnels.delete(id)
      names.delete(id)
    })
    await parts.tunnels.offer(tunnel, { via: 'container' })
  }

  const supervised = supervise({
    open: (signal) => parts.engine.client(connector.engine, signal),
    async found(all, facts) {
      const there = await parts.devices.settle(connector, all, facts)
      close('The container has stopped.', new Set(there.map(({ container }) => container.id)))
      for (const each of there) {
        const { id } = each.container
        const tunnel = tunnels.get(id)
        if (tunnel?.device.uid === each.device.uid) parts.tunnels.seen(tunnel.device)
        else {
          tunnel?.close('The container is another device now.')
          await offer(each)
        }
        names.set(id, each.name)
      }
    },
    lost: async () => close('The engine of the container cannot be reached.'),
    async state(state, message) {
      log.info({ event: `connector.${state}`, connector: uid, message })
      await parts.connectors.state(connector, state, message)
    },
    onError: (err) => log.warn({ event: 'connector.lost', connector: uid, err }),
  })
  return {
    tenant_id,
    supervised,
    async [Symbol.asyncDispose]() {
      await supervised[Symbol.asyncDispose]()
      close('The connector is switched off.')
    },
  }
}

/** A tunnel that leads nowhere but to an SSH server in this process. */
function containerTunnel(
  parts: SupervisorParts,
  client: EngineClient,
  hostKey: PrivateKey,
  { container, device }: ContainerDevice,
  name: () => string,
): Tunnel {
  const ending = new AbortController()
  const ended = Promise.withResolvers<undefined>()
  const streams = new Set<Duplex>()
  return {
    device,
    ended: ended.promise,
    async openSsh() {
      if (ending.signal.aborted) throw new Error('The container is gone.')
      const [ours, theirs] = duplexPair()
      streams.add(ours)
      ours.on('error', () => undefined).once('close', () => streams.delete(ours))
      void serveContainer(theirs, {
        client,
        container: container.id,
        deviceName: name(),
        hostKeys: [hostKey],
        approveKey: async (login) => parts.approve(device, login),
        signal: ending.signal,
        log: (event) =>
          parts.log.debug({ ...event, event: `container.${String(event['event'])}`, device: device.uid }),
      })
      return ours
    },
    async openTarget({ host, port }, signal) {
      if (ending.signal.aborted) throw new Error('The container is gone.')
      if (!isLoopback(host))
        throw Object.assign(new Error('Only the container itself.'), { why: 'forbidden' })
      const stream = await relayTo(client, { container: container.id, port }, signal)
      streams.add(stream)
      return stream.once('close', () => streams.delete(stream))
    },
    // Nobody else can have made this tunnel.
    prove: async () => true,
    close() {
      ending.abort()
      for (const stream of streams) stream.destroy()
      ended.resolve(undefined)
    },
  }
}

const isLoopback = (host: string): boolean => /^(?:localhost|127\.[\d.]+|::1)$/i.test(host)

/** PKCS#1, as devices have it. */
export function publicPem(identity: KeyObject): string {
  return createPublicKey(identity).export({ type: 'pkcs1', format: 'pem' })
}
