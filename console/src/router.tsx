// The routes of the console. Pages for signed-in users are children of the shell, which redirects to the
// sign-in page without a token. With a token the sign-in page redirects to the overview.
import {
  createRootRoute,
  createRoute,
  createRouter,
  lazyRouteComponent,
  Link,
  Outlet,
  redirect,
  type RouteComponent,
} from '@tanstack/react-router'
import { AuthLayout } from './components/auth-layout.tsx'
import { AddDevicePage } from './routes/add-device.tsx'
import { AnnouncementsPage } from './routes/announcements.tsx'
import { ApiKeysPage } from './routes/api-keys.tsx'
import { BillingPage } from './routes/billing.tsx'
import { ConnectorsPage } from './routes/connectors.tsx'
import { DevicePage } from './routes/device.tsx'
import { DevicesPage, readDevicesSearch } from './routes/devices.tsx'
import { EnrolmentPage } from './routes/enrolment.tsx'
import { FirewallPage } from './routes/firewall.tsx'
import {
  ConfirmEmailPage,
  ResetMfaPage,
  UndoChangePage,
  UpdatePasswordPage,
  ValidationAccountPage,
} from './routes/email-links.tsx'
import { LoginPage } from './routes/login.tsx'
import { OverviewPage } from './routes/overview.tsx'
import { PairPage } from './routes/pair.tsx'
import { ProfilePage } from './routes/profile.tsx'
import { PublicKeysPage } from './routes/public-keys.tsx'
import { SessionPage } from './routes/session.tsx'
import { readSessionsSearch, SessionsPage } from './routes/sessions.tsx'
import { SettingsPage } from './routes/settings.tsx'
import { SetupPage } from './routes/setup.tsx'
import { Shell } from './routes/shell.tsx'
import { ConfirmAccountPage, SignUpPage } from './routes/sign-up.tsx'
import { auth } from './auth.ts'

const root = createRootRoute({
  component: Outlet,
  notFoundComponent: NotFoundPage,
  errorComponent: ErrorPage,
})

function NotFoundPage() {
  return (
    <AuthLayout title="No such page">
      <p>The console has no page at this address.</p>
      <Link className="button main" to="/">
        To the overview
      </Link>
    </AuthLayout>
  )
}

/** Shown for a bug in the console; the browser's console has the error. */
function ErrorPage() {
  return (
    <AuthLayout title="Something broke">
      <p>The console met something that it did not expect. Loading the page again usually helps.</p>
      <a className="button main" href="/">
        Reload
      </a>
    </AuthLayout>
  )
}

const at = <const P extends string>(path: P, component: () => React.ReactNode) =>
  createRoute({ getParentRoute: () => root, path, component })

const login = createRoute({
  getParentRoute: () => root,
  path: '/login',
  component: LoginPage,
  beforeLoad: () => {
    // oxlint-disable-next-line typescript/only-throw-error -- the router's way to redirect
    if (auth.token()) throw redirect({ to: '/' })
  },
})

const shell = createRoute({
  getParentRoute: () => root,
  id: 'shell',
  component: Shell,
  beforeLoad: () => {
    // oxlint-disable-next-line typescript/only-throw-error -- the router's way to redirect
    if (!auth.token()) throw redirect({ to: '/login' })
  },
})

const inside = <const P extends string>(path: P, component: RouteComponent) =>
  createRoute({ getParentRoute: () => shell, path, component })

/** Loaded when it is opened, because xterm is larger than the rest of the page. */
const TerminalPage = lazyRouteComponent(() => import('./routes/terminal.tsx'), 'TerminalPage')

const devices = createRoute({
  getParentRoute: () => shell,
  path: '/devices',
  component: DevicesPage,
  validateSearch: readDevicesSearch,
})

const sessions = createRoute({
  getParentRoute: () => shell,
  path: '/sessions',
  component: SessionsPage,
  validateSearch: readSessionsSearch,
})

const tree = root.addChildren([
  login,
  at('/setup', SetupPage),
  at('/sign-up', SignUpPage),
  at('/confirm-account', ConfirmAccountPage),
  at('/validation-account', ValidationAccountPage),
  at('/update-password', UpdatePasswordPage),
  at('/reset-mfa', ResetMfaPage),
  at('/confirm-email', ConfirmEmailPage),
  at('/undo-change', UndoChangePage),
  shell.addChildren([
    inside('/', OverviewPage),
    devices,
    inside('/devices/$uid', DevicePage),
    inside('/devices/$uid/terminal', TerminalPage),
    inside('/add-device', AddDevicePage),
    inside('/pair', PairPage),
    inside('/enrolment', EnrolmentPage),
    sessions,
    inside('/sessions/$uid', SessionPage),
    inside('/public-keys', PublicKeysPage),
    inside('/firewall', FirewallPage),
    inside('/api-keys', ApiKeysPage),
    inside('/connectors', ConnectorsPage),
    inside('/settings', SettingsPage),
    inside('/announcements', AnnouncementsPage),
    inside('/billing', BillingPage),
    inside('/profile', ProfilePage),
  ]),
])

export const router = createRouter({ routeTree: tree, trailingSlash: 'never', scrollRestoration: false })

declare module '@tanstack/react-router' {
  interface Register {
    router: typeof router
  }
}
