// The shell around every page of somebody who is signed in: the band with the namespace one is in, the
// palette and the person's menu, and the navigation beside the page, which on a small screen is a drawer.
import { Link, Outlet, useNavigate } from '@tanstack/react-router'
import { Suspense, useState } from 'react'
import { Dialog } from 'react-aria-components/Dialog'
import { Modal, ModalOverlay } from 'react-aria-components/Modal'
import { api, enterNamespace, useMe, useMeLoading } from '../api.ts'
import mark from '../mark.svg'
import { attempt, useAsk } from '../parts/ask.ts'
import { Button } from '../parts/button.tsx'
import { FormDialog } from '../parts/dialog.tsx'
import { Form } from '../parts/form.tsx'
import { Menu, type Item } from '../parts/menu.tsx'
import { Palette, usePaletteKey } from '../parts/palette.tsx'
import { usePlaces, type Place } from '../parts/places.ts'
import { NamespaceField, Quay, Ways } from '../parts/quay.tsx'
import { Loading, Trouble } from '../parts/states.tsx'
import { Toasts, tell } from '../parts/toast.tsx'
import { session } from '../session.ts'
import { chooseTheme, chosenTheme, themes } from '../theme.ts'

const signOut = () => session.end('You are signed out.')

export function Shell() {
  const me = useMeLoading()
  if (me.isError && !me.data)
    return (
      <Quay title="Hawser">
        <Trouble error={me.error} again={() => void me.refetch()} />
      </Quay>
    )
  if (!me.data) return <Loading />
  return (
    <>
      {me.data.tenant === '' ? <Founding /> : <Inside />}
      <Toasts />
    </>
  )
}

/** Somebody without a namespace founds one, or waits to be made a member. */
function Founding() {
  const { name } = useMe()
  return (
    <Quay title="Welcome" heading={`Welcome, ${name}`}>
      <p>
        You are in no namespace yet. Found one, or ask a colleague to add you to theirs and sign in again.
      </p>
      <Form
        submit="Found the namespace"
        send={async ({ name: wanted = '' }) =>
          enterNamespace((await api.namespaces.create({ body: { name: wanted } })).body.tenant_id)
        }
      >
        <NamespaceField
          label="Name"
          required
          hint="Your team’s own world of devices: letters, digits and dashes."
        />
      </Form>
      <Ways>
        <Button kind="quiet" onPress={signOut}>
          Sign out
        </Button>
      </Ways>
    </Quay>
  )
}

function Inside() {
  const { tenant } = useMe()
  const places = usePlaces()
  const [palette, setPalette] = useState(false)
  const [drawer, setDrawer] = useState(false)
  usePaletteKey(() => setPalette(true))
  return (
    <div className="deck">
      <a className="skip" href="#page">
        Skip to the page
      </a>
      <header className="band">
        <div className="band-left">
          <Button kind="bare" aria-label="Navigation" onPress={() => setDrawer(true)}>
            <span className="bars" aria-hidden="true" />
          </Button>
          <Link className="brand" to="/" aria-label="Hawser, overview">
            <img src={mark} alt="" width="40" height="40" />
            <span>Hawser</span>
          </Link>
          <NamespaceMenu />
        </div>
        <div className="band-right">
          <Button kind="bare" onPress={() => setPalette(true)}>
            Go to … <kbd aria-hidden="true">Ctrl K</kbd>
          </Button>
          <PersonMenu />
        </div>
      </header>
      <div className="middle">
        <nav className="places" aria-label="Pages of the console">
          <Places places={places} />
        </nav>
        <main id="page" key={tenant} tabIndex={-1}>
          <Suspense fallback={<Loading />}>
            <Outlet />
          </Suspense>
        </main>
      </div>
      {drawer && (
        <ModalOverlay className="veil side" isOpen isDismissable onOpenChange={setDrawer}>
          <Modal className="drawer">
            <Dialog aria-label="Navigation">
              <nav aria-label="Navigation" className="places" onClick={() => setDrawer(false)}>
                <Places places={places} />
              </nav>
            </Dialog>
          </Modal>
        </ModalOverlay>
      )}
      {palette && <Palette places={places} close={() => setPalette(false)} />}
    </div>
  )
}

function Places({ places }: { places: readonly Place[] }) {
  return (
    <>
      {(['Work', 'Access', 'Namespace'] as const).map((group) => (
        <div key={group} className="group">
          <p className="group-name">{group}</p>
          <ul>
            {places
              .filter((place) => place.group === group)
              .map(({ to, text }) => (
                <li key={to}>
                  <Link
                    to={to}
                    activeOptions={{ exact: to === '/', includeSearch: false }}
                    activeProps={{ 'aria-current': 'page' }}
                  >
                    {text}
                  </Link>
                </li>
              ))}
          </ul>
        </div>
      ))}
      <div className="group">
        <ul>
          <li>
            <a href="/docs">API docs</a>
          </li>
        </ul>
      </div>
    </>
  )
}

export function useNamespaces() {
  return useAsk(['namespaces'], () => api.namespaces.list({ query: { per_page: 100 } }), false)
}

function NamespaceMenu() {
  const me = useMe()
  const navigate = useNavigate()
  const all = useNamespaces().data?.body ?? []
  const [founding, setFounding] = useState(false)
  const here = all.find(({ tenant_id }) => tenant_id === me.tenant)?.name ?? '…'
  const enter = async (tenant: string) => {
    await enterNamespace(tenant)
    await navigate({ to: '/' })
  }
  const items: Item[] = [
    ...all.map(({ name, tenant_id }) => ({
      id: tenant_id,
      text: name,
      chosen: tenant_id === me.tenant,
      act: () => void attempt(() => enter(tenant_id), `You are in ${name} now.`),
    })),
    { id: 'new', text: 'New namespace …', act: () => setFounding(true) },
  ]
  return (
    <>
      <Menu label={`Namespace ${here}`} look="button bare" items={items}>
        {here} <span aria-hidden="true">▾</span>
      </Menu>
      {founding && (
        <FormDialog
          title="New namespace"
          submit="Found the namespace"
          close={() => setFounding(false)}
          send={async ({ name = '' }) => {
            const { body } = await api.namespaces.create({ body: { name } })
            await enter(body.tenant_id)
            tell(`You are in ${body.name} now.`)
          }}
        >
          <NamespaceField label="Name" required hint="Letters, digits and dashes." />
        </FormDialog>
      )}
    </>
  )
}

const themeWords = { system: 'Colours of the system', light: 'Light colours', dark: 'Dark colours' } as const

function PersonMenu() {
  const me = useMe()
  const navigate = useNavigate()
  const [theme, setTheme] = useState(chosenTheme)
  return (
    <Menu
      label={`${me.user}: profile and more`}
      look="button bare"
      items={[
        { id: 'profile', text: 'Profile and second factor', act: () => void navigate({ to: '/profile' }) },
        ...themes.map((one) => ({
          id: one,
          text: themeWords[one],
          chosen: one === theme,
          act: () => {
            chooseTheme(one)
            setTheme(one)
          },
        })),
        { id: 'out', text: 'Sign out', act: signOut },
      ]}
    >
      <span className="who">{me.user}</span> <span aria-hidden="true">▾</span>
    </Menu>
  )
}
