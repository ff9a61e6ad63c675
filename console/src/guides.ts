// The guide of each page: what `Guide` in its heading leads to, among those that the server serves at
// /docs/guides. tests/contract/guides.test.ts fails on a page without one, and on one that is not there.

/** Route → guide, with the heading in it where there is one. */
export const guides: Readonly<Record<string, string>> = {
  '/': 'quick-start',
  '/devices': 'devices',
  '/devices/$uid': 'devices',
  '/devices/$uid/terminal': 'connecting',
  '/add-device': 'devices',
  '/pair': 'devices',
  '/enrolment': 'devices',
  '/services': 'services',
  '/sessions': 'sessions-and-recording',
  '/sessions/$uid': 'sessions-and-recording',
  '/search': 'search',
  '/public-keys': 'public-keys',
  '/firewall': 'firewall',
  '/api-keys': 'api-keys',
  '/connectors': 'containers',
  '/settings': 'team#members',
  '/roles': 'team#roles',
  '/audit': 'auditing',
  '/announcements': 'self-hosting',
  '/billing': 'billing',
  '/profile': 'team#where-you-are-signed-in',
}

/** For the page at this path. */
export function guideOf(pathname: string): string | undefined {
  const place = pathname.replace(/(.)\/$/, '$1')
  const route = Object.keys(guides).find((one) =>
    new RegExp(`^${one.replaceAll(/\$\w+/g, '[^/]+')}$`).test(place),
  )
  return route && `/docs/guides/${guides[route]}`
}
