// Every component of the console in its states, on one page, for those who change one and for the tests that
// look at all of them. It calls no server: what it shows is made up here.
import { QueryClientProvider } from '@tanstack/react-query'
import {
  createMemoryHistory,
  createRootRoute,
  createRoute,
  createRouter,
  RouterProvider,
} from '@tanstack/react-router'
import { useState, type ReactNode } from 'react'
import { createRoot } from 'react-dom/client'
import type { Device } from '@hawser/contract/devices'
import { queryClient } from './api.ts'
import { BarChart } from './components/bar-chart.tsx'
import { Button, LinkButton } from './components/button.tsx'
import { Copyable } from './components/copy.tsx'
import { ConfirmDialog } from './components/dialog.tsx'
import { Area, Choice, Field, Form, Tick } from './components/form.tsx'
import { Icon, iconNames } from './components/icon.tsx'
import { Menu } from './components/menu.tsx'
import { Page, Panel } from './components/page.tsx'
import { Empty, ErrorNotice, Loading } from './components/query-content.tsx'
import { PublicMark } from './components/public-mark.tsx'
import { DeviceState, Pill, TagList } from './components/status.tsx'
import { showToast, Toasts } from './components/toast.tsx'
import { UserError } from './error-text.ts'
import { startTheme } from './theme.ts'

startTheme()

const colours = [
  ['ink', 'paper'],
  ['soft', 'paper'],
  ['soft', 'ground'],
  ['soft', 'well'],
  ['accent', 'paper'],
  ['accent', 'ground'],
  ['on-accent', 'accent'],
  ['good', 'good-wash'],
  ['bad', 'bad-wash'],
  ['wait', 'wait-wash'],
  ['foam', 'sea'],
  ['foam-soft', 'sea'],
] as const
const sizes = ['tiny', 'small', 'text', 'large', 'title', 'figure'] as const
const spaces = ['gap-1', 'gap-2', 'gap-3', 'gap-4', 'gap-5', 'gap-6'] as const

const deviceIn = (status: Device['status'], online: boolean): Device =>
  ({ status, online, last_seen: new Date(Date.now() - 7_200_000).toISOString() }) as Device

