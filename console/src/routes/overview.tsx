// The overview: the figures of the namespace, what needs somebody, what happened, and devices seen last.
import type { UseQueryResult } from '@tanstack/react-query'
import { Link } from '@tanstack/react-router'
import type { Namespace } from '@hawser/contract/namespaces'
import type { Device } from '@hawser/contract/devices'
import { api, useMay, useMe } from '../api.ts'
import { useBodyQuery, useNamespaceQuery } from '../namespace-query.ts'
import { Attention } from '../components/attention.tsx'
import { BarChart, countsByDay } from '../components/bar-chart.tsx'
import { LinkButton } from '../components/button.tsx'
import { Copyable } from '../components/copy.tsx'
import { DeviceRow } from '../components/device-row.tsx'
import { FirstSteps } from '../components/first-steps.tsx'
import { Icon } from '../components/icon.tsx'
import { Page, Panel } from '../components/page.tsx'
import { useSshCommands } from '../ssh-commands.ts'
import { QueryContent, Empty, QueryList } from '../components/query-content.tsx'
import { When } from '../components/status.tsx'
import { actionText, actorName } from '../components/person.tsx'
import { useNamespaces } from './shell.tsx'
import { bytesText, shortDay } from '../language/format.ts'
import { rich, t, tn } from '../language/language.ts'

/** For an ended subscription with too many devices: all are unreachable until the owner has chosen. */
function OverLimit({ namespace: { device_count, max_devices } }: { namespace: Namespace }) {
  const owner = useMay('owner')
  if (max_devices <= 0 || device_count <= max_devices) return null
  return (
    <p className="note" role="alert">
      {t(
        'The namespace has {device_count} devices, but only {max_devices} are free, so nobody can connect to any of them.',
        { device_count, max_devices },
      )}{' '}
      {owner ? (
        <Link to="/billing">{t('Choose which devices stay, or subscribe')}</Link>
      ) : (
        t('Its owner must choose which devices stay, or subscribe.')
      )}
    </p>
  )
}

const [chart_days, mostPages, page_size] = [14, 5, 100] as const
const day_ms = 86_400_000
/** Waiting devices; their page has all of them. */
const mostWaiting = 3

/** Back to the first day of the charts, or five pages. */
async function recent<T>(
  fetchPage: (page: number) => Promise<{ body: T[] }>,
  momentOf: (item: T) => string,
): Promise<T[]> {
  const first = Date.now() - chart_days * day_ms
  const found: T[] = []
  for (let page = 1; page <= mostPages; page += 1) {
    const { body } = await fetchPage(page)
    found.push(...body)
    const oldest = body.at(-1)
    if (!oldest || body.length < page_size || Date.parse(momentOf(oldest)) < first) break
  }
  return found
}

/** For a chart that lacks older items. */
function Cut({ rows }: { rows: readonly unknown[] | undefined }) {
  if (rows === undefined || rows.length < mostPages * page_size) return null
  return <p className="soft">{t('Only the newest {count} are counted.', { count: rows.length })}</p>
}

/** Refused logins are for administrators. */
function useRecent() {
  const administers = useMay('administrator')
  const sessions = useNamespaceQuery(
    ['recent sessions'],
    () =>
      recent(
        (page) => api.sessions.list({ query: { page, per_page: page_size } }),
        ({ started_at }) => started_at,
      ),
    false,
  ).data
  const refusals = useNamespaceQuery(
    ['recent refusals', administers],
    () =>
      administers
        ? recent(
            (page) => api.logins.refusals({ query: { page, per_page: page_size } }),
            ({ at }) => at,
          )
        : Promise.resolve([]),
    false,
  ).data
  return { sessions, refusals: administers ? refusals : undefined }
}

export function OverviewPage() {
  const me = useMe()
  const may = useMay('operator')
  const here = useNamespaces().data?.body.find(({ tenant_id }) => tenant_id === me.tenant)
  const namespace = here?.name ?? ''
  const lines = useSshCommands()
  const stats = useBodyQuery(['stats'], () => api.system.stats())
  const waiting = useNamespaceQuery(['devices', 'waiting'], () =>
    api.devices.list({
      query: { status: 'pending', sort_by: 'created_at', order_by: 'asc', per_page: mostWaiting },
    }),
  )
  const accepted = useNamespaceQuery(['devices', 'newest'], () =>
    api.devices.list({ query: { status: 'accepted', sort_by: 'last_seen', order_by: 'desc', per_page: 5 } }),
  )
  const news = useNamespaceQuery(
    ['announcements', 'newest'],
    () => api.announcements.list({ query: { per_page: 1 } }),
    false,
  )
  const { sessions, refusals } = useRecent()
  const newest = news.data?.body[0]
  const none = accepted.data?.total === 0 && waiting.data?.total === 0
  const [yesterday, lastWeek] = [Date.now() - day_ms, Date.now() - 7 * day_ms]

  return (
    <Page
      title={namespace || t('Overview')}
      lead={t('Signed in as {user}, {role} of this namespace', { user: me.user, role: t(me.role) })}
      acts={
        <LinkButton to="/add-device" kind="main">
          <Icon name="add" /> {t('Add a device')}
        </LinkButton>
      }
    >
      {newest && (
        <p className="note">
          <Link to="/announcements">{newest.title}</Link>{' '}
          <span className="soft">{rich('announced {when}', { when: <When at={newest.date} /> })}</span>
        </p>
      )}
      {here && <OverLimit namespace={here} />}
      <QueryContent query={stats}>{(figures) => <Figures {...figures} />}</QueryContent>
      <div className="columns">
        <Attention
          unrecorded={
            (sessions ?? []).filter(
              ({ unrecorded, started_at }) => unrecorded && Date.parse(started_at) > lastWeek,
            ).length
          }
          refused={(refusals ?? []).filter(({ at }) => Date.parse(at) > yesterday).length}
        />
        {here && stats.data && (
          <FirstSteps devices={stats.data.registered_devices} members={here.members.length} />
        )}
      </div>
      <Waiting query={waiting} may={may} />
      {none ? (
        <Panel title={t('Add your first device')}>
          <p>
            {t(
              'Run this command on a Linux device, as root or with sudo. The device then appears here, waiting to be accepted.',
            )}
          </p>
          <Copyable text={lines.install()} name={t('the command that installs the agent')} />
        </Panel>
      ) : (
        <>
          <Charts refusals={refusals} />
          <div className="columns">
            <Panel title={t('Last seen')} acts={<Link to="/devices">{t('All devices')}</Link>}>
              <QueryList
                query={accepted}
                label={t('Recently seen devices')}
                empty={<Empty title={t('No accepted devices yet.')} />}
                row={(device) => <DeviceRow key={device.uid} device={device} may={may} />}
              />
            </Panel>
            <Activity />
          </div>
        </>
      )}
    </Page>
  )
}

