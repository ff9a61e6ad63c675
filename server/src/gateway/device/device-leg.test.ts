// Dialling a device whose tunnel cannot be looked for: the caller is told that the device is unreachable, and why.
import { expect, test } from 'vitest'
import { Failure } from '@hawser/contract/failures'
import type { Reachable } from '../../domain/access/logins.ts'
import { Unreachable } from '../../tunnel/tunnel.ts'
import { dialDevice, DeviceUnreachable } from './device-leg.ts'

test.each([new Failure('unavailable'), new Unreachable('The node that has it does not answer.')])(
  'a search for the tunnel that fails with %s is an unreachable device',
  async (cause) => {
    const device = { enrolment_key: null } as Reachable['device']
    const findTunnel = () => Promise.reject(cause)
    const dialling = dialDevice({ findTunnel }, device, 'id', new AbortController().signal)
    await expect(dialling).rejects.toBeInstanceOf(DeviceUnreachable)
    await expect(dialling).rejects.toMatchObject({ changed: false, cause })
  },
)
