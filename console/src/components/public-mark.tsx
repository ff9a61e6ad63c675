// The mark of what anyone can open without signing in: a public service, or a device that has one.
import { api } from '../api.ts'
import { useNamespaceQuery } from '../namespace-query.ts'
import { t } from '../language/language.ts'
import { Icon } from './icon.tsx'

export const PublicMark = () => (
  <span className="pill public" title={t('Anyone can open it, without signing in.')}>
    <Icon name="public" />
    <span className="word">{t('public')}</span>
  </span>
)

const none: ReadonlySet<string> = new Set()

const page_size = 100

async function publicServices() {
  const all = []
  for (let page = 1; all.length === (page - 1) * page_size; page += 1)
    all.push(...(await api.webEndpoints.list({ query: { page, per_page: page_size } })).body)
  return all
}

/** The uids of devices with a public service that has not expired: one call for the whole list, or a few. */
export function usePublicDevices(): ReadonlySet<string> {
  const found = useNamespaceQuery(['public devices'], publicServices, false).data
  // `ttl` is -1 without an end.
  const open = found?.filter(({ ttl, expires_in }) => ttl === -1 || Date.parse(expires_in) > Date.now())
  return open && open.length > 0 ? new Set(open.map(({ device_uid }) => device_uid)) : none
}
