// The ports on which programs of a device listen, as its agent says when it is asked.
import { isIP } from 'node:net'
import { Failure } from '@hawser/contract/failures'
import { mostListening, type ListeningPort } from '@hawser/contract/tunnel'
import { safeText } from '../../kit/log.ts'
import type { DeviceRow } from '../../storage/devices.ts'
import type { Stores } from '../../storage/stores.ts'
import type { Rules } from '../callers/rules.ts'

export interface ListeningParts {
  readonly stores: Stores
  /** The answer of the agent, unread; undefined: it does not know the question. Throws when the device is away. */
  ask(device: DeviceRow): Promise<unknown>
}

const refusals = {
  off: 'Services are switched off on the device (HAWSER_SERVICES).',
  failed: 'The agent could not list the listening ports.',
} as const

export function listening({ stores, ask }: ListeningParts): Pick<Rules<'services'>, 'scan'> {
  return {
    async scan({ params }, { tenant_id }) {
      const device = await stores.of(tenant_id).devices.find(params.uid)
      if (device?.status !== 'accepted') throw new Failure('notFound')
      const answer = await ask(device).catch((cause: unknown) => {
        throw new Failure('conflict', { message: 'The device is offline, or does not answer.', cause })
      })
      if (answer === undefined)
        throw new Failure('conflict', { message: 'This agent cannot list listening ports; update it.' })
      const ports = portsIn(answer)
      if (!ports) throw new Failure('conflict', { message: refusals[isOff(answer) ? 'off' : 'failed'] })
      return { ports }
    },
  }
}

const isOff = (answer: unknown): boolean => (answer as { refused?: unknown } | null)?.refused === 'off'

/** Undefined: the answer is no list of ports. */
function portsIn(answer: unknown): ListeningPort[] | undefined {
  const ports = (answer as { ports?: unknown } | null)?.ports
  if (!Array.isArray(ports) || ports.length > mostListening || !ports.every(isPort)) return undefined
  return ports.map(({ address, port, program }) => ({ address, port, program: safeText(program) }))
}

function isPort(value: unknown): value is ListeningPort {
  const { address, port, program } = (value ?? {}) as { [K in keyof ListeningPort]?: unknown }
  const isNumber = Number.isInteger(port) && Number(port) > 0 && Number(port) < 65_536
  return isNumber && typeof address === 'string' && isIP(address) !== 0 && typeof program === 'string'
}
