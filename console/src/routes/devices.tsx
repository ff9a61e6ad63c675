// The devices of the namespace: filtered by status, name and tag, sorted, in pages; several can be accepted
// or rejected at once. The filters are in the URL, so that a view can be bookmarked and shared.
import { Link, useNavigate, useSearch } from '@tanstack/react-router'
import { useEffect, useId, useState, type ReactNode } from 'react'
import { deviceStatuses, type Device, type DeviceStatus } from '@hawser/contract/devices'
import { encodeFilter, type FilterElement } from '@hawser/contract/filters'
import { api, useMay } from '../api.ts'
import { showSaved, useNamespaceQuery } from '../namespace-query.ts'
import { Button, LinkButton } from '../components/button.tsx'
import { notTogether } from '../components/device-actions.tsx'
import { DeviceRow } from '../components/device-row.tsx'
import { ConfirmDialog, type Confirmation } from '../components/dialog.tsx'
import { Page, Panel } from '../components/page.tsx'
import { Empty, QueryList } from '../components/query-content.tsx'
import { showToast } from '../components/toast.tsx'
import { errorText, UserError } from '../error-text.ts'

const page_size = 20

const sorts = {
  name: { text: 'Name', sort_by: 'name', order_by: 'asc' },
  seen: { text: 'Seen last', sort_by: 'last_seen', order_by: 'desc' },
  newest: { text: 'Newest', sort_by: 'created_at', order_by: 'desc' },
  oldest: { text: 'Oldest', sort_by: 'created_at', order_by: 'asc' },
  online: { text: 'Online first', sort_by: 'online', order_by: 'desc' },
} as const
type Sort = keyof typeof sorts

export interface DevicesSearch {
  status?: DeviceStatus
  sort?: Sort
  find?: string
  tag?: string
  page?: number
}

/** Reads the search parameters of the URL; invalid ones are dropped. */
export function readDevicesSearch(given: Record<string, unknown>): DevicesSearch {
  const status = deviceStatuses.find((one) => one === given['status'])
  const sort = Object.keys(sorts).find((one) => one === given['sort']) as Sort | undefined
  const page = Number(given['page'])
  return {
    ...(status ? { status } : {}),
    ...(sort ? { sort } : {}),
    // The router parses a name of digits as a number.
    ...(['string', 'number'].includes(typeof given['find']) && given['find'] !== ''
      ? { find: String(given['find']) }
      : {}),
    ...(['string', 'number'].includes(typeof given['tag']) && given['tag'] !== ''
      ? { tag: String(given['tag']) }
      : {}),
    ...(Number.isSafeInteger(page) && page > 1 ? { page } : {}),
  }
}

const contains = (name: string, value: unknown): FilterElement => ({
  type: 'property',
  params: { name, operator: 'contains', value },
})
const join = (name: 'and' | 'or'): FilterElement => ({ type: 'operator', params: { name } })

function filterOf({ find, tag }: DevicesSearch): { filter: string } | object {
  const elements = [
    ...(find
      ? [
          contains('name', find),
          contains('identity.mac', find),
          contains('info.pretty_name', find),
          contains('remote_addr', find),
          join('or'),
        ]
      : []),
    ...(tag ? [contains('tags', [tag]), join('and')] : []),
  ]
  return elements.length > 0 ? { filter: encodeFilter(elements) } : {}
}

const tabs = [
  ['accepted', 'Accepted'],
  ['pending', 'Waiting'],
  ['rejected', 'Rejected'],
  ['unused', 'Set aside'],
] as const

const emptyWords: Readonly<Record<string, string>> = {
  accepted: 'No device is accepted yet.',
  pending: 'No device waits to be let in.',
  rejected: 'No device is rejected.',
  unused: 'No device is unused.',
}

