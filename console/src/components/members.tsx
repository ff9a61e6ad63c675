// The members of a namespace and their roles. The contract's own rule decides which members somebody may
// manage, so the panel shows no control that the server would refuse.
import { Link } from '@tanstack/react-router'
import { mayManage, roles, type Role } from '@hawser/contract/access'
import type { Namespace } from '@hawser/contract/namespaces'
import { api, useMay, useMe } from '../api.ts'
import { msg, t } from '../language/language.ts'
import { attempt } from '../namespace-query.ts'
import { ConfirmButton, DialogButton } from './dialog-button.tsx'
import { FormDialog } from './dialog.tsx'
import { Choice, Field, verbatim, Options } from './form.tsx'
import { Panel } from './page.tsx'
import { Row } from './row.tsx'

const roleWords: Readonly<Record<Role, string>> = {
  observer: msg('sees devices and sessions, and connects to devices'),
  operator: msg('also accepts, rejects, names and tags devices'),
  administrator: msg('also deletes devices, watches sessions, and manages keys, rules, members and settings'),
  owner: msg('can do everything'),
}

function useGrantable(): Role[] {
  const mine = useMe().role as Role
  return roles.filter((role) => mayManage(mine, role))
}

export function MembersPanel({ namespace }: { namespace: Namespace }) {
  const may = useMay('administrator')
  const grantable = useGrantable()
  const params = { tenant: namespace.tenant_id }
  return (
    <Panel
      title={t('Members')}
      acts={
        may && (
          <DialogButton
            small
            dialog={(close) => (
              <FormDialog
                title={t('Add a member')}
                submit={t('Add the member')}
                close={close}
                send={({ identifier = '', role = '' }) =>
                  api.namespaces.addMember({ params, body: { identifier, role: role as Role } })
                }
                done={({ identifier = '' }) => t('{identifier} is now a member.', { identifier })}
                refused={{
                  notFound: t(
                    'No confirmed account with this name exists on this server. Ask the person to create one first.',
                  ),
                }}
              >
                <Field
                  label={t('Username or e-mail')}
                  name="identifier"
                  required
                  minLength={3}
                  maxLength={254}
                  {...verbatim}
                  hint={t('The person needs an account on this server.')}
                  wrong={t('Enter a username or an e-mail address.')}
                />
                <Choice
                  label={t('Role')}
                  name="role"
                  options={grantable.map((role) => [role, `${t(role)}: ${t(roleWords[role])}`])}
                />
              </FormDialog>
            )}
          >
            {t('Add a member')}
          </DialogButton>
        )
      }
    >
      <p className="soft">
        <Link to="/roles">{t('What each role can do')}</Link>
      </p>
      <ul className="rows" aria-label={t('Members')}>
        {namespace.members.map((member) => (
          <MemberRow key={member.id} member={member} params={params} />
        ))}
      </ul>
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
    <Row
      name={
        <>
          <strong>{member.username}</strong> {mine && <span className="soft">{t('(you)')}</span>}
        </>
      }
      facts={
        <>
          {t(member.role)}: {t(roleWords[member.role])}
        </>
      }
      acts={
        manages && (
          <>
            <select
              aria-label={t('Role of {username}', { username: member.username })}
              value={member.role}
              onChange={(event) => {
                const role = event.currentTarget.value as Role
                void attempt(
                  () => api.namespaces.updateMember({ params: at, body: { role } }),
                  t('{username} is now {role}.', { username: member.username, role: t(role) }),
                )
              }}
            >
              <Options options={grantable.map((role) => [role, t(role)])} />
            </select>
            <ConfirmButton
              kind="quiet"
              small
              aria-label={t('Remove {name}', { name: member.username })}
              question={{
                title: t('Remove {name}?', { name: member.username }),
                says: t('Their sign-ins and API keys for this namespace stop working at once.'),
                yes: t('Remove'),
                act: () => api.namespaces.removeMember({ params: at }),
                done: t('{username} is no longer a member.', { username: member.username }),
              }}
            >
              {t('Remove')}
            </ConfirmButton>
          </>
        )
      }
    />
  )
}
