// Logins to devices that were refused, with the reason, for administrators. The server keeps the newest 1,000 for
// 30 days.
import { Link } from '@tanstack/react-router'
import { useState } from 'react'
import { refusalSentences, type LoginRefusal } from '@hawser/contract/logins'
import { api, useMay } from '../api.ts'
import { t, tn } from '../language/language.ts'
import { useNamespaceQuery } from '../namespace-query.ts'
import { spanOf } from '../search-params.ts'
import type { SessionsSearch } from '../session-search.ts'
import { Panel } from './page.tsx'
import { methods } from './person.tsx'
import { Empty, QueryList } from './query-content.tsx'
import { Lamp, Pill, When } from './status.tsx'

const page_size = 20

export function RefusedLogins({ search }: { search: SessionsSearch }) {
  const may = useMay('administrator')
  if (!may)
    return (
      <Panel>
        <Empty title={t('Only administrators of the namespace can see refused logins.')} />
      </Panel>
    )
  return <Refusals search={search} />
}

function Refusals({ search }: { search: SessionsSearch }) {
  const { device, since, from, until } = search
  // The server knows no other reasons.
  const reason = Object.hasOwn(refusalSentences, search.reason ?? '') ? search.reason : undefined
  const [page, setPage] = useState(1)
  const query = { page, per_page: page_size, device_uid: device, reason }
  const refusals = useNamespaceQuery(['refusals', query, since, from, until], () =>
    api.logins.refusals({ query: { ...query, ...spanOf(search) } }),
  )
  return (
    <Panel>
      <QueryList
        query={refusals}
        label={t('Refused logins')}
        empty={<Empty title={t('No refused logins match these filters.')} />}
        page={{ number: page, size: page_size, turn: setPage }}
        row={(one) => <RefusalRow key={one.reference} refusal={one} />}
      />
    </Panel>
  )
}

function RefusalRow({ refusal }: { refusal: LoginRefusal }) {
  const { username, device, name, sshid, sentence, detail, times, source, by, method, reference } = refusal
  return (
    <li className="row">
      <Lamp on={false} state="rejected" />
      <div className="about">
        <p className="name">
          <strong>{username ?? sshid}</strong>{' '}
          {device !== undefined && (
            <Link to="/devices/$uid" params={{ uid: device }}>
              {name ?? device.slice(0, 12)}
            </Link>
          )}{' '}
          {times > 1 && <Pill tone="wait">{tn(times, '{count} time', '{count} times')}</Pill>}
        </p>
        <p>
          {t(sentence)}
          {detail !== undefined && detail !== sentence && <span className="soft"> {t(detail)}</span>}
        </p>
        <p className="facts">
          {by !== undefined && `${by} · `}
          <When at={refusal.last_at} /> · {t('from {address}', { address: source })}
          {method !== undefined && ` · ${t(methods[method] ?? method)}`} ·{' '}
          {t('reference {code}', { code: reference })}
        </p>
      </div>
    </li>
  )
}
