// The devices of the namespace, as a table or as a map: by state, search and tag, with the columns and the order
// that somebody wants. All of it is in the address, so that a view can be kept and shared.
import { Link, useNavigate, useSearch } from '@tanstack/react-router'
import { useState } from 'react'
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
import { attempt, useBodyQuery } from '../namespace-query.ts'
import { useSavedViews } from '../saved-views.ts'
import { Button, LinkButton, QuietButton } from '../components/button.tsx'
import { copy } from '../components/copy.tsx'
import { columns, csvOf } from '../components/device-columns.tsx'
import { DeviceFilterField } from '../components/device-filter-field.tsx'
import { isFiltered, noFilters } from '../components/device-filters.ts'
import { DeviceMap } from '../components/device-map.tsx'
import { DeviceSelection } from '../components/device-selection.tsx'
import { DeviceTable, type Chosen } from '../components/device-table.tsx'
import { DialogButton } from '../components/dialog-button.tsx'
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

/** The limits of 'Select all', and of a file. */
const [mostChosen, mostExported] = [1000, 100_000] as const

const tabs = [
  ['accepted', msg('Accepted'), 'registered_devices'],
  ['pending', msg('Waiting'), 'pending_devices'],
  ['rejected', msg('Rejected'), 'rejected_devices'],
  ['unused', msg('Unused'), undefined],
  ['removed', msg('Removed'), undefined],
] as const

const emptyWords: Readonly<Partial<Record<DeviceStatus, string>>> = {
  accepted: msg('No accepted devices yet.'),
  pending: msg('No waiting devices.'),
  rejected: msg('No rejected devices.'),
  unused: msg('No unused devices.'),
  removed: msg('No removed devices.'),
}

const none: Chosen = new Map()
/** `keep`: the selection stays; `replace`: without a step in the history. */
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
  const chooseAll = () =>
    attempt(async () => {
      const all = await everyDevice(search, mostChosen)
      setChosen(new Map(all.map((device) => [device.uid, device])))
      if (all.length === mostChosen) showToast(t('The first {count} are selected.', { count: mostChosen }))
    })
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
            <Empty title={filtered ? t('No devices match your search.') : t(emptyWords[status] ?? 'None.')}>
              {filtered ? (
                <QuietButton onPress={() => look(noFilters)}>{t('Show all')}</QuietButton>
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
  const stats = useBodyQuery(['stats'], () => api.system.stats()).data
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
  const { map = false } = search
  return (
    <div className="filters wide" role="search">
      <DeviceFilterField search={search} look={(change, replace) => look(change, { replace })} />
      <div className="acts">
        <ViewsMenu search={search} look={look} />
        {!map && (
          <DialogButton
            kind="quiet"
            aria-label={t('Columns')}
            dialog={(close) => (
              <FormDialog
                title={t('Columns')}
                submit={t('Show these columns')}
                close={close}
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
          >
            <Icon name="columns" />
          </DialogButton>
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
    </div>
  )
}

function ViewsMenu({ search, look }: { search: DevicesSearch; look: (change: Change) => void }) {
  const { views, save, remove } = useSavedViews()
  const navigate = useNavigate({ from: '/devices' })
  const same = (view: DevicesSearch) => JSON.stringify(view) === JSON.stringify(search)
  const here = views.find((view) => same(view.search))
  return (
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
        {
          id: 'save',
          text: t('Save this view …'),
          dialog: (close) => (
            <FormDialog
              title={t('Save this view')}
              submit={t('Save the view')}
              close={close}
              send={async ({ name = '' }) => {
                save(name, search)
                showToast(t('The view {name} was saved in this browser.', { name }))
              }}
            >
              <Field
                label={t('View name')}
                name="name"
                required
                maxLength={64}
                autoComplete="off"
                hint={t(
                  'Saves the state, search, filters, columns and order in this browser. To share the view, send its link.',
                )}
                wrong={t('Enter a name.')}
              />
            </FormDialog>
          ),
        },
        { id: 'copy', text: t('Copy link to this view'), act: () => void copy(location.href) },
        ...(here
          ? [
              {
                id: 'remove',
                text: t('Delete {name}', { name: here.name }),
                danger: true,
                act: () => remove(here.name),
              },
            ]
          : []),
      ]}
    >
      <Icon name="star" /> {here?.name ?? t('Views')} <Icon name="down" />
    </Menu>
  )
}

/** All matching devices, and all columns. */
function Export({ search }: { search: DevicesSearch }) {
  const [count, setCount] = useState<number>()
  const run = async () => {
    setCount(0)
    await attempt(async () => {
      const all = await everyDevice(search, mostExported, setCount)
      saveFile('devices.csv', new Blob([csvOf(all)], { type: 'text/csv' }))
      showToast(tn(all.length, '{count} device is in devices.csv.', '{count} devices are in devices.csv.'))
    })
    setCount(undefined)
  }
  return (
    <Button kind="quiet" aria-label={t('Export as CSV')} isPending={count !== undefined} onPress={run}>
      <Icon name="download" />
      {count !== undefined && count}
    </Button>
  )
}
