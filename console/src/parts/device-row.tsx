// A device as one row of a list: whether it is online, what it is called, what it says about itself, and what
// the person may do to it. What a device says is text, whatever it looks like.
import { Link } from '@tanstack/react-router'
import type { Device } from '@hawser/contract/devices'
import { useMay } from '../api.ts'
import { Button, LinkButton } from './button.tsx'
import { copy } from './copy.tsx'
import { useDeviceActs } from './device-acts.tsx'
import { Menu } from './menu.tsx'
import { useLines } from './ssh-line.ts'
import { Lamp, Pill, TagList, When, type Tone } from './status.tsx'

export const statusWords: Readonly<Record<Device['status'], string>> = {
  accepted: 'accepted',
  pending: 'waiting',
  rejected: 'rejected',
  removed: 'removed',
  unused: 'set aside',
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
  /** May change it. */
  may: boolean
  ticked?: boolean
  tick?: (on: boolean) => void
}

export function DeviceRow({ device, may, ticked, tick }: DeviceRowProps) {
  const { name, online, status, info, remote_addr, tags, uid } = device
  const acts = useDeviceActs(device)
  const mayDelete = useMay('administrator')
  const mayConnect = useMay('observer')
  const lines = useLines()
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
          {device.replaces && <Pill tone="bad">would replace {device.replaces.name}</Pill>}{' '}
          <TagList tags={tags} />
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
