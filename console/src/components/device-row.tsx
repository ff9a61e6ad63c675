// A device as a row of a list: its state, its name, what it reports about itself, and the actions that the
// user's role allows. What a device reports is rendered as text only.
import { Link } from '@tanstack/react-router'
import type { Device } from '@hawser/contract/devices'
import { useMay } from '../api.ts'
import { AgentPill } from './agent-state.tsx'
import { Button, LinkButton } from './button.tsx'
import { copy } from './copy.tsx'
import { useDeviceActions } from './device-actions.tsx'
import { Icon } from './icon.tsx'
import { Menu } from './menu.tsx'
import { useSshCommands } from '../ssh-commands.ts'
import { Lamp, Pill, systemName, TagList, When, type Tone } from './status.tsx'
import { isolated, msg, rich, t } from '../language/language.ts'

export const statusWords: Readonly<Record<Device['status'], string>> = {
  accepted: msg('accepted'),
  pending: msg('waiting'),
  rejected: msg('rejected'),
  removed: msg('removed'),
  unused: msg('unused'),
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
    { id: 'rename', text: t('Rename …'), act: acts.rename },
    { id: 'tags', text: t('Tags …'), act: acts.tag },
    ...(status === 'accepted' || status === 'pending'
      ? []
      : [{ id: 'reject', text: t('Reject'), act: () => void acts.reject() }]),
    ...(status === 'accepted' ? [{ id: 'reject', text: t('Reject …'), act: () => void acts.reject() }] : []),
    ...(mayDelete ? [{ id: 'delete', text: t('Delete …'), danger: true, act: acts.remove }] : []),
  ].filter(({ id }) => !(id === 'reject' && status === 'rejected'))
  return (
    <li className="row">
      {tick && (
        <input
          type="checkbox"
          aria-label={t('Choose {name}', { name })}
          checked={ticked ?? false}
          onChange={(event) => tick(event.currentTarget.checked)}
        />
      )}
      <Lamp on={online} {...(status === 'accepted' ? {} : { state: status })} />
      <div className="about">
        <p className="name">
          <Link to="/devices/$uid" params={{ uid }}>
            <strong>{name}</strong>
          </Link>{' '}
          {status !== 'accepted' && <Pill tone={statusTones[status]}>{t(statusWords[status])}</Pill>}{' '}
          {device.conflict && <Pill tone="bad">{t('two machines use this identity')}</Pill>}{' '}
          {device.replaces && (
            <Pill tone="bad">{t('would replace {name}', { name: device.replaces.name })}</Pill>
          )}{' '}
          {status === 'accepted' && <AgentPill device={device} />} <TagList tags={tags} />
        </p>
        <p className="facts">
          {online ? (
            t('online')
          ) : (
            <>{rich('offline, seen {when}', { when: <When at={device.last_seen} /> })}</>
          )}
          {[systemName(info), isolated(info.arch), remote_addr].filter(Boolean).map((fact) => ` · ${fact}`)}
        </p>
      </div>
      <div className="acts">
        {status === 'accepted' && online && mayConnect && (
          <LinkButton
            to="/devices/$uid/terminal"
            params={{ uid }}
            kind="bare"
            small
            aria-label={t('Terminal on {name}', { name })}
          >
            <Icon name="terminal" /> {t('Terminal')}
          </LinkButton>
        )}
        {status === 'accepted' && (
          <Button
            kind="bare"
            small
            look="square"
            aria-label={t('Copy SSH line {name}', { name })}
            title={t('Copy SSH line')}
            onPress={() => copy(lines.ssh(device.namespace, name))}
          >
            <Icon name="copy" />
            <span className="unseen">{t('Copy SSH line')}</span>
          </Button>
        )}
        {may && status !== 'accepted' && status !== 'removed' && (
          <Button kind="quiet" small aria-label={t('Accept {name}', { name })} onPress={acts.accept}>
            {t('Accept')}
          </Button>
        )}
        {may && status === 'pending' && (
          <Button kind="bare" small aria-label={t('Reject {name}', { name })} onPress={acts.reject}>
            {t('Reject')}
          </Button>
        )}
        {may && (
          <Menu label={t('More for {name}', { name })} items={more} look="button bare small square">
            <Icon name="more" />
          </Menu>
        )}
        {acts.dialogs}
      </div>
    </li>
  )
}
