// The file of the first page, fetched before the rest of the console is there.

const pages: readonly (readonly [RegExp, () => Promise<unknown>])[] = [
  [/^\/$/, () => import('./routes/overview.tsx')],
  [/^\/devices\/?$/, () => import('./routes/devices.tsx')],
  [/^\/devices\/[^/]+\/?$/, () => import('./routes/device.tsx')],
  [/^\/open\/[^/]+$/, () => import('./routes/open.tsx')],
  [/^\/sessions\/?$/, () => import('./routes/sessions.tsx')],
]

export function fetchPage(): void {
  const page = pages.find(([path]) => path.test(location.pathname))
  page?.[1]().catch(() => {})
}
