// The overview: the figures of the namespace, pending devices, and devices seen last.
import { Link } from '@tanstack/react-router'
import type { Namespace } from '@hawser/contract/namespaces'
import { api, useMay, useMe } from '../api.ts'
import { useNamespaceQuery } from '../namespace-query.ts'
import { LinkButton } from '../components/button.tsx'
import { Copyable } from '../components/copy.tsx'
import { DeviceRow } from '../components/device-row.tsx'
import { Page, Panel } from '../components/page.tsx'
import { useSshCommands } from '../ssh-commands.ts'
import { QueryContent, Empty, QueryList } from '../components/query-content.tsx'
import { When } from '../components/status.tsx'
import { useNamespaces } from './shell.tsx'

/**
 * Shown when a subscription has ended with too many devices: all are unreachable until the owner has chosen.
 */
function OverLimit({ namespace: { device_count, max_devices } }: { namespace: Namespace }) {
  const owner = useMay('owner')
  if (max_devices <= 0 || device_count <= max_devices) return null
  return (
    <p className="note" role="alert">
      The namespace has {device_count} devices and {max_devices} are free, so nobody reaches any of them.{' '}
      {owner ? (
        <Link to="/billing">Choose which ones stay, or subscribe</Link>
      ) : (
        'Its owner has to choose which ones stay, or to subscribe.'
      )}
    </p>
  )
}

export function OverviewPage() {
  const me = useMe()
  const may = useMay('operator')
  const here = useNamespaces().data?.body.find(({ tenant_id }) => tenant_id === me.tenant)
  const namespace = here?.name ?? ''
  const lines = useSshCommands()
  const stats = useNamespaceQuery(['stats'], async () => (await api.system.stats()).body)
  const waiting = useNamespaceQuery(['devices', 'waiting'], () =>
    api.devices.list({ query: { status: 'pending', sort_by: 'created_at', order_by: 'asc', per_page: 5 } }),
  )
  const accepted = useNamespaceQuery(['devices', 'newest'], () =>
    api.devices.list({ query: { status: 'accepted', sort_by: 'last_seen', order_by: 'desc', per_page: 5 } }),
  )
  const news = useNamespaceQuery(
    ['announcements', 'newest'],
    () => api.announcements.list({ query: { per_page: 1 } }),
    false,
  )
  const newest = news.data?.body[0]
  const none = accepted.data?.total === 0 && waiting.data?.total === 0

  return (
    <Page
      title={namespace || 'Overview'}
      lead={`Signed in as ${me.user}, ${me.role} of this namespace`}
      acts={
        <LinkButton to="/add-device" kind="main">
          Add a device
        </LinkButton>
      }
    >
      {newest && (
        <p className="note">
          <Link to="/announcements">{newest.title}</Link>{' '}
          <span className="soft">
            announced <When at={newest.date} />
          </span>
        </p>
      )}
      {here && <OverLimit namespace={here} />}
      <QueryContent query={stats}>
        {(figures) => (
          <ul className="figures" aria-label="Figures">
            <li>
              <Link to="/devices" search={{ status: 'accepted' }}>
                <strong>{figures.online_devices}</strong> online
                <span className="soft">
                  {' '}
                  of {figures.registered_devices} {figures.registered_devices === 1 ? 'device' : 'devices'}
                </span>
              </Link>
            </li>
            <li>
              <Link to="/devices" search={{ status: 'pending' }}>
                <strong>{figures.pending_devices}</strong> waiting
                <span className="soft"> to be let in</span>
              </Link>
            </li>
            <li>
              <Link to="/sessions">
                <strong>{figures.active_sessions}</strong> live
                <span className="soft"> {figures.active_sessions === 1 ? 'session' : 'sessions'}</span>
              </Link>
            </li>
          </ul>
        )}
      </QueryContent>
      {waiting.data && waiting.data.total > 0 && (
        <Panel
          title="Waiting to be let in"
          tone="wanting"
          acts={
            waiting.data.total > 5 && (
              <Link to="/devices" search={{ status: 'pending' }}>
                All {waiting.data.total}
              </Link>
            )
          }
        >
          <QueryList
            query={waiting}
            label="Devices that wait"
            empty={null}
            row={(device) => <DeviceRow key={device.uid} device={device} may={may} />}
          />
        </Panel>
      )}
      {none ? (
        <Panel title="Add your first device">
          <p>Run this line on a Linux device, as root or with sudo. It will then ask to be let in, here.</p>
          <Copyable text={lines.install()} name="the line that installs the agent" />
        </Panel>
      ) : (
        <Panel title="Seen last" acts={<Link to="/devices">All devices</Link>}>
          <QueryList
            query={accepted}
            label="Devices seen last"
            empty={<Empty title="No device is accepted yet." />}
            row={(device) => <DeviceRow key={device.uid} device={device} may={may} />}
          />
        </Panel>
      )}
    </Page>
  )
}
