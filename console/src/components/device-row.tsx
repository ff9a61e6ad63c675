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
import { MoreMenu } from './menu.tsx'
import { PublicMark, usePublicDevices } from './public-mark.tsx'
import { Row } from './row.tsx'
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
  may: boolean
}

export function DeviceRow({ device, may }: DeviceRowProps) {
  const { name, online, status, info, remote_addr, tags, uid } = device
  const acts = useDeviceActions(device)
  const mayConnect = useMay('observer')
  const publicDevices = usePublicDevices()
  const lines = useSshCommands()
  return (
    <Row
      sign={<Lamp on={online} state={status === 'accepted' ? undefined : status} />}
      name={
        <>
          <Link to="/devices/$uid" params={{ uid }}>
            <strong>{name}</strong>
          </Link>{' '}
          {status !== 'accepted' && <Pill tone={statusTones[status]}>{t(statusWords[status])}</Pill>}{' '}
          {status === 'accepted' && (device.public_url || publicDevices.has(device.uid)) && <PublicMark />}{' '}
          {device.conflict && <Pill tone="bad">{t('two machines use this identity')}</Pill>}{' '}
          {device.replaces && (
            <Pill tone="bad">{t('would replace {name}', { name: device.replaces.name })}</Pill>
          )}{' '}
          {status === 'accepted' && <AgentPill device={device} />} <TagList tags={tags} />
        </>
      }
      facts={
        <>
          {online ? t('online') : rich('offline, last seen {when}', { when: <When at={device.last_seen} /> })}
          {[systemName(info), isolated(info.arch), remote_addr].filter(Boolean).map((fact) => ` · ${fact}`)}
        </>
      }
      acts={
        <>
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
              aria-label={t('Copy SSH command for {name}', { name })}
              title={t('Copy SSH command')}
              onPress={() => copy(lines.ssh(device.namespace, name))}
            >
              <Icon name="copy" />
              <span className="unseen">{t('Copy SSH command')}</span>
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
            <MoreMenu
              name={name}
              items={acts.items.filter(({ id }) => id !== 'reject' || status !== 'pending')}
              look="button bare small square"
            />
          )}
          {acts.dialogs}
        </>
      }
    />
  )
}
