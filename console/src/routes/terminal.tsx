// Terminals on a device, in tabs. The page is loaded on demand, because it brings xterm with it. Leaving it
// with a live session needs a confirmation, because leaving ends the session.
import { Link, useBlocker, useParams } from '@tanstack/react-router'
// oxlint-disable-next-line import/no-unassigned-import -- a style sheet has no values
import '@xterm/xterm/css/xterm.css'
import { useRef, useState, type KeyboardEvent } from 'react'
import type { Device } from '@hawser/contract/devices'
import { api } from '../api.ts'
import { useBodyQuery } from '../namespace-query.ts'
import { Button, LinkButton } from '../components/button.tsx'
import { ConfirmDialog } from '../components/dialog.tsx'
import { Page, Panel } from '../components/page.tsx'
import { QueryContent } from '../components/query-content.tsx'
import { Lamp } from '../components/status.tsx'
// oxlint-disable-next-line import/no-unassigned-import -- a style sheet has no values
import '../styles/terminal.css'
import type { TerminalLogin } from '../terminal/connection.ts'
import { relabelled, split, without, type Direction } from '../terminal/layout.ts'
import { openBefore, useRemembered, type RememberedTab } from '../terminal/remembered.ts'
import { useRoom } from '../terminal/room.ts'
import { Workbench, type Pane, type Tab as TabState } from '../terminal/workbench.tsx'
import { t, tn } from '../language/language.ts'

export function TerminalPage() {
  const { uid } = useParams({ from: '/shell/devices/$uid/terminal' })
  const device = useBodyQuery(['device', uid], () => api.devices.get({ params: { uid } }))
  const { data } = device
  return (
    <Page
      title={data ? t('Terminal on {name}', { name: data.name }) : t('Terminal')}
      lead={
        data && (
          <span className="signs">
            <Lamp on={data.online} /> {data.online ? t('online') : t('offline')}
          </span>
        )
      }
      acts={
        data && (
          <LinkButton to="/devices/$uid" params={{ uid }} kind="quiet">
            {t('The device')}
          </LinkButton>
        )
      }
    >
      {data?.status === 'accepted' ? (
        <Terminals key={uid} device={data} />
      ) : (
        <Panel>
          <QueryContent query={device}>
            {() => <p className="soft">{t('You can connect once the device is accepted.')}</p>}
          </QueryContent>
          <p>
            <Link to="/devices">{t('All devices')}</Link>
          </p>
        </Panel>
      )}
    </Page>
  )
}

/** In one tab. The server limits the sessions of one person. */
const mostPanes = 6
const mostTabs = 12
let lastId = 0
const newId = (): number => (lastId += 1)
const emptyPane = (id: number, given?: TerminalLogin, attach?: string): Pane => ({
  id,
  user: '',
  live: false,
  given,
  attach,
})

function newTab(given?: TerminalLogin, attach?: string): TabState {
  const id = newId()
  return { id, layout: id, panes: [emptyPane(id, given, attach)], active: id }
}

/** A tab from before a reload: its panes continue their sessions. */
function restored({ layout, panes, active }: RememberedTab): TabState[] {
  const ids = new Map(panes.map(([id]) => [id, newId()]))
  const room = relabelled(layout, ids)
  if (room === undefined) return []
  const continued = panes.map(([id, session]) => emptyPane(ids.get(id)!, undefined, session))
  return [{ id: newId(), layout: room, panes: continued, active: ids.get(active) ?? continued[0]!.id }]
}

const remembered = ({ layout, panes, active }: TabState): RememberedTab => ({
  layout,
  panes: panes.flatMap((pane) =>
    pane.live && pane.session !== undefined ? [[pane.id, pane.session] as const] : [],
  ),
  active,
})

