// The filters of the lists of sessions and of refused logins: the fields, and a chip for each filter that is
// set, which removes it. All of them are in the address.
import { Link, useNavigate } from '@tanstack/react-router'
import { defined } from '@hawser/contract/defined'
import { refusalSentences } from '@hawser/contract/logins'
import { sessionMethods } from '@hawser/contract/sessions'
import { api } from '../api.ts'
import { inFull } from '../language/format.ts'
import { t } from '../language/language.ts'
import { Options } from './form.tsx'
import { useNamespace, useNamespaceQuery } from '../namespace-query.ts'
import { readSessionsSearch, type SessionsSearch } from '../session-search.ts'
import { Icon } from './icon.tsx'
import { NameField } from './name-field.tsx'
import { methods } from './person.tsx'
import { rangeWords, TimeRange } from './time-range.tsx'

type Change = { [K in keyof SessionsSearch]?: SessionsSearch[K] | undefined }

/** Without the filters: which tab it is. */
const tabOf = ({ live, past, refused }: SessionsSearch): SessionsSearch => defined({ live, past, refused })

export function SessionFilters({ search }: { search: SessionsSearch }) {
  const navigate = useNavigate({ from: '/sessions' })
  const look = (change: Change) => void navigate({ search: readSessionsSearch({ ...search, ...change }) })
  return (
    <>
      <form className="filters" role="search" onSubmit={(event) => event.preventDefault()}>
        {search.refused ? <Reason search={search} look={look} /> : <Who search={search} look={look} />}
        <TimeRange search={search} look={look} />
      </form>
      <Chips search={search} look={look} />
    </>
  )
}

interface PartProps {
  search: SessionsSearch
  look: (change: Change) => void
}

function Who({ search, look }: PartProps) {
  return (
    <>
      <NameField
        label={t('Person')}
        placeholder={t('User name, API key or certificate, then Enter')}
        value={search.person}
        look={(person) => look({ person })}
      />
      <div className="pick">
        <select
          aria-label={t('Method')}
          value={search.method ?? ''}
          onChange={(event) =>
            look({ method: sessionMethods.find((one) => one === event.currentTarget.value) })
          }
        >
          <option value="">{t('Any login method')}</option>
          <Options options={sessionMethods.map((one) => [one, t(methods[one] ?? one)])} />
        </select>
      </div>
      <div className="pick">
        <select
          aria-label={t('Recording')}
          value={search.recorded === undefined ? '' : String(search.recorded)}
          onChange={({ currentTarget: { value } }) =>
            look({ recorded: value === '' ? undefined : value === 'true' })
          }
        >
          <option value="">{t('Recorded or not')}</option>
          <option value="true">{t('Recorded')}</option>
          <option value="false">{t('Not recorded')}</option>
        </select>
      </div>
    </>
  )
}

function Reason({ search, look }: PartProps) {
  return (
    <div className="pick grow">
      <select
        aria-label={t('Reason')}
        value={search.reason ?? ''}
        onChange={(event) => look({ reason: event.currentTarget.value || undefined })}
      >
        <option value="">{t('Any reason')}</option>
        <Options
          options={Object.entries(refusalSentences).map(([reason, sentence]) => [reason, t(sentence)])}
        />
      </select>
    </div>
  )
}

function useChips(search: SessionsSearch): { text: string; without: Change }[] {
  const { person, device, method, recorded, reason, since, from, until } = search
  const name = useNamespaceQuery(
    ['filtered-device', device ?? ''],
    async () =>
      device === undefined ? undefined : (await api.devices.get({ params: { uid: device } })).body.name,
    false,
  ).data
  const members = useNamespace(false).data?.members
  const chips: { text: string; without: Change }[] = []
  if (person !== undefined && !search.refused)
    chips.push({
      text: t('Person: {name}', { name: members?.find(({ id }) => id === person)?.username ?? person }),
      without: { person: undefined },
    })
  if (device !== undefined)
    chips.push({
      text: t('Device: {name}', { name: name ?? device.slice(0, 12) }),
      without: { device: undefined },
    })
  if (method !== undefined && !search.refused)
    chips.push({ text: t(methods[method] ?? method), without: { method: undefined } })
  if (recorded !== undefined && !search.refused)
    chips.push({
      text: recorded ? t('Recorded') : t('Not recorded'),
      without: { recorded: undefined },
    })
  if (reason !== undefined && search.refused)
    chips.push({ text: t(refusalSentences[reason] ?? reason), without: { reason: undefined } })
  if (since !== undefined) chips.push({ text: t(rangeWords[since]), without: { since: undefined } })
  if (from !== undefined)
    chips.push({ text: t('From {moment}', { moment: inFull(from) }), without: { from: undefined } })
  if (until !== undefined)
    chips.push({ text: t('Until {moment}', { moment: inFull(until) }), without: { until: undefined } })
  return chips
}

function Chips({ search, look }: PartProps) {
  const chips = useChips(search)
  if (chips.length === 0) return null
  return (
    <ul className="chips" aria-label={t('Filters')}>
      {chips.map(({ text, without }) => (
        <li key={Object.keys(without).join()}>
          <button
            type="button"
            className="chip"
            aria-label={t('Remove the filter {name}', { name: text })}
            onClick={() => look(without)}
          >
            {text} <Icon name="close" />
          </button>
        </li>
      ))}
      <li>
        <Link to="/sessions" search={tabOf(search)}>
          {t('Show all')}
        </Link>
      </li>
    </ul>
  )
}
