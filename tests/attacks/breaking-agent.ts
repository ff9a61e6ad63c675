// A rogue agent with a tunnel of ours: it lets everybody in, says nothing, and once it begins to break, it continues
// its newest stream and breaks it again.
import { generateKeyPairSync } from 'node:crypto'
import type { Duplex } from 'node:stream'
import { ResumableStream } from '@hawser/mux'
import { acceptConnection, privateKeyFrom } from '@hawser/ssh'
import { pingInterval } from '../../agent/src/ping-interval.ts'
import { resumableStreams } from '../../agent/src/resumable-streams.ts'
import { holdTunnel } from '../../agent/src/tunnel.ts'
import type { Service } from '../harness/service.ts'

export interface BreakingAgent extends Disposable {
  readonly uid: string
  readonly name: string
  /** How often a stream was continued. */
  readonly resumes: number
  begin(): void
}

/** `accept`: makes the device one that people may reach. */
export async function startBreakingAgent(
  service: Pick<Service, 'url' | 'api'>,
  tenant_id: string,
  accept: (uid: string) => Promise<unknown>,
): Promise<BreakingAgent> {
  const { privateKey: key, publicKey } = generateKeyPairSync('rsa', { modulusLength: 2048 })
  const body = {
    identity: { mac: '02:00:00:00:00:77' },
    hostname: 'breaking',
    public_key: publicKey.export({ type: 'pkcs1', format: 'pem' }),
    tenant_id,
    info: { id: 'linux', pretty_name: 'Linux', version: 'v0.16.4', arch: 'amd64', platform: 'native' },
  }
  await accept((await service.api().devices.auth({ body })).body.uid)
  const device = (await service.api().devices.auth({ body })).body

  const stopping = new AbortController()
  let served: ResumableStream | undefined
  const serve = async (stream: Duplex): Promise<void> => {
    if (stream instanceof ResumableStream) served = stream
    const connection = await acceptConnection(stream, {
      hostKeys: [privateKeyFrom(key)],
      methods: ['password'],
      authenticate: () => Promise.resolve('accept'),
      channelTypes: ['session'],
    })
    for await (const opening of connection.channels) {
      const channel = opening.accept()
      void (async () => {
        for await (const request of channel.requests) request.reply(true)
      })()
    }
  }
  const honest = resumableStreams(serve, stopping.signal)
  const carriers: Duplex[] = []
  let resumes = 0
  const parts: Parameters<typeof holdTunnel>[0] = {
    server: service.url,
    key,
    features: ['resume'],
    serve,
    resumable: {
      ...honest,
      open: async (head, carrier, tunnel) => {
        carriers.push(carrier)
        return honest.open(head, carrier, tunnel)
      },
      resume(_, carrier) {
        resumes += 1
        carrier.on('error', () => undefined)
        carrier.write(`${JSON.stringify(served?.detach())}\n`)
        carrier.once('data', () => carrier.destroy())
      },
    },
    reports: {
      report: () => ({}),
      told: () => undefined,
      watch: () => ({ [Symbol.dispose]: () => undefined }),
    },
    interval: pingInterval(),
    connection: () => ({}),
    leaving: () => 'stopped',
    isHangUp: async () => false,
    hangUp: async () => undefined,
    onLost: () => undefined,
    log: () => undefined,
  }
  const up = Promise.withResolvers<void>()
  void holdTunnel(parts, device, stopping.signal, () => up.resolve()).catch(() => undefined)
  await up.promise
  return {
    uid: device.uid,
    name: device.name,
    get resumes() {
      return resumes
    },
    begin() {
      for (const carrier of carriers.splice(0)) carrier.destroy()
    },
    [Symbol.dispose]: () => stopping.abort(),
  }
}