function Terminals({ device }: { device: Device }) {
  const [tabs, setTabs] = useState<readonly TabState[]>(() => {
    const before = openBefore(device.uid).flatMap(restored)
    return before.length > 0 ? before : [newTab()]
  })
  const [chosen, setChosen] = useState(() => tabs[0]!.id)
  const place = useRef<HTMLDivElement>(null)
  useRoom(place)
  const all = tabs.flatMap(({ panes }) => panes)
  const live = all.filter((pane) => pane.live).length
  useRemembered(device.uid, tabs.map(remembered))
  const leaving = useBlocker({
    shouldBlockFn: () => live > 0,
    enableBeforeUnload: () => live > 0,
    withResolver: true,
  })

  const change = (id: number, changed: (tab: TabState) => TabState) =>
    setTabs((all) => all.map((tab) => (tab.id === id ? changed(tab) : tab)))
  const loginOf = ({ panes, active }: TabState) => panes.find(({ id }) => id === active)?.login

  function add(given?: TerminalLogin): void {
    const tab = newTab(given)
    setTabs([...tabs, tab])
    setChosen(tab.id)
  }
  function splitTab(tab: TabState, direction: Direction): void {
    const added = newId()
    change(tab.id, (now) => ({
      ...now,
      layout: split(now.layout, now.active, direction, added),
      panes: [...now.panes, emptyPane(added, loginOf(tab))],
      active: added,
    }))
  }
  function closePane(tab: TabState): void {
    const layout = without(tab.layout, tab.active)
    if (layout !== undefined) {
      const panes = tab.panes.filter(({ id }) => id !== tab.active)
      return change(tab.id, () => ({ ...tab, layout, panes, active: panes.at(-1)!.id }))
    }
    const left = tabs.filter(({ id }) => id !== tab.id)
    const next = left.length > 0 ? left : [newTab()]
    setTabs(next)
    setChosen(next.at(-1)!.id)
  }
  return (
    <>
      <div ref={place} className="workplace">
        <div className="terminal-tabs">
          <TabRow tabs={tabs} chosen={chosen} choose={setChosen} />
          <Button kind="quiet" small isDisabled={tabs.length >= mostTabs} onPress={() => add()}>
            {t('New tab')}
          </Button>
        </div>
        {tabs.map((tab) => (
          <div
            key={tab.id}
            id={panelId(tab.id)}
            role="tabpanel"
            aria-labelledby={tabId(tab.id)}
            className="terminal-panel"
            inert={tab.id !== chosen}
            data-inert={tab.id === chosen ? undefined : true}
          >
            <Workbench
              device={device.uid}
              tab={tab}
              mostPanes={mostPanes}
              change={(next) => change(tab.id, () => next)}
              news={(pane, news) =>
                change(tab.id, (now) => ({
                  ...now,
                  panes: now.panes.map((one) => (one.id === pane ? { id: pane, ...news } : one)),
                }))
              }
              split={(direction) => splitTab(tab, direction)}
              duplicate={() => add(loginOf(tab))}
              close={() => closePane(tab)}
            />
          </div>
        ))}
      </div>
      {leaving.status === 'blocked' && (
        <ConfirmDialog
          close={leaving.reset}
          question={{
            title: t('Leave the terminal?'),
            says: tn(
              live,
              'This ends the session that is running here.',
              'This ends the {count} sessions that are running here.',
            ),
            yes: t('Leave'),
            no: t('Stay'),
            act: async () => leaving.proceed(),
          }}
        />
      )}
    </>
  )
}

const tabId = (id: number): string => `terminal-tab-${id}`
const panelId = (id: number): string => `terminal-panel-${id}`

interface TabRowProps {
  tabs: readonly TabState[]
  chosen: number
  choose: (id: number) => void
}

/**
 * Not those of react-aria, which search their panel whenever it changes, which a terminal does with every
 * line.
 */
function TabRow({ tabs, chosen, choose }: TabRowProps) {
  function onKey(event: KeyboardEvent, at: number): void {
    const last = tabs.length - 1
    const to = {
      ArrowLeft: at === 0 ? last : at - 1,
      ArrowRight: at === last ? 0 : at + 1,
      Home: 0,
      End: last,
    }[event.key]
    if (to === undefined) return
    event.preventDefault()
    choose(tabs[to]!.id)
    document.getElementById(tabId(tabs[to]!.id))?.focus()
  }
  return (
    <div role="tablist" aria-label={t('Terminals')} className="tab-list">
      {tabs.map((tab, index) => (
        <button
          key={tab.id}
          type="button"
          role="tab"
          id={tabId(tab.id)}
          className="tab"
          aria-selected={tab.id === chosen}
          aria-controls={panelId(tab.id)}
          tabIndex={tab.id === chosen ? 0 : -1}
          onClick={() => choose(tab.id)}
          onKeyDown={(event) => onKey(event, index)}
        >
          <Lamp on={tab.panes.some((pane) => pane.live)} /> {tabName(tab, index)}
        </button>
      ))}
    </div>
  )
}

function tabName({ panes }: TabState, index: number): string {
  const users = [...new Set(panes.map(({ user }) => user).filter((user) => user !== ''))]
  return users.length === 0
    ? t('Terminal {number}', { number: index + 1 })
    : `${index + 1}: ${users.join(', ')}`
}
