// A device as a row of a list: its state, its name, what it reports about itself, and the actions that the
// user's role allows. What a device reports is rendered as text only.
import { Link } from '@tanstack/react-router'
import type { Device } from '@hawser/contract/devices'
import { useMay } from '../api.ts'
import { AgentPill } from './agent-state.tsx'
import { Button, LinkButton } from './button.tsx'
import { copy } from './copy.tsx'
import { useDeviceActions } from './device-actions.tsx'
import { Menu } from './menu.tsx'
import { useSshCommands } from '../ssh-commands.ts'
import { Lamp, Pill, TagList, When, type Tone } from './status.tsx'

export const statusWords: Readonly<Record<Device['status'], string>> = {
  accepted: 'accepted',
  pending: 'waiting',
  rejected: 'rejected',
  removed: 'removed',
  unused: 'unused',
}
export const statusTones: Readonly<Record<Device['status'], Tone>> = {
  accepted: 'good',
  pending: 'wait',
  rejected: 'bad',
  removed: 'plain',
  unused: 'plain',
}

interface DeviceRowProps {
  device: Device
  /** Whether the user may change it. */
  may: boolean
  ticked?: boolean
  tick?: (on: boolean) => void
}

export function DeviceRow({ device, may, ticked, tick }: DeviceRowProps) {
  const { name, online, status, info, remote_addr, tags, uid } = device
  const acts = useDeviceActions(device)
  const mayDelete = useMay('administrator')
  const mayConnect = useMay('observer')
  const lines = useSshCommands()
  const more = [
    { id: 'rename', text: 'Rename …', act: acts.rename },
    { id: 'tags', text: 'Tags …', act: acts.tag },
    ...(status === 'accepted' || status === 'pending'
      ? []
      : [{ id: 'reject', text: 'Reject', act: () => void acts.reject() }]),
    ...(status === 'accepted' ? [{ id: 'reject', text: 'Reject …', act: () => void acts.reject() }] : []),
    ...(mayDelete ? [{ id: 'delete', text: 'Delete …', danger: true, act: acts.remove }] : []),
  ].filter(({ id }) => !(id === 'reject' && status === 'rejected'))
  return (
    <li className="row">
      {tick && (
        <input
          type="checkbox"
          aria-label={`Choose ${name}`}
          checked={ticked ?? false}
          onChange={(event) => tick(event.currentTarget.checked)}
        />
      )}
      <Lamp on={online} />
      <div className="about">
        <p className="name">
          <Link to="/devices/$uid" params={{ uid }}>
            <strong>{name}</strong>
          </Link>{' '}
          {status !== 'accepted' && <Pill tone={statusTones[status]}>{statusWords[status]}</Pill>}{' '}
          {device.conflict && <Pill tone="bad">two machines use this identity</Pill>}{' '}
          {device.replaces && <Pill tone="bad">would replace {device.replaces.name}</Pill>}{' '}
          {status === 'accepted' && <AgentPill device={device} />} <TagList tags={tags} />
        </p>
        <p className="facts">
          {online ? (
            'online'
          ) : (
            <>
              offline, seen <When at={device.last_seen} />
            </>
          )}
          {[info.pretty_name, info.arch, remote_addr].filter(Boolean).map((fact) => ` · ${fact}`)}
        </p>
      </div>
      <div className="acts">
        {status === 'accepted' && online && mayConnect && (
          <LinkButton
            to="/devices/$uid/terminal"
            params={{ uid }}
            kind="quiet"
            small
            aria-label={`Terminal on ${name}`}
          >
            Terminal
          </LinkButton>
        )}
        {status === 'accepted' && (
          <Button
            kind="quiet"
            small
            aria-label={`Copy SSH line ${name}`}
            onPress={() => void copy(lines.ssh(device.namespace, name))}
          >
            Copy SSH line
          </Button>
        )}
        {may && status !== 'accepted' && (
          <Button small aria-label={`Accept ${name}`} onPress={() => void acts.accept()}>
            Accept
          </Button>
        )}
        {may && status === 'pending' && (
          <Button kind="quiet" small aria-label={`Reject ${name}`} onPress={() => void acts.reject()}>
            Reject
          </Button>
        )}
        {may && (
          <Menu label={`More for ${name}`} items={more}>
            More
          </Menu>
        )}
        {acts.dialogs}
      </div>
    </li>
  )
}
