// Terminals on a device, in tabs. The page is loaded on demand, because it brings xterm with it. Leaving it
// with a live session needs a confirmation, because leaving ends the session.
import { Link, useBlocker, useParams } from '@tanstack/react-router'
// oxlint-disable-next-line import/no-unassigned-import -- a style sheet has no values
import '@xterm/xterm/css/xterm.css'
import { useState } from 'react'
import { Tab, TabList, TabPanel, Tabs } from 'react-aria-components/Tabs'
import type { Device } from '@hawser/contract/devices'
import { api } from '../api.ts'
import { useNamespaceQuery } from '../namespace-query.ts'
import { Button, LinkButton } from '../components/button.tsx'
import { ConfirmDialog } from '../components/dialog.tsx'
import { Page, Panel } from '../components/page.tsx'
import { QueryContent } from '../components/query-content.tsx'
import { Lamp } from '../components/status.tsx'
// oxlint-disable-next-line import/no-unassigned-import -- a style sheet has no values
import '../styles/terminal.css'
import { fontSizes } from '../terminal/screen.ts'
import { TerminalTab } from '../terminal/tab.tsx'

export function TerminalPage() {
  const { uid } = useParams({ from: '/shell/devices/$uid/terminal' })
  const device = useNamespaceQuery(
    ['device', uid],
    async () => (await api.devices.get({ params: { uid } })).body,
  )
  const { data } = device
  return (
    <Page
      title={data ? `Terminal on ${data.name}` : 'Terminal'}
      lead={
        data && (
          <span className="signs">
            <Lamp on={data.online} /> {data.online ? 'online' : 'offline'}
          </span>
        )
      }
      acts={
        data && (
          <LinkButton to="/devices/$uid" params={{ uid }} kind="quiet">
            The device
          </LinkButton>
        )
      }
    >
      {data?.status === 'accepted' ? (
        <Terminals key={uid} device={data} />
      ) : (
        <Panel>
          <QueryContent query={device}>
            {() => <p className="soft">The device can be reached once it is accepted.</p>}
          </QueryContent>
          <p>
            <Link to="/devices">All devices</Link>
          </p>
        </Panel>
      )}
    </Page>
  )
}

interface One {
  readonly id: number
  readonly user: string
  readonly live: boolean
}

function Terminals({ device }: { device: Device }) {
  const [all, setAll] = useState<readonly One[]>([{ id: 1, user: '', live: false }])
  const [chosen, setChosen] = useState(1)
  const [next, setNext] = useState(2)
  const [pixels, setPixels] = useState<number>(fontSizes.usual)
  const live = all.filter((one) => one.live).length
  const leaving = useBlocker({
    shouldBlockFn: () => live > 0,
    enableBeforeUnload: () => live > 0,
    withResolver: true,
  })

  function add(): void {
    setAll([...all, { id: next, user: '', live: false }])
    setChosen(next)
    setNext(next + 1)
  }
  function close(id: number): void {
    const left = all.filter((one) => one.id !== id)
    setAll(left.length > 0 ? left : [{ id: next, user: '', live: false }])
    setNext(next + 1)
    setChosen(left.at(-1)?.id ?? next)
  }
  return (
    <>
      <Tabs className="terminals" selectedKey={chosen} onSelectionChange={(id) => setChosen(Number(id))}>
        <div className="terminal-tabs">
          <TabList aria-label="Terminals" className="tab-list">
            {all.map(({ id, user, live: on }, index) => (
              <Tab key={id} id={id} className="tab">
                <Lamp on={on} /> {user === '' ? `Terminal ${index + 1}` : `${index + 1}: ${user}`}
              </Tab>
            ))}
          </TabList>
          <Button kind="quiet" small onPress={add}>
            New tab
          </Button>
        </div>
        {all.map(({ id }) => (
          <TabPanel key={id} id={id} shouldForceMount className="terminal-panel">
            <TerminalTab
              device={device.uid}
              pixels={pixels}
              setPixels={setPixels}
              change={(user, on) =>
                setAll((now) => now.map((one) => (one.id === id ? { ...one, user, live: on } : one)))
              }
              close={() => close(id)}
            />
          </TabPanel>
        ))}
      </Tabs>
      {leaving.status === 'blocked' && (
        <ConfirmDialog
          close={leaving.reset}
          question={{
            title: 'Leave the terminal?',
            says:
              live === 1
                ? 'The session that is going on here ends.'
                : `The ${live} sessions that are going on here end.`,
            yes: 'Leave',
            no: 'Stay',
            act: async () => leaving.proceed(),
          }}
        />
      )}
    </>
  )
}
