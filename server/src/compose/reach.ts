// Composition of what reaches devices: tunnels, the SSH gateway, containers, and browser terminals. It closes
// in reverse order of opening, with one exception that `openReach` states.
import { tunnelPaths } from '@hawser/contract/tunnel'
import { fingerprintMd5 } from '@hawser/ssh'
import { letsGo } from '../cluster/let-go.ts'
import { connectorSupervisor, type ConnectorSupervisor } from '../connectors/supervisor.ts'
import type { ServiceDoor } from '../gateway/services/door.ts'
import type { Gateway } from '../gateway/login/listen.ts'
import type { UpgradeHandlers } from '../http/upgrade.ts'
import type { Registry } from '../tunnel/registry.ts'
import { openBrowsers } from './browsers.ts'
import { elsewhereFirst } from '../cluster/elsewhere.ts'
import { closeUnfinished } from './recordings.ts'
import type { Rooms } from './rooms.ts'
import { openServiceDoor } from './service-door.ts'
import { openSsh, type Ssh } from './ssh.ts'
import { openTunnels, type Tunnels } from './tunnels.ts'

export interface Reach extends Pick<Ssh, 'screens' | 'spares' | 'recordingFailures' | 'logins'> {
  readonly doors: UpgradeHandlers
  readonly services: ServiceDoor
  readonly port: number
  readonly tunnels: Pick<Registry, 'size' | 'find' | 'all'>
  readonly tunnelCounts: Tunnels['counts']
  readonly sessions: Gateway['sessions']
  readonly held: Pick<Gateway['held'], 'count' | 'held_bytes'>
  readonly ssh: { readonly unauthenticated: number; readonly refused: Gateway['refused'] }
  /** Ends everything in order. */
  stop(): Promise<void>
}

export async function openReach(rooms: Rooms): Promise<Reach> {
  const { neighbours, revocation, nodes, bus, clustered } = rooms
  await using opened = new AsyncDisposableStack()
  const tunnels = opened.use(openTunnels(rooms))
  neighbours?.offerTunnels(tunnels.registry.find)
  opened.use(neighbours)
  const ssh = await openSsh(rooms, tunnels)
  const { gateway } = ssh
  tunnels.restoreWith(gateway.restore)
  const browsers = opened.use(openBrowsers(rooms, gateway))
  const services = opened.use(openServiceDoor(rooms, tunnels, ssh))
  const connectors = openSupervisor(rooms, tunnels)
  opened.defer(() => connectors.stop())
  if (clustered) opened.use(letsGo(bus, rooms.node, gateway.handOver))
  closeUnfinished(rooms, nodes)
  opened.use(
    revocation.apply({
      sessions: gateway.sessions,
      tunnels: tunnels.registry,
      joined: ssh.agentless,
      connectors,
      recheckPeople: async (whose) =>
        void (await Promise.all([browsers.recheck(whose), services.recheck(whose)])),
    }),
  )
  // The exception: the gateway closes before all that was opened after it, because sessions get their time to
  // end, and until then browsers show them and changes still end them.
  opened.use(ssh)
  opened.defer(() => tunnels.refuse())
  const closing = opened.move()
  return {
    services: services.door,
    doors: {
      [tunnelPaths.lines]: (upgrade) => tunnels.enter(tunnelPaths.lines, upgrade),
      [tunnelPaths.streams]: (upgrade) => tunnels.enter(tunnelPaths.streams, upgrade),
      [tunnelPaths.pickUp]: elsewhereFirst(
        neighbours,
        tunnels.endpoints.pickUp,
        tunnels.endpoints.pickUpElsewhere,
      ),
      ...browsers.doors,
    },
    port: gateway.port,
    tunnels: tunnels.registry,
    tunnelCounts: tunnels.counts,
    recordingFailures: ssh.recordingFailures,
    sessions: gateway.sessions,
    held: gateway.held,
    screens: ssh.screens,
    spares: ssh.spares,
    ssh: {
      get unauthenticated() {
        return ssh.startups.size
      },
      refused: gateway.refused,
    },
    logins: ssh.logins,
    stop: () => closing.disposeAsync(),
  }
}

function openSupervisor(rooms: Rooms, tunnels: Tunnels): ConnectorSupervisor {
  const { supervision, signer, nodes, background, log } = rooms
  const supervisor = connectorSupervisor({
    ...supervision,
    tunnels: tunnels.registry,
    async approve({ uid, tenant_id }, { user, blob }) {
      try {
        await signer.sign({ uid, tenant_id }, fingerprintMd5(blob), JSON.stringify({ Username: user }))
        return true
      } catch {
        return false
      }
    },
    leading: () => nodes?.leading ?? true,
    log,
  })
  const start = (): void => background.later('connectors.start', () => supervisor.start())
  start()
  nodes?.onLeading(start)
  return supervisor
}
