// The rights of each role: the table that the server itself uses, grouped by subject.
import { useState } from 'react'
import { roles } from '@hawser/contract/access'
import { roleMatrix, type RoleMatrixRow } from '@hawser/contract/role-matrix'
import { useMe } from '../api.ts'
import { Icon } from '../components/icon.tsx'
import { t } from '../language/language.ts'
import { Page, Panel } from '../components/page.tsx'

export function RolesPage() {
  const me = useMe()
  const [asked, setAsked] = useState('')
  const wanted = asked.trim().toLowerCase()
  const rows = roleMatrix().filter(({ thing, title, summary }) =>
    [thing, title, summary].some((text) => t(text).toLowerCase().includes(wanted)),
  )
  return (
    <Page
      title={t('Roles')}
      lead={t(
        'What members of a namespace can do. Your role here is {role}. Each role includes the permissions of the roles before it.',
        { role: t(me.role) },
      )}
    >
      <Panel>
        <label className="field">
          {t('Search for an action')}
          <input
            type="search"
            value={asked}
            autoComplete="off"
            onChange={(event) => setAsked(event.currentTarget.value)}
          />
        </label>
        {rows.length === 0 && <p className="soft">{t('No actions match your search.')}</p>}
        {[...Map.groupBy(rows, ({ thing }) => thing)].map(([thing, some]) => (
          <Group key={thing} title={t(thing)} rows={some} mine={me.role} />
        ))}
      </Panel>
    </Page>
  )
}

function Group({ title, rows, mine }: { title: string; rows: readonly RoleMatrixRow[]; mine: string }) {
  return (
    <section className="role-matrix" aria-label={title} tabIndex={0}>
      <table>
        <caption>{title}</caption>
        <thead>
          <tr>
            <th scope="col">{t('What')}</th>
            {roles.map((role) => (
              <th key={role} scope="col" aria-current={role === mine ? 'true' : undefined}>
                {t(role)}
              </th>
            ))}
            <th scope="col">{t('API keys')}</th>
          </tr>
        </thead>
        <tbody>
          {rows.map((row) => (
            <tr key={row.title}>
              <th scope="row">
                <strong>{t(row.title)}</strong>
                <span className="soft">{t(row.summary)}</span>
              </th>
              {roles.map((role) => (
                <Mark key={role} yes={row.allowed[role]} />
              ))}
              <Mark yes={row.apiKey} />
            </tr>
          ))}
        </tbody>
      </table>
    </section>
  )
}

function Mark({ yes }: { yes: boolean }) {
  return (
    <td>
      {yes ? <Icon name="check" /> : <span aria-hidden="true">–</span>}
      <span className="unseen">{yes ? t('yes') : t('no')}</span>
    </td>
  )
}
