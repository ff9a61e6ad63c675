// The routes of the console. Pages for signed-in users are children of the shell, which redirects to the
// sign-in page without a token. With a token the sign-in page redirects to the overview.
import {
  createRootRoute,
  createRoute,
  createRouter,
  defaultParseSearch,
  lazyRouteComponent,
  Link,
  Outlet,
  redirect,
  type RouteComponent,
} from '@tanstack/react-router'
import { AuthLayout } from './components/auth-layout.tsx'
import { api, prefetch } from './api.ts'
import { auth } from './auth.ts'
import { readAuditSearch } from './audit-search.ts'
import { prefetchDevices, readDevicesSearch } from './device-list.ts'
import { keepPlace } from './link-params.ts'
import { readRecordingSearch, readSessionSearch, readSessionsSearch } from './session-search.ts'
import { Shell } from './routes/shell.tsx'
import { t } from './language/language.ts'

const root = createRootRoute({
  component: Outlet,
  notFoundComponent: NotFoundPage,
  errorComponent: ErrorPage,
})

function NotFoundPage() {
  return (
    <AuthLayout title={t('Page not found')}>
      <p>{t('There is no page at this address.')}</p>
      <Link className="button main" to="/">
        {t('To the overview')}
      </Link>
    </AuthLayout>
  )
}

/** For a bug in the console; the browser's console has the error. */
function ErrorPage() {
  return (
    <AuthLayout title={t('Something went wrong')}>
      <p>{t('An unexpected error occurred. Reloading the page usually helps.')}</p>
      <a className="button main" href="/">
        {t('Reload')}
      </a>
    </AuthLayout>
  )
}

/** Each page is fetched just before it is opened: a link under the pointer is enough. */
const lazy = lazyRouteComponent
const AddDevicePage = lazy(() => import('./routes/add-device.tsx'), 'AddDevicePage')
const AnnouncementsPage = lazy(() => import('./routes/announcements.tsx'), 'AnnouncementsPage')
const ApiKeysPage = lazy(() => import('./routes/api-keys.tsx'), 'ApiKeysPage')
const AuditPage = lazy(() => import('./routes/audit.tsx'), 'AuditPage')
const BillingPage = lazy(() => import('./routes/billing.tsx'), 'BillingPage')
const ConnectorsPage = lazy(() => import('./routes/connectors.tsx'), 'ConnectorsPage')
const DevicePage = lazy(() => import('./routes/device.tsx'), 'DevicePage')
const EnrolmentPage = lazy(() => import('./routes/enrolment.tsx'), 'EnrolmentPage')
const FirewallPage = lazy(() => import('./routes/firewall.tsx'), 'FirewallPage')
const InvitationPage = lazy(() => import('./routes/invitation.tsx'), 'InvitationPage')
const JoinPage = lazy(() => import('./routes/join.tsx'), 'JoinPage')
const OpenPage = lazy(() => import('./routes/open.tsx'), 'OpenPage')
const OverviewPage = lazy(() => import('./routes/overview.tsx'), 'OverviewPage')
const PairPage = lazy(() => import('./routes/pair.tsx'), 'PairPage')
const ProfilePage = lazy(() => import('./routes/profile.tsx'), 'ProfilePage')
const PublicKeysPage = lazy(() => import('./routes/public-keys.tsx'), 'PublicKeysPage')
const RolesPage = lazy(() => import('./routes/roles.tsx'), 'RolesPage')
const SearchPage = lazy(() => import('./routes/search.tsx'), 'SearchPage')
const ServicesPage = lazy(() => import('./routes/services.tsx'), 'ServicesPage')
const SettingsPage = lazy(() => import('./routes/settings.tsx'), 'SettingsPage')
const SetupPage = lazy(() => import('./routes/setup.tsx'), 'SetupPage')
const DevicesPage = lazy(() => import('./routes/devices.tsx'), 'DevicesPage')
const SessionsPage = lazy(() => import('./routes/sessions.tsx'), 'SessionsPage')
const SessionPage = lazy(() => import('./routes/session.tsx'), 'SessionPage')
const TerminalPage = lazy(() => import('./routes/terminal.tsx'), 'TerminalPage')
const ConfirmAccountPage = lazy(() => import('./routes/sign-up.tsx'), 'ConfirmAccountPage')
const SignUpPage = lazy(() => import('./routes/sign-up.tsx'), 'SignUpPage')
const ConfirmEmailPage = lazy(() => import('./routes/email-links.tsx'), 'ConfirmEmailPage')
const ResetMfaPage = lazy(() => import('./routes/email-links.tsx'), 'ResetMfaPage')
const UndoChangePage = lazy(() => import('./routes/email-links.tsx'), 'UndoChangePage')
const UpdatePasswordPage = lazy(() => import('./routes/email-links.tsx'), 'UpdatePasswordPage')
const ValidationAccountPage = lazy(() => import('./routes/email-links.tsx'), 'ValidationAccountPage')

