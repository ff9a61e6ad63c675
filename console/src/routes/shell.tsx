// The shell around every page of a signed-in user: the header with the namespace menu, the command palette
// and the user menu, and the navigation beside the page, which is a drawer on small screens.
import { Link, Outlet, useNavigate } from '@tanstack/react-router'
import { Suspense, useState } from 'react'
import { Dialog } from 'react-aria-components/Dialog'
import { Modal, ModalOverlay } from 'react-aria-components/Modal'
import { api, switchNamespace, useMe, useMeLoading } from '../api.ts'
import mark from '../mark.svg'
import { attempt, useNamespaceQuery } from '../namespace-query.ts'
import { Button } from '../components/button.tsx'
import { FormDialog } from '../components/dialog.tsx'
import { Form } from '../components/form.tsx'
import { Menu, type Item } from '../components/menu.tsx'
import { Palette, usePaletteKey } from '../components/palette.tsx'
import { useNavItems, type NavItem } from '../navigation.ts'
import { NamespaceField, AuthLayout, AuthLinks } from '../components/auth-layout.tsx'
import { Loading, ErrorNotice } from '../components/query-content.tsx'
import { Toasts, showToast } from '../components/toast.tsx'
import { auth } from '../auth.ts'
import { chooseTheme, chosenTheme, themes } from '../theme.ts'

const signOut = () => auth.signOut('You are signed out.')

export function Shell() {
  const me = useMeLoading()
  if (me.isError && !me.data)
    return (
      <AuthLayout title="Hawser">
        <ErrorNotice error={me.error} again={() => void me.refetch()} />
      </AuthLayout>
    )
  if (!me.data) return <Loading />
  return (
    <>
      {me.data.tenant === '' ? <CreateNamespacePage /> : <Inside />}
      <Toasts />
    </>
  )
}

/** For a user without a namespace, who creates one or waits to be added to one. */
function CreateNamespacePage() {
  const { name } = useMe()
  return (
    <AuthLayout title="Welcome" heading={`Welcome, ${name}`}>
      <p>
        You are in no namespace yet. Create one, or ask a colleague to add you to theirs and sign in again.
      </p>
      <Form
        submit="Create the namespace"
        send={async ({ name: wanted = '' }) =>
          switchNamespace((await api.namespaces.create({ body: { name: wanted } })).body.tenant_id)
        }
      >
        <NamespaceField
          label="Name"
          required
          hint="Your team’s own world of devices: letters, digits and dashes."
        />
      </Form>
      <AuthLinks>
        <Button kind="quiet" onPress={signOut}>
          Sign out
        </Button>
      </AuthLinks>
    </AuthLayout>
  )
}

function Inside() {
  const { tenant } = useMe()
  const places = useNavItems()
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

function Places({ places }: { places: readonly NavItem[] }) {
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
  return useNamespaceQuery(['namespaces'], () => api.namespaces.list({ query: { per_page: 100 } }), false)
}

function NamespaceMenu() {
  const me = useMe()
  const navigate = useNavigate()
  const all = useNamespaces().data?.body ?? []
  const [creating, setCreating] = useState(false)
  const here = all.find(({ tenant_id }) => tenant_id === me.tenant)?.name ?? '…'
  const enter = async (tenant: string) => {
    await switchNamespace(tenant)
    await navigate({ to: '/' })
  }
  const items: Item[] = [
    ...all.map(({ name, tenant_id }) => ({
      id: tenant_id,
      text: name,
      chosen: tenant_id === me.tenant,
      act: () => void attempt(() => enter(tenant_id), `You are in ${name} now.`),
    })),
    { id: 'new', text: 'New namespace …', act: () => setCreating(true) },
  ]
  return (
    <>
      <Menu label={`Namespace ${here}`} look="button bare" items={items}>
        {here} <span aria-hidden="true">▾</span>
      </Menu>
      {creating && (
        <FormDialog
          title="New namespace"
          submit="Create the namespace"
          close={() => setCreating(false)}
          send={async ({ name = '' }) => {
            const { body } = await api.namespaces.create({ body: { name } })
            await enter(body.tenant_id)
            showToast(`You are in ${body.name} now.`)
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
