// Web services: the server connects people's browsers to what this device reaches. The code for it is loaded
// with the first request, because the memory of devices is scarce.
import type { Duplex } from 'node:stream'
import type { ListeningAnswer, TargetAnswer, TargetRequest } from '@hawser/contract/tunnel'
import type { AgentConfig } from './config.ts'
import type { EnrolledDevice } from './enrolled-device.ts'
import type { ServedDevice } from './serving.ts'
import type { Targets } from './targets.ts'

export interface Services {
  /** Connects the stream to a target. `nonce`: of the request for the tunnel. */
  target(stream: Duplex, request: unknown, nonce: string): Promise<void>
  listening(stream: Duplex): Promise<void>
}

interface ServicesParts {
  readonly config: Pick<AgentConfig, 'services'>
  readonly served: ServedDevice | undefined
  readonly device: Pick<EnrolledDevice, 'now' | 'serverKey'>
  session(): Disposable
  log(event: Record<string, unknown>): void
}

const off = { refused: 'off' } as const

export const noServices: Services = {
  target: async (stream) => answer(stream, off),
  listening: async (stream) => answer(stream, off),
}

export function servicesOf({ config, served, device, session, log }: ServicesParts): Services {
  const { services: setting } = config
  if (setting === 'off') return noServices
  const ownAddresses = served && (served.addresses ?? (async () => []))
  const load = async () => {
    const { targetsOf } = await import('./targets.ts')
    return targetsOf({ setting, serverKey: device.serverKey, ownAddresses, session })
  }
  const list = async () => {
    using _ = session()
    const { listeningPorts } = await import('./listening.ts')
    return await listeningPorts()
  }
  let targets: Promise<Targets> | undefined
  let listing: Promise<ListeningAnswer> | undefined
  return {
    async target(stream, request, nonce) {
      const connect = await (targets ??= load())
      const refused = await connect(stream, request, { uid: device.now().uid, nonce })
      if (refused === undefined) return
      const { host, port } = (request ?? {}) as Partial<TargetRequest>
      log({ level: 'debug', event: 'target.refused', host, port, why: refused })
      answer(stream, { refused })
    },
    async listening(stream) {
      // The ports of this machine are not those of a container.
      if (served) return answer(stream, { refused: 'failed' })
      // Those who ask at the same time get the same list.
      listing ??= list().finally(() => (listing = undefined))
      answer(stream, await listing)
    },
  }
}

function answer(stream: Duplex, line: TargetAnswer | ListeningAnswer): void {
  stream.end(`${JSON.stringify(line)}\n`)
  stream.resume()
}
