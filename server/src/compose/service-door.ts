// Composition of the door at which browsers open services of devices, and of what stands behind it.
import type { IncomingMessage } from 'node:http'
import type { Duplex } from 'node:stream'
import { protocols, longestListening_bytes } from '@hawser/contract/tunnel'
import { serviceLimits } from '@hawser/contract/limits'
import { multistream } from '@hawser/mux'
import type { Person } from '../domain/sessions/revocation.ts'
import { gatewayKeys } from '../gateway/device/device-leg.ts'
import { serviceDoor, type ServiceDoor } from '../gateway/services/door.ts'
import { targets } from '../gateway/services/target.ts'
import { upstream } from '../gateway/services/upstream.ts'
import { visits } from '../gateway/services/visits.ts'
import { whereFrom } from '../http/client-address.ts'
import { newUid } from '../kit/ids.ts'
import { limiter } from '../kit/limiter.ts'
import type { Rooms } from './rooms.ts'
import type { Ssh } from './ssh.ts'
import { tlsSource } from './tls.ts'
import type { Tunnels } from './tunnels.ts'

export interface ServiceRoom extends Disposable {
  readonly door: ServiceDoor
  recheck(whose: (person: Person) => boolean): Promise<void>
}

const listening_ms = 10_000

export function openServiceDoor(rooms: Rooms, tunnels: Tunnels, ssh: Ssh): ServiceRoom {
  const { config, stores, clock, bus, log, url } = rooms
  const opened = new DisposableStack()
  const failed = (err: unknown): void => log.error({ event: 'service.failed', err })
  rooms.askDevicesBy(async (device) => {
    const tunnel = await tunnels.find(device)
    if (!tunnel) throw new Error('The device has no tunnel.')
    if (!tunnel.carry || !tunnel.features?.has('services')) return undefined
    const signal = AbortSignal.timeout(listening_ms)
    const stream = await tunnel.carry(protocols.listening, '{}', signal)
    return answerOf(stream, signal)
  })
  const dial = opened.use(
    targets({
      findTunnel: tunnels.find,
      signer: rooms.signer,
      approvals: rooms.approvals,
      gatewayKey: gatewayKeys(),
      loginKey: rooms.loginKeyOf,
      spares: ssh.spares,
      compression: config.HAWSER_COMPRESSION,
      newId: newUid,
      async pin(service, fingerprint) {
        const mine = stores.of(service.tenant_id).services
        return (await mine.pin(service, fingerprint)) || (await mine.find(service.id))?.pinned === fingerprint
      },
    }),
  )
  const visiting = opened.use(
    visits({
      access: rooms.serviceAccess,
      sessions: rooms.sessions,
      open: ssh.openSessions,
      connections: (to) =>
        upstream(
          (gone) => dial.open(to, gone),
          to.method === 'sign-in' ? undefined : serviceLimits.requestsOfDevice.max,
        ),
      newId: newUid,
      clock,
      onError: failed,
    }),
  )
  let isStopping = false
  opened.defer(() => void (isStopping = true))
  opened.use(bus.hear('service.changed', ({ id }) => void visiting.recheck(({ service }) => service === id)))
  const from = whereFrom({ trusted: config.HAWSER_TRUSTED_PROXIES, header: config.HAWSER_ADDRESS_HEADER })
  const door = serviceDoor({
    addresses: rooms.serviceAddresses,
    openings: rooms.openings,
    console: url,
    isStopping: () => isStopping,
    plain:
      rooms.serviceAddresses.secure && tlsSource(config) !== undefined ? config.HAWSER_PLAIN_HTTP : undefined,
    visits: visiting,
    rate: limiter(clock, serviceLimits.rateOfSource),
    from: (request: IncomingMessage) => from(request),
    assertion: ({ visit }) => rooms.assertions.of(visit.admitted),
    onError(err, device) {
      if (device === undefined || rooms.lines.allows(device))
        log.error({ event: 'service.failed', device, err })
    },
  })
  return {
    door,
    recheck: async (whose) => visiting.recheck(whose),
    [Symbol.dispose]: () => opened.dispose(),
  }
}

async function answerOf(stream: Duplex, signal: AbortSignal): Promise<unknown> {
  stream.on('error', () => undefined)
  try {
    if (!(await multistream.readReply(stream, protocols.listening, signal))) return undefined
    return JSON.parse(await multistream.readLine(stream, longestListening_bytes, signal))
  } finally {
    stream.destroy()
  }
}
