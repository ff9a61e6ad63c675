// Which public keys and firewall rules are about a device. The names and tags of the device decide, by the
// same filters that the server reads; "Why?" explains one login step by step.
import type { ReactNode } from 'react'
import { Link } from '@tanstack/react-router'
import type { Device } from '@hawser/contract/devices'
import { api } from '../api.ts'
import { useNamespaceQuery } from '../namespace-query.ts'
import { patternWords } from './filter-fields.tsx'
import { Panel } from './page.tsx'
import { testOf } from './rule-preview.tsx'
import { Pill } from './status.tsx'
import { rich, t } from '../language/language.ts'

interface Filter {
  hostname?: string
  tags?: string[]
}

/** Undefined: the browser cannot try the pattern. */
function fits({ hostname, tags }: Filter, device: Device): boolean | undefined {
  if (tags) return tags.some((tag) => device.tags.includes(tag))
  return testOf(hostname ?? '.*')?.(device.name)
}

function whyIt({ hostname, tags }: Filter, device: Device): ReactNode {
  const shared = tags?.filter((tag) => device.tags.includes(tag)) ?? []
  if (tags) return t('because it has the tag {tags}', { tags: shared.join(t(' and ')) })
  if (hostname === undefined || hostname === '' || hostname === '.*') return t('on every device')
  return fits({ hostname }, device) === undefined
    ? rich('if its name matches {hostname}, which only the server can check', {
        hostname: <code>{hostname}</code>,
      })
    : rich('because its name matches {hostname}', { hostname: <code>{hostname}</code> })
}

const isAll = (pattern: string): boolean => pattern === '' || pattern === '.*'

export function DeviceAccess({ device }: { device: Device }) {
  const keys = useNamespaceQuery(
    ['access', 'keys'],
    () => api.publicKeys.list({ query: { per_page: 100 } }),
    false,
  ).data
  const rules = useNamespaceQuery(
    ['access', 'rules'],
    () => api.firewall.list({ query: { per_page: 100 } }),
    false,
  ).data
  if (!keys || !rules) return null
  const reaching = keys.body.filter(({ filter }) => fits(filter, device) !== false)
  const about = rules.body.filter(({ filter, active }) => active && fits(filter, device) !== false)
  // The first matching rule decides, so no later one counts after one that matches every login.
  const last = about.findIndex(
    ({ username, source_ip, filter }) => isAll(username) && isAll(source_ip) && fits(filter, device) === true,
  )
  const shut = about[0]?.action === 'deny' && last === 0
  return (
    <Panel title={t('Access')}>
      <p className="soft">
        {about.length === 0
          ? t('No firewall rule applies to this device, so no login is denied by the firewall.')
          : t('Firewall rules in the order they are checked; the first that matches a login decides:')}{' '}
        {rules.total > rules.body.length && <Link to="/firewall">{t('More rules exist.')}</Link>}
      </p>
      {about.length > 0 && (
        <ol className="rows" aria-label={t('Firewall rules for this device')}>
          {about.map((rule, index) => (
            <li className="row" key={rule.id}>
              <Pill tone={rule.action === 'deny' ? 'bad' : 'good'}>{t(rule.action)}</Pill>
              <span className="about">
                {rich('{user} from {address}', {
                  user: patternWords(rule.username, t('every user')),
                  address: patternWords(rule.source_ip, t('every address')),
                })}{' '}
                <span className="facts">{whyIt(rule.filter, device)}</span>
              </span>
              {last >= 0 && index > last && (
                <span className="soft">{t('never reached: an earlier rule always matches')}</span>
              )}
            </li>
          ))}
        </ol>
      )}
      <p className="soft">
        {shut
          ? t('The firewall denies every login, whatever the key.')
          : reaching.length === 0
            ? t('No public key grants access; only device passwords do.')
            : t('Public keys that grant access, in addition to device passwords:')}{' '}
        {keys.total > keys.body.length && <Link to="/public-keys">{t('More keys exist.')}</Link>}
      </p>
      {reaching.length > 0 && (
        <ul className="rows" aria-label={t('Public keys for this device')}>
          {reaching.map((key) => (
            <li className="row" key={key.fingerprint}>
              <span className="about">
                {key.name}{' '}
                <span className="facts">
                  {rich('as {user}, {why}', {
                    user: patternWords(key.username, t('every user')),
                    why: whyIt(key.filter, device),
                  })}
                </span>
              </span>
            </li>
          ))}
        </ul>
      )}
    </Panel>
  )
}
