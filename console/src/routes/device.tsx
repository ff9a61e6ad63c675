// One device: how to connect to it, what it reports about itself, and a link to its sessions.
import { Link, useNavigate, useParams } from '@tanstack/react-router'
import { useState } from 'react'
import type { Device } from '@hawser/contract/devices'
import { agentlessPlatform } from '@hawser/contract/tunnel'
import { api, useMay } from '../api.ts'
import { useNamespaceQuery } from '../namespace-query.ts'
import { AgentUpdate } from '../components/agent-state.tsx'
import { Button, LinkButton } from '../components/button.tsx'
import { Copyable } from '../components/copy.tsx'
import { useDeviceActions } from '../components/device-actions.tsx'
import { statusTones, statusWords } from '../components/device-row.tsx'
import { Page, Panel } from '../components/page.tsx'
import { useSshCommands } from '../ssh-commands.ts'
import { QueryContent } from '../components/query-content.tsx'
import { inFull, Lamp, Pill, TagList, When } from '../components/status.tsx'

export function DevicePage() {
  const { uid } = useParams({ from: '/shell/devices/$uid' })
  const device = useNamespaceQuery(
    ['device', uid],
    async () => (await api.devices.get({ params: { uid } })).body,
  )
  if (device.data) return <Shown device={device.data} />
  return (
    <Page title="Device">
      <QueryContent query={device}>{() => null}</QueryContent>
      <p>
        <Link to="/devices">All devices</Link>
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
  const { name, status, online, info } = device
  return (
    <Page
      title={name}
      lead={
        <span className="signs">
          <Lamp on={online} />{' '}
          {online ? (
            'online'
          ) : (
            <>
              offline, seen <When at={device.last_seen} />
            </>
          )}
          <Pill tone={statusTones[status]}>{statusWords[status]}</Pill>{' '}
          {device.conflict && (
            <Pill tone="bad">two machines use this identity: {device.conflict.addresses.join(', ')}</Pill>
          )}{' '}
          {device.replaces && <Pill tone="bad">would replace {device.replaces.name}</Pill>}{' '}
          <TagList tags={device.tags} />
        </span>
      }
      acts={
        <>
          {status === 'accepted' && mayConnect && (
            <LinkButton to="/devices/$uid/terminal" params={{ uid: device.uid }}>
              Terminal
            </LinkButton>
          )}
          {may && (
            <>
              {status !== 'accepted' && <Button onPress={() => void acts.accept()}>Accept</Button>}
              <Button kind="quiet" onPress={acts.rename}>
                Rename
              </Button>
              <Button kind="quiet" onPress={acts.tag}>
                Tags
              </Button>
              {status !== 'rejected' && (
                <Button kind="quiet" onPress={() => void acts.reject()}>
                  Reject
                </Button>
              )}
              {mayDelete && (
                <Button kind="danger" onPress={acts.remove}>
                  Delete
                </Button>
              )}
            </>
          )}
        </>
      }
    >
      {acts.dialogs}
      {status === 'accepted' ? (
        <Connect device={device} />
      ) : (
        <Panel title="Connect">
          <p className="soft">It can be reached once it is accepted.</p>
        </Panel>
      )}
      <Panel title="What it is">
        <dl className="facts-list">
          <Fact name="System">{info.pretty_name || info.id}</Fact>
          <Fact name="Processor">{info.arch}</Fact>
          <Fact name="Agent">
            {info.platform === agentlessPlatform
              ? `none; its own ${info.version}`
              : `${info.version}${info.platform ? `, ${info.platform}` : ''}`}
            {status === 'accepted' && <AgentUpdate device={device} may={may} />}
          </Fact>
          <Fact name="Address">{device.remote_addr}</Fact>
          <Fact name="MAC address">{device.identity.mac}</Fact>
          <Fact name="Seen last">{inFull(device.last_seen)}</Fact>
          <Fact name="State since">{inFull(device.status_update_at)}</Fact>
          <Fact name="First seen">{inFull(device.created_at)}</Fact>
          {device.enrolled_with && <Fact name="Joined">{joinedBy(device.enrolled_with)}</Fact>}
          <Fact name="Uid">
            <code>{device.uid}</code>
          </Fact>
        </dl>
      </Panel>
    </Page>
  )
}

function Fact({ name, children }: { name: string; children: React.ReactNode }) {
  if (children === '') return null
  return (
    <div>
      <dt>{name}</dt>
      <dd>{children}</dd>
    </div>
  )
}

const joinedBy = ({ kind, name }: NonNullable<Device['enrolled_with']>): string => {
  if (kind === 'token') return `with the enrolment token ${name}`
  return kind === 'rule' ? `by accept ${name}` : `by pairing, confirmed by ${name}`
}

function Connect({ device }: { device: Device }) {
  const [user, setUser] = useState('root')
  const lines = useSshCommands()
  const who = user.trim() || 'root'
  return (
    <Panel title="Connect">
      <label className="inline">
        User on the device
        <input
          value={user}
          autoCapitalize="none"
          autoComplete="off"
          spellCheck={false}
          onChange={(event) => setUser(event.currentTarget.value)}
        />
      </label>
      <p className="soft">With the SSH client you already have:</p>
      <Copyable text={lines.ssh(device.namespace, device.name, who)} name="the ssh line" />
      <p className="soft">Its SSHID, the login name for other programs and settings:</p>
      <Copyable text={lines.sshid(device.namespace, device.name, who)} name="the SSHID" />
    </Panel>
  )
}
