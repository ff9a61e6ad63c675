// The choice of devices when a namespace has more than its limit. The most used ones are proposed. The others
// become pending, and can be accepted again once there is room.
import { useId, useState } from 'react'
import { defined } from '@hawser/contract/defined'
import type { Device } from '@hawser/contract/devices'
import { encodeFilter } from '@hawser/contract/filters'
import { api } from '../api.ts'
import { showSaved, useNamespaceQuery } from '../namespace-query.ts'
import { FormDialog } from './dialog.tsx'
import { QueryContent, Empty } from './query-content.tsx'
import { systemName } from './status.tsx'
import { t, tn } from '../language/language.ts'

/** The largest page that the server sends. */
const shown_most = 100

interface Candidates {
  devices: Device[]
  total: number
  proposed: readonly string[]
}

async function candidates(find: string): Promise<Candidates> {
  const filter = { type: 'property', params: { name: 'name', operator: 'contains', value: find } } as const
  const [accepted, used] = await Promise.all([
    api.devices.list({
      query: {
        status: 'accepted',
        sort_by: 'last_seen',
        per_page: shown_most,
        ...defined({ filter: find === '' ? undefined : encodeFilter([filter]) }),
      },
    }),
    api.devices.mostUsed(),
  ])
  const most = used.body.filter(
    ({ status, name }) => status === 'accepted' && name.includes(find.toLowerCase()),
  )
  const rest = accepted.body.filter(({ uid }) => !most.some((device) => device.uid === uid))
  return { devices: [...most, ...rest], total: accepted.total, proposed: most.map(({ uid }) => uid) }
}

export function DeviceChoice({ limit, close }: { limit: number; close: () => void }) {
  const id = useId()
  const [find, setFind] = useState('')
  const [chosen, setChosen] = useState<ReadonlyMap<string, string>>()
  const asked = useNamespaceQuery(['device-choice', find], () => candidates(find), false)
  const proposed = (asked.data?.devices ?? [])
    .filter(({ uid }) => asked.data?.proposed.includes(uid))
    .slice(0, limit)
  const picked = chosen ?? new Map(proposed.map(({ uid, name }) => [uid, name]))
  const tick = ({ uid, name }: Device, on: boolean) => {
    const next = new Map(picked)
    if (on) next.set(uid, name)
    else next.delete(uid)
    setChosen(next)
  }
  return (
    <FormDialog
      wide
      title={t('Choose the devices that stay')}
      submit={
        picked.size === 0 ? t('Keep none') : tn(picked.size, 'Keep {count} device', 'Keep {count} devices')
      }
      close={close}
      send={async () => {
        await api.devices.choose({ body: { choices: [...picked.keys()] } })
        await showSaved(t('The other devices are now waiting.'))
      }}
      refused={(error) => {
        if (error.kind !== 'notFound') return undefined
        setChosen(undefined)
        void asked.refetch()
        return t('A chosen device is no longer accepted; choose again.')
      }}
    >
      <p className="soft">
        {t(
          'Up to {limit} devices stay accepted; the most used ones are preselected. The others are set to waiting, and their live sessions end.',
          { limit },
        )}
      </p>
      <QueryContent query={asked}>
        {({ devices, total }) => (
          <>
            {(total > 10 || find !== '') && (
              <div className="field">
                <label htmlFor={id}>{t('Search')}</label>
                <input
                  id={id}
                  type="search"
                  value={find}
                  onChange={(event) => setFind(event.currentTarget.value)}
                />
              </div>
            )}
            {devices.length === 0 ? (
              <Empty title={t('No accepted device matches this name.')} />
            ) : (
              <ul className="rows scrolled" aria-label={t('Accepted devices')} tabIndex={0}>
                {devices.map((device) => (
                  <li key={device.uid} className="row">
                    <label className="tick">
                      <input
                        type="checkbox"
                        checked={picked.has(device.uid)}
                        disabled={!picked.has(device.uid) && picked.size >= limit}
                        onChange={(event) => tick(device, event.currentTarget.checked)}
                      />{' '}
                      <span>
                        <strong>{device.name}</strong>{' '}
                        <span className="soft">
                          {device.online ? t('online') : t('offline')} · {systemName(device.info)}
                        </span>
                      </span>
                    </label>
                  </li>
                ))}
              </ul>
            )}
            {total > devices.length && (
              <p className="soft">{t('There are {total} in total; search to find the others.', { total })}</p>
            )}
          </>
        )}
      </QueryContent>
      <p className="soft" aria-live="polite">
        {t('{count} of {limit} selected', { count: picked.size, limit })}
        {picked.size > 0 && `: ${[...picked.values()].join(', ')}`}
      </p>
    </FormDialog>
  )
}