function Design() {
  const [asks, setAsks] = useState(false)
  return (
    <div className="middle design">
      <main>
        <Page title="Design" lead="The components of the console, in their states." wide>
          <Panel title="Colours">
            <div className="swatches">
              {colours.map(([text, ground]) => (
                <span key={text + ground} style={{ color: `var(--${text})`, background: `var(--${ground})` }}>
                  {text} on {ground}
                </span>
              ))}
            </div>
          </Panel>
          <Panel title="Type and space">
            {sizes.map((size) => (
              <p key={size} style={{ fontSize: `var(--${size})` }}>
                {size}: a hawser holds a ship to the quay, 0123456789
              </p>
            ))}
            <div className="acts">
              {spaces.map((space) => (
                <span key={space} className="space" style={{ width: `var(--${space})` }} title={space} />
              ))}
            </div>
            <div className="columns">
              <h1>Heading 1</h1>
              <h2>Heading 2</h2>
              <h3>Heading 3</h3>
            </div>
          </Panel>
          <Panel title="Buttons">
            {(['main', 'quiet', 'bare', 'danger'] as const).map((kind) => (
              <div key={kind} className="acts">
                <Button kind={kind}>{kind}</Button>
                <Button kind={kind} small>
                  {kind} small
                </Button>
                <Button kind={kind} isDisabled>
                  {kind} disabled
                </Button>
                <Button kind={kind} isPending>
                  {kind} busy
                </Button>
                <LinkButton to="/" kind={kind}>
                  {kind} link
                </LinkButton>
              </div>
            ))}
            <div className="acts">
              <Menu
                label="A menu"
                items={[
                  { id: 'one', text: 'An action', act: () => showToast('It is done.') },
                  { id: 'two', text: 'The chosen one', chosen: true, act: () => undefined },
                  { id: 'three', text: 'A dangerous one', danger: true, act: () => setAsks(true) },
                ]}
              >
                A menu
              </Menu>
              <Button kind="quiet" onPress={() => setAsks(true)}>
                A question
              </Button>
              <Button kind="quiet" onPress={() => showToast('It is done.')}>
                A toast
              </Button>
            </div>
          </Panel>
          <Panel title="States and signs">
            <div className="signs">
              <DeviceState device={deviceIn('accepted', true)} />
              <DeviceState device={deviceIn('accepted', false)} />
              <DeviceState device={deviceIn('pending', false)} />
              <DeviceState device={deviceIn('rejected', false)} />
              <DeviceState device={deviceIn('unused', false)} />
            </div>
            <div className="signs">
              {(['plain', 'good', 'wait', 'bad'] as const).map((tone) => (
                <Pill key={tone} tone={tone}>
                  {tone}
                </Pill>
              ))}
              <PublicMark />
              <TagList tags={['north', 'pier']} />
              <span className="count">12</span>
              <span className="count" data-tone="wait">
                3
              </span>
            </div>
          </Panel>
          <Panel title="Icons">
            <ul className="swatches" aria-label="Icons">
              {iconNames.map((name) => (
                <li key={name} className="state">
                  <Icon name={name} /> {name}
                </li>
              ))}
            </ul>
          </Panel>
          <Fields />
          <Panel title="Texts to copy, notes, charts">
            <Copyable text="ssh root@harbour.crane-1@hawser.example.com" name="the line" />
            <p className="note">Something worth knowing.</p>
            <BarChart
              what="sessions"
              data={[3, 0, 5, 8, 2, 1, 4].map((count, index) => ({ day: `${index + 1} Nov`, count }))}
            />
            <BarChart
              what="refused logins"
              tone="bad"
              data={[0, 1, 0, 0, 4, 0, 2].map((count, index) => ({ day: `${index + 1} Nov`, count }))}
            />
          </Panel>
          <Panel title="Waiting, broken, empty">
            <Loading />
            <ErrorNotice error={new UserError('The server is in trouble.')} again={() => undefined} />
            <Empty title="There is nothing yet.">
              <p className="soft">And this is what to do about it.</p>
            </Empty>
          </Panel>
          <Panel title="Wants somebody" tone="wanting">
            <p>It is marked at its edge.</p>
          </Panel>
        </Page>
        {asks && (
          <ConfirmDialog
            close={() => setAsks(false)}
            question={{
              title: 'Delete it?',
              says: 'It is gone for good.',
              yes: 'Delete it',
              typed: 'crane-1',
              act: async () => undefined,
            }}
          />
        )}
      </main>
      <Toasts />
    </div>
  )
}

function Fields() {
  return (
    <Panel title="Fields">
      <Form
        compact
        submit="Send"
        send={async () => {
          throw new UserError('The form was refused, and this is why.')
        }}
      >
        <Field label="Text" name="text" hint="A hint below." placeholder="A placeholder" />
        <Field label="Wrong" name="wrong" required wrong="This is needed." />
        <Field label="Password" name="password" type="password" autoComplete="off" />
        <Field label="Code" name="code" code />
        <Field label="Disabled" name="disabled" disabled defaultValue="cannot be changed" />
        <Choice
          label="Choice"
          name="choice"
          options={[
            ['one', 'The first'],
            ['two', 'The second'],
          ]}
        />
        <Area label="Lines" name="lines" rows={2} />
        <Tick label="A tick" name="tick" defaultChecked />
      </Form>
    </Panel>
  )
}

/** Links of components need a router that knows their pages. */
function routerAround(component: () => ReactNode) {
  const root = createRootRoute({ component })
  const pages = ['/', '/devices'].map((path) => createRoute({ getParentRoute: () => root, path }))
  return createRouter({ routeTree: root.addChildren(pages), history: createMemoryHistory() })
}

const place = document.getElementById('root')
if (!place) throw new Error('the page has no place for the design')
createRoot(place).render(
  <QueryClientProvider client={queryClient}>
    <RouterProvider router={routerAround(Design) as never} />
  </QueryClientProvider>,
)
