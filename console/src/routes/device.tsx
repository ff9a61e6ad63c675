// One device: how to connect to it, what it reports about itself, what happened to it, and who gets in.
import { Link, useNavigate, useParams } from '@tanstack/react-router'
import { useState } from 'react'
import type { Device } from '@hawser/contract/devices'
import { agentlessPlatform } from '@hawser/contract/tunnel'
import { api, useMay } from '../api.ts'
import { useBodyQuery } from '../namespace-query.ts'
import { AgentUpdate } from '../components/agent-state.tsx'
import { Button, LinkButton } from '../components/button.tsx'
import { Copyable } from '../components/copy.tsx'
import { canAccept, useDeviceActions } from '../components/device-actions.tsx'
import { DeviceContainers } from '../components/device-containers.tsx'
import { containerPlatform, DeviceForwards } from '../components/device-forwards.tsx'
import { DeviceNotesPanel } from '../components/device-notes.tsx'
import { DeviceAccess } from '../components/device-access.tsx'
import { OwnSessions } from '../components/continue-session.tsx'
import { DeviceSessions } from '../components/device-sessions.tsx'
import { DeviceTimeline } from '../components/device-timeline.tsx'
import { statusTones, statusWords } from '../components/device-row.tsx'
import { DeviceTrafficPanel } from '../components/device-traffic.tsx'
import { LoginWhy } from '../components/login-why.tsx'
import { DialogButton } from '../components/dialog-button.tsx'
import { verbatim } from '../components/form.tsx'
import { Icon } from '../components/icon.tsx'
import { MoreMenu } from '../components/menu.tsx'
import { PublicMark } from '../components/public-mark.tsx'
import { DeviceServices, useIsPublic } from '../components/service-panel.tsx'
import { OnlineHistory } from '../components/online-history.tsx'
import { Page, Panel } from '../components/page.tsx'
import { Fact } from '../components/row.tsx'
import { useSshCommands } from '../ssh-commands.ts'
import { QueryContent } from '../components/query-content.tsx'
import { inFull, Lamp, Pill, TagList, When } from '../components/status.tsx'
import { isolated, rich, t } from '../language/language.ts'
import { said } from '../language/said.ts'

export function DevicePage() {
  const { uid } = useParams({ from: '/shell/devices/$uid' })
  const device = useBodyQuery(['device', uid], () => api.devices.get({ params: { uid } }))
  if (device.data) return <Shown device={device.data} />
  return (
    <Page title={t('Device')}>
      <QueryContent query={device}>{() => null}</QueryContent>
      <p>
        <Link to="/devices">{t('All devices')}</Link>
      </p>
    </Page>
  )
}

function Shown({ device }: { device: Device }) {
  const navigate = useNavigate()
  const may = useMay('operator')
  const mayDelete = useMay('administrator')
  const mayConnect = useMay('observer')
  const acts = useDeviceActions(device, () => void navigate({ to: '/devices' }))
  const { name, status } = device
  return (
    <Page
      title={name}
      hides={{ from: 'operator', what: t('accept, reject, name and tag devices') }}
      lead={<Signs device={device} />}
      acts={
        <>
          {status === 'accepted' && mayConnect && <Terminal device={device} />}
          {may && canAccept(device) && <Button onPress={acts.accept}>{t('Accept')}</Button>}
          {mayDelete && (
            <DialogButton kind="quiet" dialog={(close) => <LoginWhy device={device} close={close} />}>
              {t('Why?')}
            </DialogButton>
          )}
          {may && <MoreMenu name={name} look="button quiet" items={acts.items} />}
        </>
      }
    >
      {acts.dialogs}
      {device.offline_reason !== undefined && (
        <p className="says">{said(device.offline_reason, device.offline_parts)}</p>
      )}
      {device.waiting_reason !== undefined && (
        <p className="says">{said(device.waiting_reason, device.waiting_parts)}</p>
      )}
      {status === 'accepted' && <OwnSessions device={device.uid} />}
      <div className="with-side">
        <div className="stack">
          {status === 'accepted' && <Connect device={device} />}
          {status === 'accepted' && <DeviceServices device={device} />}
          {canAccept(device) && (
            <Panel title={t('Connect')}>
              <p className="soft">{t('You can connect to it once it is accepted.')}</p>
            </Panel>
          )}
          <Panel title={t('Connection')}>
            <OnlineHistory device={device} />
          </Panel>
          <div className="columns">
            <DeviceSessions uid={device.uid} />
            <DeviceTimeline uid={device.uid} />
          </div>
          <DeviceContainers device={device} />
          <DeviceAccess device={device} />
        </div>
        <div className="stack">
          <Details device={device} may={may} />
          <DeviceNotesPanel device={device} />
          <DeviceTrafficPanel device={device} />
        </div>
      </div>
    </Page>
  )
}

