// The shell around every page of a signed-in user: the header with the namespace menu, the command palette
// and the user menu, and the navigation next to the page, which is a drawer on small screens.
import { Link, Outlet, useNavigate } from '@tanstack/react-router'
import { Suspense, useId, useState, useSyncExternalStore } from 'react'
import { Dialog } from 'react-aria-components/Dialog'
import { Modal, ModalOverlay } from 'react-aria-components/Modal'
import { api, switchNamespace, useMe, useMeLoading } from '../api.ts'
import mark from '../mark.svg'
import { attempt, useBodyQuery, useNamespaceQuery } from '../namespace-query.ts'
import { Button, QuietButton } from '../components/button.tsx'
import { Icon } from '../components/icon.tsx'
import { FormDialog } from '../components/dialog.tsx'
import { Form } from '../components/form.tsx'
import { Menu, type Item } from '../components/menu.tsx'
import { Palette, usePaletteKey } from '../components/palette.tsx'
import { groups, useNavItems, type NavItem } from '../navigation.ts'
import { NamespaceField, AuthLayout, AuthLinks } from '../components/auth-layout.tsx'
import { Loading, ErrorNotice } from '../components/query-content.tsx'
import { Toasts, showToast } from '../components/toast.tsx'
import { auth } from '../auth.ts'
import { chooseLanguage, chosenLanguage, languageNames } from '../language/choice.ts'
import { languages, msg, t } from '../language/language.ts'
import { chooseTheme, chosenTheme, onTheme, themes } from '../theme.ts'

/** Ends the sign-in at the server, too, but an unreachable server must not prevent it. */
const signOut = () =>
  void api.signIns
    .end({ params: { id: 'current' }, signal: AbortSignal.timeout(3000) })
    .catch(() => undefined)
    .finally(() => auth.signOut(t('You are signed out.')))

export function Shell() {
  const me = useMeLoading()
  if (me.isError && !me.data)
    return (
      <AuthLayout title="Hawser">
        <ErrorNotice error={me.error} again={() => me.refetch()} />
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

/** For a user without a namespace, who creates one or waits for an invitation. */
function CreateNamespacePage() {
  const { name } = useMe()
  return (
    <AuthLayout title={t('Welcome')} heading={t('Welcome, {name}', { name })}>
      <p>
        {t(
          'You are not in any namespace yet. Create one, or ask a colleague to add you to theirs and sign in again.',
        )}
      </p>
      <Form
        submit={t('Create the namespace')}
        send={async ({ name: wanted = '' }) =>
          switchNamespace((await api.namespaces.create({ body: { name: wanted } })).body.tenant_id)
        }
      >
        <NamespaceField
          name="name"
          required
          hint={t('A namespace holds your team’s devices. Use letters, digits and dashes.')}
        />
      </Form>
      <AuthLinks>
        <QuietButton onPress={signOut}>{t('Sign out')}</QuietButton>
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
        {t('Skip to the page')}
      </a>
      <header className="band">
        <div className="band-in">
          <div className="band-left">
            <DrawerButton open={() => setDrawer(true)} />
            <Link className="brand" to="/" aria-label={t('Hawser, overview')}>
              <img src={mark} alt="" width="30" height="30" />
              <span>Hawser</span>
            </Link>
            <NamespaceMenu />
          </div>
          <div className="band-right">
            <Button kind="bare" look="go-to" onPress={() => setPalette(true)}>
              <span className="state">
                <Icon name="search" /> {t('Go to …')}
              </span>
              <kbd aria-hidden="true">Ctrl K</kbd>
            </Button>
            <PersonMenu />
          </div>
        </div>
      </header>
      <div className="middle">
        <nav className="places" aria-label={t('Pages of the console')}>
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
            <Dialog aria-label={t('Navigation')}>
              <nav aria-label={t('Navigation')} className="places" onClick={() => setDrawer(false)}>
                <Places places={places} />
              </nav>
            </Dialog>
          </Modal>
        </ModalOverlay>
      )}
      <Palette places={places} isOpen={palette} close={() => setPalette(false)} />
    </div>
  )
}