const at = <const P extends string>(path: P, component: RouteComponent) =>
  createRoute({ getParentRoute: () => root, path, component })

/** The sign-in page is not a part of this: it is loaded by itself. */
const login = createRoute({
  getParentRoute: () => root,
  path: '/login',
  beforeLoad: ({ preload }) => {
    // oxlint-disable-next-line typescript/only-throw-error -- the router's way to redirect
    if (auth.token()) throw redirect({ to: '/' })
    if (preload) return undefined
    // The address is that of the sign-in page already.
    location.reload()
    return new Promise<void>(() => {})
  },
})

const shell = createRoute({
  getParentRoute: () => root,
  id: 'shell',
  component: Shell,
  beforeLoad: ({ location: { href }, preload }) => {
    // A link under the pointer is not a request of the person.
    if (!auth.token() && !preload) keepPlace(href)
    // oxlint-disable-next-line typescript/only-throw-error -- the router's way to redirect
    if (!auth.token()) throw redirect({ to: '/login' })
  },
})

/** For a guest of a session, who may be in another namespace, or in none. */
const join = createRoute({
  getParentRoute: () => root,
  path: '/join',
  component: JoinPage,
  beforeLoad: ({ preload }) => {
    if (auth.token() || preload) return
    keepPlace('/join')
    // oxlint-disable-next-line typescript/only-throw-error -- the router's way to redirect
    throw redirect({ to: '/login' })
  },
})

/** On the way into a service, whose namespace may be another one than the person's present one. */
const open = createRoute({
  getParentRoute: () => root,
  path: '/open/$address',
  component: OpenPage,
  beforeLoad: ({ preload }) => {
    if (auth.token() || preload) return
    // As the browser has it: the router rewrites what looks like a number.
    keepPlace(location.pathname + location.search + location.hash)
    // oxlint-disable-next-line typescript/only-throw-error -- the router's way to redirect
    throw redirect({ to: '/login' })
  },
})

const inside = <const P extends string>(path: P, component: RouteComponent) =>
  createRoute({ getParentRoute: () => shell, path, component })

const devices = createRoute({
  getParentRoute: () => shell,
  path: '/devices',
  component: DevicesPage,
  validateSearch: readDevicesSearch,
  loaderDeps: ({ search }) => search,
  loader: ({ deps }) => prefetchDevices(deps),
})

const device = createRoute({
  getParentRoute: () => shell,
  path: '/devices/$uid',
  component: DevicePage,
  loader: ({ params: { uid } }) =>
    prefetch(['device', uid], async () => (await api.devices.get({ params: { uid } })).body),
})

const sessions = createRoute({
  getParentRoute: () => shell,
  path: '/sessions',
  component: SessionsPage,
  validateSearch: readSessionsSearch,
})

const session = createRoute({
  getParentRoute: () => shell,
  path: '/sessions/$uid',
  component: SessionPage,
  validateSearch: readSessionSearch,
})

const search = createRoute({
  getParentRoute: () => shell,
  path: '/search',
  component: SearchPage,
  validateSearch: readRecordingSearch,
})

const audit = createRoute({
  getParentRoute: () => shell,
  path: '/audit',
  component: AuditPage,
  validateSearch: readAuditSearch,
})

const tree = root.addChildren([
  login,
  at('/setup', SetupPage),
  join,
  open,
  at('/sign-up', SignUpPage),
  at('/confirm-account', ConfirmAccountPage),
  at('/validation-account', ValidationAccountPage),
  at('/update-password', UpdatePasswordPage),
  at('/reset-mfa', ResetMfaPage),
  at('/confirm-email', ConfirmEmailPage),
  at('/undo-change', UndoChangePage),
  at('/invitation', InvitationPage),
  shell.addChildren([
    inside('/', OverviewPage),
    devices,
    device,
    inside('/devices/$uid/terminal', TerminalPage),
    inside('/add-device', AddDevicePage),
    inside('/services', ServicesPage),
    inside('/pair', PairPage),
    inside('/enrolment', EnrolmentPage),
    sessions,
    session,
    search,
    inside('/public-keys', PublicKeysPage),
    inside('/firewall', FirewallPage),
    inside('/api-keys', ApiKeysPage),
    inside('/connectors', ConnectorsPage),
    inside('/settings', SettingsPage),
    inside('/roles', RolesPage),
    audit,
    inside('/announcements', AnnouncementsPage),
    inside('/billing', BillingPage),
    inside('/profile', ProfilePage),
  ]),
])

export const router = createRouter({
  routeTree: tree,
  trailingSlash: 'never',
  scrollRestoration: false,
  defaultPreload: 'intent',
})

/** For the page of the address. */
export function prefetchHere(): void {
  if (auth.token() && /^\/devices\/?$/.test(location.pathname))
    prefetchDevices(readDevicesSearch(defaultParseSearch(location.search)))
}

declare module '@tanstack/react-router' {
  interface Register {
    router: typeof router
  }
}
