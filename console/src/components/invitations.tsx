// People who are invited into the namespace, next to its members: invite somebody, send it again, withdraw it.
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
import { DialogButton } from './dialog-button.tsx'
import { FormDialog } from './dialog.tsx'
import { Choice, Field } from './form.tsx'
import { SecretDialog } from './managed-list.tsx'
import { Panel } from './page.tsx'
import { Empty, QueryList } from './query-content.tsx'
import { Row } from './row.tsx'

interface Shown {
  email: string
  token: string
}

export function InvitationsPanel() {
  const [shown, setShown] = useState<Shown>()
  const open = useNamespaceQuery(['invitations'], () => api.invitations.list({ query: { per_page: 100 } }))
  const told = async ({ email, token }: Shown) => {
    if (token !== '') setShown({ email, token })
    await showSaved(
      token === ''
        ? t('An invitation is on its way to {email}.', { email })
        : t('The invitation for {email} was created.', { email }),
    )
  }
  return (
    <Panel
      title={t('Invitations')}
      acts={
        <DialogButton kind="quiet" small dialog={(close) => <InviteDialog close={close} sent={told} />}>
          {t('Invite by e-mail')}
        </DialogButton>
      }
    >
      <QueryList
        query={open}
        label={t('Invitations')}
        empty={<Empty title={t('No open invitations.')} />}
        row={(invitation) => <InvitationRow key={invitation.id} invitation={invitation} sent={told} />}
      />
      {shown && (
        <SecretDialog
          close={() => setShown(undefined)}
          secret={{
            title: t('The link for {email}', { email: shown.email }),
            lead: t(
              'This server does not send e-mail: send the link yourself. It works once, for this address, and is shown only once.',
            ),
            text: `${location.origin}${memberInvitationPage}#${shown.token}`,
            name: t('the link'),
          }}
        />
      )}
    </Panel>
  )
}

interface InviteDialogProps {
  close: () => void
  sent: (shown: Shown) => Promise<void>
}

function InviteDialog({ close, sent }: InviteDialogProps) {
  const mine = useMe().role as Role
  const grantable = memberRoles.filter((role) => mayManage(mine, role))
  return (
    <FormDialog
      title={t('Invite by e-mail')}
      submit={t('Invite')}
      close={close}
      send={async ({ email = '', role = '', days = '' }) => {
        const { body } = await api.invitations.create({
          body: { email, role: role as MemberRole, valid_days: Number(days) },
        })
        await sent(body)
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
        hint={t('The person does not need an account yet. Only this address can use the invitation.')}
        wrong={t('Enter an e-mail address.')}
      />
      <Choice label={t('Role')} name="role" options={grantable.map((role) => [role, role])} />
      <Field
        label={t('Days until it expires')}
        name="days"
        type="number"
        required
        min={1}
        max={longestInvitation_days}
        defaultValue={String(usualInvitation_days)}
      />
    </FormDialog>
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
  const resend = () => attempt(async () => sent((await api.invitations.resend({ params })).body))
  return (
    <Row
      name={<strong>{email}</strong>}
      facts={
        expired
          ? t('{role}, invited by {name}; it has expired', { role: t(role), name: invited_by })
          : t('{role}, invited by {name}, until {moment}', {
              role: t(role),
              name: invited_by,
              moment: inFull(expires_at),
            })
      }
      acts={
        <>
          <Button
            kind="quiet"
            small
            aria-label={t('Resend the invitation for {email}', { email })}
            onPress={resend}
          >
            {t('Resend')}
          </Button>
          <Button
            kind="quiet"
            small
            aria-label={t('Withdraw the invitation for {email}', { email })}
            onPress={() =>
              attempt(
                () => api.invitations.remove({ params }),
                t('The invitation for {email} was withdrawn.', { email }),
              )
            }
          >
            {t('Withdraw')}
          </Button>
        </>
      }
    />
  )
}