/** For the navigation: pending devices, and live sessions. */
function useCounts(): Readonly<Record<string, { count: number; what: string; tone?: 'wait' } | undefined>> {
  const stats = useBodyQuery(['stats'], () => api.system.stats()).data
  return {
    '/devices': stats && { count: stats.pending_devices, what: t('waiting'), tone: 'wait' },
    '/sessions': stats && { count: stats.active_sessions, what: t('live') },
  }
}

/** A number next to a word. For screen readers it is the description of the link, not a part of its name. */
function Count({ id, count, what, tone }: { id: string; count: number; what: string; tone?: 'wait' }) {
  return (
    <span className="count" data-tone={tone} aria-hidden="true" title={`${count} ${what}`}>
      {count > 999 ? '999+' : count}
      <span id={id} hidden>
        {count} {what}
      </span>
    </span>
  )
}

/** On a small screen, without a navigation, the button shows the number of pending devices. */
function DrawerButton({ open }: { open: () => void }) {
  const id = useId()
  const waiting = useCounts()['/devices']
  const isCounted = waiting !== undefined && waiting.count > 0
  return (
    <span className="drawer-button">
      <Button
        kind="bare"
        aria-label={t('Navigation')}
        aria-describedby={isCounted ? id : undefined}
        onPress={open}
      >
        <Icon name="menu" />
      </Button>
      {isCounted && <Count id={id} {...waiting} />}
    </span>
  )
}

function Places({ places }: { places: readonly NavItem[] }) {
  const counts = useCounts()
  const id = useId()
  return (
    <>
      {(['work', 'access', 'namespace'] as const).map((group) => (
        <div key={group} className="group">
          <p className="group-name">{t(groups[group])}</p>
          <ul>
            {places
              .filter((place) => place.group === group)
              .map(({ to, text, icon }) => {
                const counted = counts[to]
                return (
                  <li key={to}>
                    <Link
                      to={to}
                      activeOptions={{ exact: to === '/', includeSearch: false }}
                      activeProps={{ 'aria-current': 'page' }}
                      aria-describedby={counted?.count ? id + to : undefined}
                    >
                      <Icon name={icon} />
                      {text}
                      {counted !== undefined && counted.count > 0 && <Count id={id + to} {...counted} />}
                    </Link>
                  </li>
                )
              })}
          </ul>
        </div>
      ))}
      <div className="group">
        <ul>
          <li>
            <a href="/docs">
              <Icon name="guide" />
              {t('API docs')}
            </a>
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
      act: () => void attempt(() => enter(tenant_id), t('You are now in {name}.', { name })),
    })),
    {
      id: 'new',
      text: t('New namespace …'),
      dialog: (close) => (
        <FormDialog
          title={t('New namespace')}
          submit={t('Create the namespace')}
          close={close}
          send={async ({ name = '' }) => {
            const { body } = await api.namespaces.create({ body: { name } })
            await enter(body.tenant_id)
            showToast(t('You are now in {name}.', { name: body.name }))
          }}
        >
          <NamespaceField name="name" required hint={t('Letters, digits and dashes.')} />
        </FormDialog>
      ),
    },
  ]
  return (
    <Menu label={t('Namespace {name}', { name: here })} look="button bare" items={items}>
      {here} <Icon name="down" />
    </Menu>
  )
}

const themeWords = {
  system: msg('System theme'),
  light: msg('Light theme'),
  dark: msg('Dark theme'),
} as const

function PersonMenu() {
  const me = useMe()
  const navigate = useNavigate()
  const theme = useSyncExternalStore(onTheme, chosenTheme)
  return (
    <Menu
      label={t('{user}: profile and more', { user: me.user })}
      look="button bare"
      items={[
        { id: 'profile', text: t('Profile and second factor'), act: () => void navigate({ to: '/profile' }) },
        ...themes.map((one) => ({
          id: one,
          text: t(themeWords[one]),
          chosen: one === theme,
          act: () => chooseTheme(one),
        })),
        ...[undefined, ...languages].map((one) => ({
          id: `language-${one ?? 'browser'}`,
          text: one === undefined ? t('Browser language') : languageNames[one],
          chosen: one === chosenLanguage(),
          act: () => chooseLanguage(one),
        })),
        { id: 'out', text: t('Sign out'), act: signOut },
      ]}
    >
      <span className="who">{me.user}</span> <Icon name="down" />
    </Menu>
  )
}
