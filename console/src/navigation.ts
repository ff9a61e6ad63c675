// The entries of the navigation and of the command palette, in their order.
import { useMay } from './api.ts'

export interface NavItem {
  to: string
  text: string
  group: 'Work' | 'Access' | 'Namespace'
}

const everyone: readonly NavItem[] = [
  { to: '/', text: 'Overview', group: 'Work' },
  { to: '/devices', text: 'Devices', group: 'Work' },
  { to: '/add-device', text: 'Add a device', group: 'Work' },
  { to: '/sessions', text: 'Sessions', group: 'Work' },
  { to: '/public-keys', text: 'Public keys', group: 'Access' },
  { to: '/firewall', text: 'Firewall rules', group: 'Access' },
  { to: '/api-keys', text: 'API keys', group: 'Access' },
  { to: '/enrolment', text: 'Enrolment', group: 'Access' },
  { to: '/connectors', text: 'Connectors', group: 'Access' },
  { to: '/settings', text: 'Settings and members', group: 'Namespace' },
  { to: '/announcements', text: 'Announcements', group: 'Namespace' },
]
const owners: readonly NavItem[] = [{ to: '/billing', text: 'Billing', group: 'Namespace' }]

export function useNavItems(): readonly NavItem[] {
  return useMay('owner') ? [...everyone, ...owners] : everyone
}