export function DevicesPage() {
  const search = useSearch({ from: '/shell/devices' })
  const navigate = useNavigate({ from: '/devices' })
  const { status = 'accepted', sort = 'name', page = 1 } = search
  const may = useMay('operator')
  const [chosen, setChosen] = useState<ReadonlySet<string>>(new Set())
  const { sort_by, order_by } = sorts[sort]
  const devices = useNamespaceQuery(['devices', 'list', status, sort, search.find, search.tag, page], () =>
    api.devices.list({
      query: { status, sort_by, order_by, page, per_page: page_size, ...filterOf(search) },
    }),
  )
  const tags = useNamespaceQuery(['tags'], () => api.tags.list(), false).data?.body ?? []
  const look = (change: { [K in keyof DevicesSearch]?: DevicesSearch[K] | undefined }) => {
    setChosen(new Set())
    const { page: _, ...rest } = search
    void navigate({ search: readDevicesSearch({ ...rest, ...change }) })
  }
  const shown = devices.data?.body ?? []
  const picked = shown.filter(({ uid }) => chosen.has(uid))
  const filtered = search.find !== undefined || search.tag !== undefined

  return (
    <Page
      title="Devices"
      acts={
        <LinkButton to="/add-device" kind="main">
          Add a device
        </LinkButton>
      }
    >
      <nav className="tabs" aria-label="State of the devices">
        {tabs.map(([id, text]) => (
          <Link
            key={id}
            to="/devices"
            search={readDevicesSearch({ ...search, status: id, page: 1 })}
            aria-current={id === status ? 'page' : undefined}
            onClick={() => setChosen(new Set())}
          >
            {text}
          </Link>
        ))}
      </nav>
      <div className="filters" role="search">
        <Find value={search.find ?? ''} look={(find) => look({ find })} />
        <Pick label="Tag" value={search.tag ?? ''} look={(tag) => look({ tag })}>
          <option value="">Any</option>
          {[...new Set([...tags, ...(search.tag ? [search.tag] : [])])].map((tag) => (
            <option key={tag}>{tag}</option>
          ))}
        </Pick>
        <Pick label="Sort by" value={sort} look={(chosen) => look({ sort: chosen as Sort })}>
          {Object.entries(sorts).map(([id, { text }]) => (
            <option key={id} value={id}>
              {text}
            </option>
          ))}
        </Pick>
      </div>
      <Panel>
        {may && shown.length > 1 && <Many status={status} shown={shown} picked={picked} choose={setChosen} />}
        <QueryList
          query={devices}
          label="Devices"
          empty={
            <Empty
              title={
                filtered ? 'No device fits what you look for.' : (emptyWords[status] ?? 'There is none.')
              }
            >
              {filtered ? (
                <Button kind="quiet" onPress={() => look({ find: undefined, tag: undefined })}>
                  Show all
                </Button>
              ) : (
                status !== 'rejected' && <Link to="/add-device">Add a device</Link>
              )}
            </Empty>
          }
          page={{
            number: page,
            size: page_size,
            turn: (to) => void navigate({ search: readDevicesSearch({ ...search, page: to }) }),
          }}
          row={(device) => (
            <DeviceRow
              key={device.uid}
              device={device}
              may={may}
              {...(may && shown.length > 1
                ? {
                    ticked: chosen.has(device.uid),
                    tick: (on: boolean) =>
                      setChosen(
                        new Set(
                          on ? [...chosen, device.uid] : [...chosen].filter((uid) => uid !== device.uid),
                        ),
                      ),
                  }
                : {})}
            />
          )}
        />
      </Panel>
    </Page>
  )
}

function Pick({
  label,
  value,
  look,
  children,
}: {
  label: string
  value: string
  look: (chosen: string) => void
  children: ReactNode
}) {
  const id = useId()
  return (
    <div className="pick">
      <label htmlFor={id}>{label}</label>
      <select id={id} value={value} onChange={(event) => look(event.currentTarget.value)}>
        {children}
      </select>
    </div>
  )
}

/** A search field that waits a moment after the last key press, so that not every key is a request. */
function Find({ value, look }: { value: string; look: (find: string) => void }) {
  const id = useId()
  const [typed, setTyped] = useState(value)
  const [seen, setSeen] = useState(value)
  if (seen !== value) {
    setSeen(value)
    setTyped(value)
  }
  useEffect(() => {
    if (typed.trim() === value) return undefined
    const timer = setTimeout(() => look(typed.trim()), 300)
    return () => clearTimeout(timer)
    // Only typing starts the timer.
  }, [typed])
  return (
    <div className="pick grow">
      <label htmlFor={id}>Search</label>
      <input
        id={id}
        type="search"
        value={typed}
        placeholder="Name, address, system …"
        onChange={(event) => setTyped(event.currentTarget.value)}
      />
    </div>
  )
}

function Many({
  status,
  shown,
  picked,
  choose,
}: {
  status: DeviceStatus
  shown: Device[]
  picked: Device[]
  choose: (uids: ReadonlySet<string>) => void
}) {
  const [question, setQuestion] = useState<Confirmation>()
  const all = picked.length === shown.length
  const things = `${picked.length} ${picked.length === 1 ? 'device' : 'devices'}`

  /** Applies it to one device after the other. Refused ones stay selected; a toast shows the first reason. */
  async function each(act: (device: Device) => Promise<unknown>, done: string): Promise<void> {
    const refused: [Device, unknown][] = []
    for (const device of picked) await act(device).catch((error: unknown) => refused.push([device, error]))
    choose(new Set(refused.map(([{ uid }]) => uid)))
    const [first] = refused
    await showSaved(
      first
        ? `${refused.length} of ${picked.length} could not be ${done}: ${first[0].name}: ${errorText(first[1])}`
        : `${things} ${done}.`,
    )
  }

  const accept = () =>
    each(async (device) => {
      const why = notTogether(device, picked)
      if (why !== undefined) throw new UserError(why)
      await api.devices.accept({ params: { uid: device.uid } })
    }, 'accepted')
  const reject = () =>
    each(({ uid }) => api.devices.setStatus({ params: { uid, status: 'reject' } }), 'rejected')
  return (
    <div className="many">
      <label className="tick">
        <input
          type="checkbox"
          checked={all}
          onChange={() => choose(new Set(all ? [] : shown.map(({ uid }) => uid)))}
        />{' '}
        All on this page
      </label>
      {picked.length > 0 && (
        <div className="acts">
          {status !== 'accepted' && (
            <Button
              small
              onPress={() => void accept().catch((error: unknown) => showToast(errorText(error)))}
            >
              Accept {things}
            </Button>
          )}
          {status !== 'rejected' && (
            <Button
              kind="quiet"
              small
              onPress={() =>
                setQuestion({
                  title: `Reject ${things}?`,
                  says: 'Live sessions on them end at once, and nobody reaches them until they are accepted again.',
                  yes: 'Reject them',
                  no: 'Keep them',
                  act: reject,
                })
              }
            >
              Reject {things}
            </Button>
          )}
        </div>
      )}
      {question && <ConfirmDialog question={question} close={() => setQuestion(undefined)} />}
    </div>
  )
}
