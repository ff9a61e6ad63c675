// The containers that connectors offer from the address of a device: those on it, or those next to it if it is
// one. Connectors do not say on which device their engine runs; the address is what both have in common.
import { Link } from '@tanstack/react-router'
import type { Device } from '@hawser/contract/devices'
import { encodeFilter, type FilterElement } from '@hawser/contract/filters'
import { api } from '../api.ts'
import { isolated, t } from '../language/language.ts'
import { useNamespaceQuery } from '../namespace-query.ts'
import { containerPlatform } from './device-forwards.tsx'
import { Panel } from './page.tsx'
import { Lamp } from './status.tsx'

const few = 20

const is = (name: string, value: string): FilterElement => ({
  type: 'property',
  params: { name, operator: 'eq', value },
})

export function DeviceContainers({ device: { uid, remote_addr, info } }: { device: Device }) {
  const found = useNamespaceQuery(['containers', remote_addr], () =>
    api.devices.list({
      query: {
        status: 'accepted',
        sort_by: 'name',
        order_by: 'asc',
        per_page: few + 1,
        filter: encodeFilter([
          is('info.platform', containerPlatform),
          is('remote_addr', remote_addr),
          { type: 'operator', params: { name: 'and' } },
        ]),
      },
    }),
  ).data
  const others = found?.body.filter((one) => one.uid !== uid) ?? []
  if (remote_addr === '' || others.length === 0) return null
  const isContainer = info.platform === containerPlatform
  return (
    <Panel
      title={isContainer ? t('Containers on the same machine') : t('Containers')}
      acts={
        found &&
        found.total > few && (
          <Link to="/devices" search={{ find: remote_addr }}>
            {t('All {count}', { count: found.total })}
          </Link>
        )
      }
    >
      <p className="soft">{t('They come from the same address, {address}.', { address: remote_addr })}</p>
      <ul className="rows" aria-label={t('Containers from the same address')}>
        {others.slice(0, few).map((one) => (
          <li className="row" key={one.uid}>
            <Lamp on={one.online} />
            <span className="about">
              <Link to="/devices/$uid" params={{ uid: one.uid }}>
                <strong>{one.name}</strong>
              </Link>{' '}
              <span className="facts">{isolated(one.info.pretty_name)}</span>
            </span>
          </li>
        ))}
      </ul>
    </Panel>
  )
}
