// The ports on which programs of a device listen, as its agent says when it is asked.
import { Failure } from '@hawser/contract/failures'
import type { ListeningAnswer } from '@hawser/contract/tunnel'
import type { DeviceRow } from '../../storage/devices.ts'
import type { Stores } from '../../storage/stores.ts'
import type { Rules } from '../callers/rules.ts'

export interface ListeningParts {
  readonly stores: Stores
  /** Undefined: the agent does not know the question. Throws when the device is away. */
  ask(device: DeviceRow): Promise<ListeningAnswer | undefined>
}

const refusals = {
  off: 'The agent of the device permits no services; see HAWSER_SERVICES there.',
  failed: 'The agent could not find out on which ports programs listen.',
} as const

export function listening({ stores, ask }: ListeningParts): Pick<Rules<'services'>, 'scan'> {
  return {
    async scan({ params }, { tenant_id }) {
      const device = await stores.of(tenant_id).devices.find(params.uid)
      if (device?.status !== 'accepted') throw new Failure('notFound')
      const answer = await ask(device).catch((cause: unknown) => {
        throw new Failure('conflict', { message: 'The device is offline, or does not answer.', cause })
      })
      if (!answer)
        throw new Failure('conflict', { message: 'Only newer agents of Hawser can list their ports.' })
      if ('refused' in answer) throw new Failure('conflict', { message: refusals[answer.refused] })
      return { ports: [...answer.ports] }
    },
  }
}
