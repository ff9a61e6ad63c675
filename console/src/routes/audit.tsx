// The audit log of the namespace, newest first: who did what, to what, from where, and what changed. The filters are
// in the address. Below are the streams that send the log elsewhere. Only administrators may see it.
import { Link, useNavigate, useSearch } from '@tanstack/react-router'
import { ApiError, readResult } from '@hawser/contract/client'
import { defined } from '@hawser/contract/defined'
import { auditActions, type AuditAction } from '@hawser/contract/audit-actions'
import { api, fetchWithToken, useMay } from '../api.ts'
import { readAuditSearch, type AuditSearch } from '../audit-search.ts'
import { attempt, useNamespaceQuery } from '../namespace-query.ts'
import { AuditStreams } from '../components/audit-streams.tsx'
import { AuditTable } from '../components/audit-table.tsx'
import { Icon } from '../components/icon.tsx'
import { Menu } from '../components/menu.tsx'
import { NameField } from '../components/name-field.tsx'
import { Page } from '../components/page.tsx'
import { actionText } from '../components/person.tsx'
import { Empty, QueryContent } from '../components/query-content.tsx'
import { saveFile } from '../components/save-file.ts'
import { TimeRange } from '../components/time-range.tsx'
import { msg, t } from '../language/language.ts'
import { spanOf } from '../search-params.ts'

const page_size = 50

type Change = { [K in keyof AuditSearch]?: AuditSearch[K] | undefined }

/** The first part of actions. */
type Group<Action> = Action extends `${infer Before}.${string}` ? Before : never
const groupWords: Readonly<Record<Group<AuditAction>, string>> = {
  device: msg('Devices'),
  service: msg('Services'),
  budget: msg('Data budgets'),
  tag: msg('Tags'),
  pairing: msg('Pairings'),
  'accept-rule': msg('Accept rules'),
  'enrolment-token': msg('Enrolment tokens'),
  'enrolment-key': msg('Enrolment keys'),
  connector: msg('Connectors'),
  'public-key': msg('Public keys'),
  'api-key': msg('API keys'),
  firewall: msg('Firewall'),
  namespace: msg('Namespace'),
  invitation: msg('Invitations'),
  member: msg('Members'),
  session: msg('Sessions'),
  file: msg('Files'),
  forward: msg('Forwarded connections'),
  policy: msg('Policies'),
  login: msg('Logins on devices'),
  recording: msg('Recordings'),
  user: msg('Users'),
  billing: msg('Billing'),
  audit: msg('Audit log'),
  'audit-stream': msg('Audit streams'),
  admin: msg('Administrator of the server'),
}
const groups = Object.entries(groupWords)
const actions = Object.keys(auditActions)

const filterOf = ({ action, actor, target, ...span }: AuditSearch) =>
  defined({ action, actor, target, ...spanOf(span) })

export function AuditPage() {
  const search = readAuditSearch({ ...useSearch({ from: '/shell/audit' }) })
  const may = useMay('administrator')
  return (
    <Page title={t('Audit log')} lead={t('Who changed what, who logged in and who was refused.')}>
      {may ? (
        <>
          <Filters search={search} />
          <Entries search={search} />
          <AuditStreams />
        </>
      ) : (
        <Empty title={t('Only administrators of the namespace can see the audit log.')} />
      )}
    </Page>
  )
}

function Filters({ search }: { search: AuditSearch }) {
  const navigate = useNavigate({ from: '/audit' })
  const look = (change: Change) =>
    void navigate({ search: readAuditSearch({ ...search, before: undefined, ...change }) })
  const isFiltered = Object.keys(search).some((name) => name !== 'before')
  return (
    <form className="filters" role="search" onSubmit={(event) => event.preventDefault()}>
      <NameField
        label={t('Who')}
        placeholder={t('Actor name or ID, then Enter')}
        value={search.actor}
        look={(actor) => look({ actor })}
      />
      <NameField
        label={t('What')}
        placeholder={t('Target name or ID')}
        value={search.target}
        look={(target) => look({ target })}
      />
      <div className="pick">
        <select
          aria-label={t('Action')}
          value={search.action ?? ''}
          onChange={(event) => look({ action: event.currentTarget.value || undefined })}
        >
          <option value="">{t('Any action')}</option>
          {groups.map(([name, words]) => (
            <optgroup key={name} label={t(words)}>
              <option value={`${name}.`}>{t('All: {name}', { name: t(words) })}</option>
              {actions
                .filter((action) => action.startsWith(`${name}.`))
                .map((action) => (
                  <option key={action} value={action}>
                    {actionText(action)}
                  </option>
                ))}
            </optgroup>
          ))}
        </select>
      </div>
      <TimeRange search={search} look={look} />
      <Menu
        label={t('Download')}
        look="button quiet"
        items={[
          { id: 'csv', text: t('As CSV, for spreadsheets'), act: () => void download(search, 'csv') },
          {
            id: 'ndjson',
            text: t('As JSON, which can be verified'),
            act: () => void download(search, 'ndjson'),
          },
        ]}
      >
        <Icon name="download" />
      </Menu>
      {isFiltered && (
        <Link className="pick" to="/audit">
          {t('Show all')}
        </Link>
      )}
    </form>
  )
}

/** Saves the entries that match the filters. A large file is never a text in the memory of the page. */
const download = (search: AuditSearch, format: 'csv' | 'ndjson') =>
  attempt(async () => {
    const path = format === 'csv' ? '/api/audit/export.csv' : '/api/audit/export'
    const answer = await fetchWithToken(`${path}?${new URLSearchParams(filterOf(search)).toString()}`)
    if (!answer.ok) throw new ApiError(await readResult(answer))
    saveFile(`audit.${format}`, await answer.blob())
  })

function Entries({ search }: { search: AuditSearch }) {
  const { before, ...filter } = search
  const entries = useNamespaceQuery(
    ['audit', search],
    () =>
      api.audit.list({
        query: defined({ ...filterOf(filter), limit: page_size, before }),
      }),
    before === undefined,
  )
  return (
    <QueryContent query={entries}>
      {({ body }) => (
        <>
          {body.entries.length === 0 ? (
            <Empty
              title={body.next === null ? t('No matching entries.') : t('No matching entries so far.')}
            />
          ) : (
            <AuditTable entries={body.entries} />
          )}
          {(before !== undefined || body.next !== null) && (
            <nav className="pages" aria-label={t('Pages')}>
              {before !== undefined && (
                <Link className="button quiet small" to="/audit" search={filter}>
                  {t('To the newest')}
                </Link>
              )}
              {body.next !== null && (
                <Link className="button quiet small" to="/audit" search={{ ...filter, before: body.next }}>
                  {t('Older')}
                </Link>
              )}
            </nav>
          )}
        </>
      )}
    </QueryContent>
  )
}
