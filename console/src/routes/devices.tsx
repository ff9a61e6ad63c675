// The devices of the namespace, as a table or as a map: by state, search and tag, with the columns and the order
// that somebody wants. All of it is in the address, so that a view can be kept and shared.
import { Link, useNavigate, useSearch } from '@tanstack/react-router'
import { useCallback, useState } from 'react'
import type { DeviceStatus } from '@hawser/contract/devices'
import { api, useMay } from '../api.ts'
import {
  columnIds,
  columnsOf,
  everyDevice,
  filtersIn,
  readDevicesSearch,
  type DevicesSearch,
  type Sort,
} from '../device-list.ts'
import { errorText } from '../error-text.ts'
import { useNamespaceQuery } from '../namespace-query.ts'
import { useSavedViews } from '../saved-views.ts'
import { Button, LinkButton } from '../components/button.tsx'
import { copy } from '../components/copy.tsx'
import { columns, csvOf } from '../components/device-columns.tsx'
import { DeviceFilterField } from '../components/device-filter-field.tsx'
import { isFiltered, noFilters } from '../components/device-filters.ts'
import { DeviceMap } from '../components/device-map.tsx'
import { DeviceSelection } from '../components/device-selection.tsx'
import { DeviceTable, type Chosen } from '../components/device-table.tsx'
import { FormDialog } from '../components/dialog.tsx'
import { Field, Tick } from '../components/form.tsx'
import { Icon } from '../components/icon.tsx'
import { Menu } from '../components/menu.tsx'
import { Page } from '../components/page.tsx'
import { Empty } from '../components/query-content.tsx'
import { saveFile } from '../components/save-file.ts'
import { showToast } from '../components/toast.tsx'
import { number } from '../language/format.ts'
import { msg, t, tn } from '../language/language.ts'

export { readDevicesSearch } from '../device-list.ts'

/** How many devices "Choose all" chooses at most, and how many a file has. */
const [mostChosen, mostExported] = [1000, 100_000] as const

const tabs = [
  ['accepted', msg('Accepted'), 'registered_devices'],
  ['pending', msg('Waiting'), 'pending_devices'],
  ['rejected', msg('Rejected'), 'rejected_devices'],
  ['unused', msg('Unused'), undefined],
  ['removed', msg('Removed'), undefined],
] as const

const emptyWords: Readonly<Partial<Record<DeviceStatus, string>>> = {
  accepted: msg('No device is accepted yet.'),
  pending: msg('No device waits to be let in.'),
  rejected: msg('No device is rejected.'),
  unused: msg('No device is unused.'),
  removed: msg('No removed devices.'),
}

const none: Chosen = new Map()
/** `keep`: what is chosen stays so; `replace`: without a step in the history. */
interface How {
  keep?: boolean | undefined
  replace?: boolean | undefined
}
type Change = { [K in keyof DevicesSearch]?: DevicesSearch[K] | undefined }

export function DevicesPage() {
  const search = useSearch({ from: '/shell/devices' })
  const navigate = useNavigate({ from: '/devices' })
  const { status = 'accepted', sort = 'name', desc = false, map = false } = search
  const may = useMay('operator')
  const [chosen, setChosen] = useState<Chosen>(none)
  const look = (change: Change, { keep = false, replace = false }: How = {}) => {
    if (!keep) setChosen(none)
    void navigate({ search: readDevicesSearch({ ...search, ...change }), replace })
  }
  const sortBy = (by: Sort) =>
    look({ sort: by, desc: by === sort && !desc ? true : undefined }, { keep: true })
  const chooseAll = useCallback(async () => {
    try {
      const all = await everyDevice(search, mostChosen)
      setChosen(new Map(all.map((device) => [device.uid, device])))
      if (all.length === mostChosen) showToast(t('The first {count} are chosen.', { count: mostChosen }))
    } catch (error) {
      showToast(errorText(error))
    }
  }, [search])
  const filtered = isFiltered(search)

  return (
    <Page
      title={t('Devices')}
      wide
      hides={{ from: 'operator', what: t('accept, reject, name and tag devices') }}
      acts={
        <LinkButton to="/add-device" kind="main">
          <Icon name="add" /> {t('Add a device')}
        </LinkButton>
      }
    >
      <Tabs search={search} leave={() => setChosen(none)} />
      <Toolbar search={search} look={look} />
      {map ? (
        <DeviceMap search={search} />
      ) : (
        <DeviceTable
          // Another list begins at its first row.
          key={JSON.stringify([status, filtersIn(search)])}
          search={search}
          sortBy={sortBy}
          chosen={chosen}
          choose={may ? setChosen : undefined}
          chooseAll={() => void chooseAll()}
          empty={
            <Empty
              title={
                filtered ? t('No device fits what you look for.') : t(emptyWords[status] ?? 'There is none.')
              }
            >
              {filtered ? (
                <Button kind="quiet" onPress={() => look(noFilters)}>
                  {t('Show all')}
                </Button>
              ) : (
                status !== 'rejected' && <Link to="/add-device">{t('Add a device')}</Link>
              )}
            </Empty>
          }
        />
      )}
      {may && !map && chosen.size > 0 && <DeviceSelection chosen={chosen} choose={setChosen} />}
    </Page>
  )
}

