// The entries of the navigation and of the command palette, in their order.
import { useMay } from './api.ts'
import type { IconName } from './components/icon.tsx'
import { msg, t } from './language/language.ts'

/** In their order. */
export const groups = { work: msg('Work'), access: msg('Access'), namespace: msg('Namespace') } as const

export interface NavItem {
  to: string
  text: string
  group: keyof typeof groups
  icon: IconName
}

const everyone: readonly NavItem[] = [
  { to: '/', text: msg('Overview'), group: 'work', icon: 'overview' },
  { to: '/devices', text: msg('Devices'), group: 'work', icon: 'devices' },
  { to: '/add-device', text: msg('Add a device'), group: 'work', icon: 'add' },
  { to: '/services', text: msg('Services'), group: 'work', icon: 'services' },
  { to: '/sessions', text: msg('Sessions'), group: 'work', icon: 'terminal' },
  { to: '/public-keys', text: msg('Public keys'), group: 'access', icon: 'keys' },
  { to: '/firewall', text: msg('Firewall rules'), group: 'access', icon: 'firewall' },
  { to: '/api-keys', text: msg('API keys'), group: 'access', icon: 'key' },
  { to: '/enrolment', text: msg('Enrolment'), group: 'access', icon: 'enrolment' },
  { to: '/connectors', text: msg('Connectors'), group: 'access', icon: 'connectors' },
  { to: '/settings', text: msg('Settings and members'), group: 'namespace', icon: 'settings' },
  { to: '/announcements', text: msg('Announcements'), group: 'namespace', icon: 'news' },
]
const administrators: readonly NavItem[] = [
  { to: '/audit', text: msg('Audit log'), group: 'namespace', icon: 'audit' },
]
const owners: readonly NavItem[] = [
  { to: '/billing', text: msg('Billing'), group: 'namespace', icon: 'billing' },
]

export function useNavItems(): readonly NavItem[] {
  const [administers, owns] = [useMay('administrator'), useMay('owner')]
  const items = [...everyone, ...(administers ? administrators : []), ...(owns ? owners : [])]
  return items.map((item) => ({ ...item, text: t(item.text) }))
}
