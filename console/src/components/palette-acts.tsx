// Does what was chosen in the command palette with a device or a session, by the same actions as their pages:
// what cannot be undone asks first.
import { useNavigate } from '@tanstack/react-router'
import { useEffect, useRef } from 'react'
import type { Device } from '@hawser/contract/devices'
import type { Session } from '@hawser/contract/sessions'
import { useDeviceActions } from './device-actions.tsx'
import type { Act, DeviceVerb } from './palette-entries.ts'
import { useSessionActions } from './session-actions.tsx'

/** Acts of this file. */
export type DialogAct = Extract<Act, { what: 'device' | 'close' }>

export function Acting({ act }: { act: DialogAct }) {
  return act.what === 'device' ? (
    <DeviceActing device={act.device} verb={act.verb} />
  ) : (
    <SessionActing session={act.session} />
  )
}

/** Once, although React calls effects twice in development. */
function useOnce(act: () => void): void {
  const done = useRef(false)
  const newest = useRef(act)
  newest.current = act
  useEffect(() => {
    if (done.current) return
    done.current = true
    newest.current()
  }, [])
}

function DeviceActing({ device, verb }: { device: Device; verb: DeviceVerb }) {
  const navigate = useNavigate()
  const acts = useDeviceActions(device, () => {
    if (location.pathname.startsWith(`/devices/${device.uid}`)) void navigate({ to: '/devices' })
  })
  useOnce(() => void acts[verb]())
  return acts.dialogs
}

function SessionActing({ session }: { session: Session }) {
  const acts = useSessionActions(session)
  useOnce(acts.close)
  return acts.dialogs
}
