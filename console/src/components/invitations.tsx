// People who are invited into the namespace, beside its members: invite somebody, send it again, withdraw it.
// Where the server has no mail server, the link is shown once, to be passed on.
import { useState } from 'react'
import { mayManage, memberRoles, type MemberRole, type Role } from '@hawser/contract/access'
import {
  longestInvitation_days,
  memberInvitationPage,
  usualInvitation_days,
  type MemberInvitation,
} from '@hawser/contract/invitations'
import { api, useMe } from '../api.ts'
import { errorText } from '../error-text.ts'
import { inFull } from '../language/format.ts'
import { t } from '../language/language.ts'
import { attempt, showSaved, useNamespaceQuery } from '../namespace-query.ts'
import { Button } from './button.tsx'
import { Copyable } from './copy.tsx'
import { Dialog, FormDialog } from './dialog.tsx'
import { Choice, Field } from './form.tsx'
import { Panel } from './page.tsx'
import { Empty, QueryList } from './query-content.tsx'
import { showToast } from './toast.tsx'

interface Shown {
  email: string
  token: string
}

export function InvitationsPanel() {
  const mine = useMe().role as Role
  const [inviting, setInviting] = useState(false)
  const [shown, setShown] = useState<Shown>()
  const open = useNamespaceQuery(['invitations'], () => api.invitations.list({ query: { per_page: 100 } }))
  const grantable = memberRoles.filter((role) => mayManage(mine, role))
  const told = async ({ email, token }: Shown) => {
    if (token !== '') setShown({ email, token })
    await showSaved(
      token === ''
        ? t('An invitation is on its way to {email}.', { email })
        : t('The invitation of {email} is made.', { email }),
    )
  }
  return (
    <Panel
      title={t('Invitations')}
      acts={
        <Button kind="quiet" small onPress={() => setInviting(true)}>
          {t('Invite by e-mail')}
        </Button>
      }
    >
      <QueryList
        query={open}
        label={t('Invitations')}
        empty={<Empty title={t('Nobody is invited at the moment.')} />}
        row={(invitation) => <InvitationRow key={invitation.id} invitation={invitation} sent={told} />}
      />
      {inviting && (
        <FormDialog
          title={t('Invite by e-mail')}
          submit={t('Invite')}
          close={() => setInviting(false)}
          send={async ({ email = '', role = '', days = '' }) => {
            const { body } = await api.invitations.create({
              body: { email, role: role as MemberRole, valid_days: Number(days) },
            })
            await told(body)
          }}
          refused={(error) => (error.kind === 'conflict' ? errorText(error) : undefined)}
        >
          <Field
            label={t('E-mail')}
            name="email"
            type="email"
            required
            maxLength={254}
            autoComplete="off"
            hint={t('The person needs no account yet. Only this address can use the invitation.')}
            wrong={t('Please fill in an e-mail address.')}
          />
          <Choice label={t('Role')} name="role" options={grantable.map((role) => [role, role])} />
          <Field
            label={t('Days until it ends')}
            name="days"
            type="number"
            required
            min={1}
            max={longestInvitation_days}
            defaultValue={String(usualInvitation_days)}
          />
        </FormDialog>
      )}
      {shown && (
        <Dialog
          title={t('The link for {email}', { email: shown.email })}
          close={() => setShown(undefined)}
          once
        >
          <p>
            {t(
              'This server sends no e-mails: pass the link on yourself. It works once, for this address, and is shown only now.',
            )}
          </p>
          <Copyable text={`${location.origin}${memberInvitationPage}#${shown.token}`} name={t('the link')} />
          <div className="acts">
            <Button onPress={() => setShown(undefined)}>{t('I have it')}</Button>
          </div>
        </Dialog>
      )}
    </Panel>
  )
}

function InvitationRow({
  invitation: { id, email, role, invited_by, expires_at },
  sent,
}: {
  invitation: MemberInvitation
  sent: (shown: Shown) => Promise<void>
}) {
  const expired = Date.parse(expires_at) <= Date.now()
  const params = { id }
  async function resend(): Promise<void> {
    try {
      await sent((await api.invitations.resend({ params })).body)
    } catch (error) {
      showToast(errorText(error))
    }
  }
  return (
    <li className="row">
      <div className="about">
        <p className="name">
          <strong>{email}</strong>
        </p>
        <p className="facts">
          {expired
            ? t('{role}, invited by {name}; it has expired', { role: t(role), name: invited_by })
            : t('{role}, invited by {name}, until {moment}', {
                role: t(role),
                name: invited_by,
                moment: inFull(expires_at),
              })}
        </p>
      </div>
      <div className="acts">
        <Button
          kind="quiet"
          small
          aria-label={t('Send again the invitation of {email}', { email })}
          onPress={resend}
        >
          {t('Send again')}
        </Button>
        <Button
          kind="quiet"
          small
          aria-label={t('Withdraw the invitation of {email}', { email })}
          onPress={() =>
            attempt(
              () => api.invitations.remove({ params }),
              t('The invitation of {email} is withdrawn.', { email }),
            )
          }
        >
          {t('Withdraw')}
        </Button>
      </div>
    </li>
  )
}
