// The members of a namespace and their roles. The contract's own rule decides who may manage whom, so the
// panel shows no control that the server would refuse.
import { Link } from '@tanstack/react-router'
import { useState } from 'react'
import { mayManage, roles, type Role } from '@hawser/contract/access'
import type { Namespace } from '@hawser/contract/namespaces'
import { api, useMay, useMe } from '../api.ts'
import { msg, t } from '../language/language.ts'
import { attempt, showSaved } from '../namespace-query.ts'
import { Button } from './button.tsx'
import { ConfirmButton } from './confirm-button.tsx'
import { FormDialog } from './dialog.tsx'
import { Choice, Field, verbatim } from './form.tsx'
import { Panel } from './page.tsx'

const roleWords: Readonly<Record<Role, string>> = {
  observer: msg('sees devices and sessions, and connects to devices'),
  operator: msg('also accepts, rejects, names and tags devices'),
  administrator: msg('also deletes devices, watches sessions, and manages keys, rules, members and settings'),
  owner: msg('may do everything'),
}

function useGrantable(): Role[] {
  const mine = useMe().role as Role
  return roles.filter((role) => mayManage(mine, role))
}

export function MembersPanel({ namespace }: { namespace: Namespace }) {
  const [adding, setAdding] = useState(false)
  const may = useMay('administrator')
  const grantable = useGrantable()
  const params = { tenant: namespace.tenant_id }
  return (
    <Panel
      title={t('Members')}
      acts={
        may && (
          <Button small onPress={() => setAdding(true)}>
            {t('Add a member')}
          </Button>
        )
      }
    >
      <p className="soft">
        <Link to="/roles">{t('What each role may do')}</Link>
      </p>
      <ul className="rows" aria-label={t('Members')}>
        {namespace.members.map((member) => (
          <MemberRow key={member.id} member={member} params={params} />
        ))}
      </ul>
      {adding && (
        <FormDialog
          title={t('Add a member')}
          submit={t('Add the member')}
          close={() => setAdding(false)}
          send={async ({ identifier = '', role = '' }) => {
            await api.namespaces.addMember({ params, body: { identifier, role: role as Role } })
            await showSaved(t('{identifier} is a member now.', { identifier }))
          }}
          refused={(error) =>
            error.kind === 'notFound'
              ? t(
                  'There is no confirmed account with this name on this server. Ask the person to create one first.',
                )
              : undefined
          }
        >
          <Field
            label={t('Username or e-mail')}
            name="identifier"
            required
            minLength={3}
            maxLength={254}
            {...verbatim}
            hint={t('The person needs an account on this server.')}
            wrong={t('Please fill in a username or an e-mail address.')}
          />
          <Choice
            label={t('Role')}
            name="role"
            options={grantable.map((role) => [role, `${t(role)}: ${t(roleWords[role])}`])}
          />
        </FormDialog>
      )}
    </Panel>
  )
}

function MemberRow({ member, params }: { member: Namespace['members'][number]; params: { tenant: string } }) {
  const me = useMe()
  const may = useMay('administrator')
  const grantable = useGrantable()
  const mine = member.id === me.id
  const manages = may && !mine && mayManage(me.role as Role, member.role)
  const at = { ...params, uid: member.id }
  return (
    <li className="row">
      <div className="about">
        <p className="name">
          <strong>{member.username}</strong> {mine && <span className="soft">{t('(you)')}</span>}
        </p>
        <p className="facts">
          {t(member.role)}: {t(roleWords[member.role])}
        </p>
      </div>
      {manages && (
        <div className="acts">
          <select
            aria-label={t('Role of {username}', { username: member.username })}
            value={member.role}
            onChange={(event) => {
              const role = event.currentTarget.value as Role
              void attempt(
                () => api.namespaces.updateMember({ params: at, body: { role } }),
                t('{username} is {role} now.', { username: member.username, role: t(role) }),
              )
            }}
          >
            {grantable.map((role) => (
              <option key={role} value={role}>
                {t(role)}
              </option>
            ))}
          </select>
          <ConfirmButton
            kind="quiet"
            small
            aria-label={t('Remove {name}', { name: member.username })}
            question={{
              title: t('Remove {name}?', { name: member.username }),
              says: t('Their sign-ins and API keys for this namespace stop working at once.'),
              yes: t('Remove'),
              act: async () => {
                await api.namespaces.removeMember({ params: at })
                await showSaved(t('{username} is no longer a member.', { username: member.username }))
              },
            }}
          >
            {t('Remove')}
          </ConfirmButton>
        </div>
      )}
    </li>
  )
}