interface WaitingProps {
  query: UseQueryResult<{ body: Device[]; total: number }>
  may: boolean
}

function Waiting({ query, may }: WaitingProps) {
  const total = query.data?.total ?? 0
  if (total === 0) return null
  return (
    <Panel
      title={t('Waiting to be accepted')}
      tone="wanting"
      acts={
        total > mostWaiting && (
          <Link to="/devices" search={{ status: 'pending' }}>
            {t('All {total}', { total: total })}
          </Link>
        )
      }
    >
      <QueryList
        query={query}
        label={t('Waiting devices')}
        empty={null}
        row={(device) => <DeviceRow key={device.uid} device={device} may={may} />}
      />
    </Panel>
  )
}

type Stats = Awaited<ReturnType<typeof api.system.stats>>['body']

function Figures({ online_devices, registered_devices, pending_devices, active_sessions }: Stats) {
  return (
    <ul className="figures" aria-label={t('Figures')}>
      <li>
        <Link to="/devices" search={{ status: 'accepted' }}>
          {rich('{number} online', { number: <strong>{online_devices}</strong> })}{' '}
          <span className="soft">{tn(registered_devices, 'of {count} device', 'of {count} devices')}</span>
        </Link>
      </li>
      <li>
        <Link to="/devices" search={{ status: 'pending' }}>
          {rich('{number} waiting <span>devices</span>', {
            number: <strong>{pending_devices}</strong>,
            span: (inside) => <span className="soft">{inside}</span>,
          })}
        </Link>
      </li>
      <li>
        <Link to="/sessions">
          {rich('{number} live', { number: <strong>{active_sessions}</strong> })}{' '}
          <span className="soft">{active_sessions === 1 ? t('session') : t('sessions')}</span>
        </Link>
      </li>
    </ul>
  )
}

function Charts({ refusals }: { refusals: readonly { at: string }[] | undefined }) {
  const days = useNamespaceQuery(
    ['stats', 'days'],
    async () => (await api.system.statsByDay({ query: { days: chart_days } })).body.days,
    false,
  ).data
  const byDay =
    days &&
    ((what: 'sessions' | 'devices' | 'bytes') =>
      days.map((one) => ({ day: shortDay(one.day), count: one[what] })))
  return (
    <div className="columns">
      <Panel title={t('Sessions by day')} acts={<Link to="/sessions">{t('All sessions')}</Link>}>
        {byDay && <BarChart data={byDay('sessions')} what={t('sessions')} />}
      </Panel>
      <Panel title={t('Connected devices by day')}>
        {byDay && <BarChart data={byDay('devices')} what={t('devices')} sums={false} />}
      </Panel>
      <Panel title={t('Data by day')}>
        {byDay && <BarChart data={byDay('bytes')} what={t('of data')} written={bytesText} />}
      </Panel>
      {refusals && (
        <Panel title={t('Refused logins by day')}>
          <Cut rows={refusals} />
          <BarChart
            data={countsByDay(
              refusals.map(({ at }) => at),
              chart_days,
            )}
            what={t('refused logins')}
            tone="bad"
          />
        </Panel>
      )}
    </div>
  )
}

/** For administrators. */
function Activity() {
  const may = useMay('administrator')
  const entries = useNamespaceQuery(
    ['activity', may],
    async () => (may ? (await api.audit.list({ query: { limit: 8 } })).body.entries : []),
    may,
  )
  if (!may) return null
  return (
    <Panel title={t('Activity')} acts={<Link to="/audit">{t('Audit log')}</Link>}>
      <QueryContent query={entries}>
        {(found) =>
          found.length === 0 ? (
            <Empty title={t('Nothing has happened yet.')} />
          ) : (
            <ul className="rows" aria-label={t('Activity')}>
              {found.map(({ seq, at, action, actor, target }) => (
                <li className="row" key={seq}>
                  <span className="about">
                    {actionText(action)}{' '}
                    <span className="soft">
                      {[
                        target.name,
                        actor.name !== target.name &&
                          actor.name &&
                          t('by {name}', { name: actorName(actor) }),
                      ]
                        .filter(Boolean)
                        .join(', ')}
                    </span>
                  </span>
                  <span className="facts">
                    <When at={at} />
                  </span>
                </li>
              ))}
            </ul>
          )
        }
      </QueryContent>
    </Panel>
  )
}