const Signs = ({ device }: { device: Device }) => (
  <span className="signs">
    {useIsPublic(device) && <PublicMark />}
    <span className="state">
      <Lamp on={device.online} />
      {device.online ? (
        t('online')
      ) : (
        <span>{rich('offline, last seen {when}', { when: <When at={device.last_seen} /> })}</span>
      )}
    </span>
    <Pill tone={statusTones[device.status]}>{t(statusWords[device.status])}</Pill>{' '}
    {device.conflict && (
      <Pill tone="bad">
        {t('two machines use this identity: {addresses}', {
          addresses: device.conflict.addresses.join(', '),
        })}
      </Pill>
    )}{' '}
    {device.replaces && <Pill tone="bad">{t('would replace {name}', { name: device.replaces.name })}</Pill>}{' '}
    <TagList tags={device.tags} />
  </span>
)

const Details = ({ device, may }: { device: Device; may: boolean }) => (
  <Panel title={t('Details')}>
    <dl className="facts-list">
      <Fact name={t('System')}>{isolated(device.info.pretty_name || device.info.id)}</Fact>
      <Fact name={t('Processor')}>{isolated(device.info.arch)}</Fact>
      <Fact name={t('Agent')}>
        {device.info.platform === agentlessPlatform
          ? t('none; its own {version}', { version: device.info.version })
          : [device.info.version, device.info.platform].filter(Boolean).map(isolated).join(', ')}
        {device.status === 'accepted' && <AgentUpdate device={device} may={may} />}
      </Fact>
      <Fact name={t('Address')}>{device.remote_addr}</Fact>
      <Fact name={device.info.platform === containerPlatform ? t('Container ID') : t('MAC address')}>
        {isolated(device.identity.mac)}
      </Fact>
      <Fact name={t('Last seen')}>{inFull(device.last_seen)}</Fact>
      {device.ping_interval !== undefined && (
        <Fact name={t('Pings')}>
          {t('every {seconds} s while nobody is connected', { seconds: device.ping_interval })}
        </Fact>
      )}
      <Fact name={t('State since')}>{inFull(device.status_update_at)}</Fact>
      <Fact name={t('First seen')}>{inFull(device.created_at)}</Fact>
      {device.enrolled_with && <Fact name={t('Joined')}>{joinedBy(device.enrolled_with)}</Fact>}
      <div className="whole">
        <dt>{t('Uid')}</dt>
        <dd>
          <code>{device.uid}</code>
        </dd>
      </div>
    </dl>
  </Panel>
)

/** Nothing while the device is offline; the sentence above gives the reason. */
function Terminal({ device: { uid, online, offline_reason, offline_parts } }: { device: Device }) {
  if (online)
    return (
      <LinkButton to="/devices/$uid/terminal" params={{ uid }}>
        <Icon name="terminal" /> {t('Terminal')}
      </LinkButton>
    )
  return (
    <span title={said(offline_reason ?? t('The device is offline.'), offline_parts)}>
      <Button isDisabled aria-label={t('Terminal: the device is offline')}>
        <Icon name="terminal" /> {t('Terminal')}
      </Button>
    </span>
  )
}

const joinedBy = ({ kind, name }: NonNullable<Device['enrolled_with']>): string => {
  if (kind === 'token') return t('with the enrolment token {name}', { name })
  return kind === 'rule'
    ? t('by accept rule {name}', { name })
    : t('by pairing, confirmed by {name}', { name })
}

function Connect({ device }: { device: Device }) {
  const [user, setUser] = useState('root')
  const lines = useSshCommands()
  const who = user.trim() || 'root'
  return (
    <Panel title={t('Connect')}>
      <div className="connect">
        <label className="inline">
          {t('User on the device')}
          <input value={user} {...verbatim} onChange={(event) => setUser(event.currentTarget.value)} />
        </label>
        <div>
          <p>{t('With your SSH client')}</p>
          <Copyable text={lines.ssh(device.namespace, device.name, who)} name={t('the ssh command')} />
        </div>
        <div>
          <p>{t('SSHID, the login name for other programs')}</p>
          <Copyable text={lines.sshid(device.namespace, device.name, who)} name={t('the SSHID')} />
        </div>
      </div>
      <details className="forwards">
        <summary>{t('Forward a port to your machine')}</summary>
        <DeviceForwards device={device} user={who} />
      </details>
    </Panel>
  )
}