function Tabs({ search, leave }: { search: DevicesSearch; leave: () => void }) {
  const { status = 'accepted' } = search
  const stats = useNamespaceQuery(['stats'], async () => (await api.system.stats()).body).data
  return (
    <nav className="tabs wide" aria-label={t('State of the devices')}>
      {tabs.map(([id, text, figure]) => (
        <Link
          key={id}
          to="/devices"
          search={readDevicesSearch({ ...search, status: id })}
          aria-current={id === status ? 'page' : undefined}
          onClick={leave}
        >
          {t(text)}
          {stats && figure && (
            <span
              className="count"
              aria-hidden="true"
              data-tone={id === 'pending' && stats[figure] > 0 ? 'wait' : undefined}
            >
              {number(stats[figure])}
            </span>
          )}
        </Link>
      ))}
    </nav>
  )
}

function Toolbar({ search, look }: { search: DevicesSearch; look: (change: Change, how?: How) => void }) {
  const [columnsOpen, setColumnsOpen] = useState(false)
  const { map = false } = search
  return (
    <div className="filters wide" role="search">
      <DeviceFilterField search={search} look={(change, replace) => look(change, { replace })} />
      <div className="acts">
        <ViewsMenu search={search} look={look} />
        {!map && (
          <Button kind="quiet" aria-label={t('Columns')} onPress={() => setColumnsOpen(true)}>
            <Icon name="columns" />
          </Button>
        )}
        <Button
          kind="quiet"
          aria-label={map ? t('Show as a table') : t('Show as a map')}
          onPress={() => look({ map: map ? undefined : true })}
        >
          <Icon name={map ? 'list' : 'grid'} />
        </Button>
        <Export search={search} />
      </div>
      {columnsOpen && (
        <FormDialog
          title={t('Columns')}
          submit={t('Show these columns')}
          close={() => setColumnsOpen(false)}
          send={async (values) =>
            look({ cols: columnIds.filter((id) => values[id] === 'on').join(',') }, { keep: true })
          }
        >
          <div className="stack">
            {columnIds.map((id) => (
              <Tick
                key={id}
                label={t(columns[id].text)}
                name={id}
                defaultChecked={columnsOf(search).includes(id)}
              />
            ))}
          </div>
        </FormDialog>
      )}
    </div>
  )
}

function ViewsMenu({ search, look }: { search: DevicesSearch; look: (change: Change) => void }) {
  const { views, save, remove } = useSavedViews()
  const [open, setOpen] = useState(false)
  const navigate = useNavigate({ from: '/devices' })
  const same = (view: DevicesSearch) => JSON.stringify(view) === JSON.stringify(search)
  const here = views.find((view) => same(view.search))
  return (
    <>
      <Menu
        label={t('Views')}
        look="button quiet"
        items={[
          {
            id: 'all',
            text: t('All accepted devices'),
            act: () => void navigate({ search: {} }),
            chosen: same({}),
          },
          ...views.map((view) => ({
            id: `view ${view.name}`,
            text: view.name,
            chosen: view === here,
            act: () => {
              look({})
              void navigate({ search: view.search })
            },
          })),
          { id: 'save', text: t('Save this view …'), act: () => setOpen(true) },
          { id: 'copy', text: t('Copy the address of this view'), act: () => void copy(location.href) },
          ...(here
            ? [
                {
                  id: 'remove',
                  text: t('Forget {name}', { name: here.name }),
                  danger: true,
                  act: () => remove(here.name),
                },
              ]
            : []),
        ]}
      >
        <Icon name="star" /> {here?.name ?? t('Views')} <Icon name="down" />
      </Menu>
      {open && (
        <FormDialog
          title={t('Save this view')}
          submit={t('Save the view')}
          close={() => setOpen(false)}
          send={async ({ name = '' }) => {
            save(name, search)
            showToast(t('The view {name} is kept in this browser.', { name }))
          }}
        >
          <Field
            label={t('Name of the view')}
            name="name"
            required
            maxLength={64}
            autoComplete="off"
            hint={t(
              'State, search, filters, columns and order. It is kept in this browser; its address can be sent to others.',
            )}
            wrong={t('A name is needed.')}
          />
        </FormDialog>
      )}
    </>
  )
}

/** A file with all devices that fit, and all columns. */
function Export({ search }: { search: DevicesSearch }) {
  const [count, setCount] = useState<number>()
  const run = async () => {
    setCount(0)
    try {
      const all = await everyDevice(search, mostExported, setCount)
      saveFile('devices.csv', new Blob([csvOf(all)], { type: 'text/csv' }))
      showToast(tn(all.length, '{count} device is in devices.csv.', '{count} devices are in devices.csv.'))
    } catch (error) {
      showToast(errorText(error))
    } finally {
      setCount(undefined)
    }
  }
  return (
    <Button kind="quiet" aria-label={t('Export as CSV')} isPending={count !== undefined} onPress={run}>
      <Icon name="download" />
      {count !== undefined && count}
    </Button>
  )
}
