// Registration, and the page that waits for the confirmation e-mail or sends it again.
import { Link, useNavigate } from '@tanstack/react-router'
import { memberInvitationPage } from '@hawser/contract/invitations'
import { publicApi } from '../api.ts'
import { Form } from '../components/form.tsx'
import {
  EmailField,
  NameField,
  NewPasswordField,
  AuthLayout,
  UsernameField,
  AuthLinks,
  StoredEmails,
} from '../components/auth-layout.tsx'
import { unconfirmed } from '../auth.ts'
import { EmailRequestForm } from './login.tsx'
import { t } from '../language/language.ts'
import { linkParams } from '../link-params.ts'
import { useMail } from '../server-info.ts'

export function SignUpPage() {
  const navigate = useNavigate()
  // Known by the time that the next page says where the e-mail is.
  useMail()
  return (
    <AuthLayout title={t('Create an account')}>
      <Form
        submit={t('Create the account')}
        send={async ({ name = '', username = '', email = '', password = '' }) => {
          await publicApi.users.register({ body: { name, username, email, password } })
          unconfirmed.save(username)
          await navigate({ to: '/confirm-account' })
        }}
      >
        <NameField />
        <UsernameField />
        <EmailField />
        <NewPasswordField />
      </Form>
      <AuthLinks>
        <Link to="/login">{t('I have an account')}</Link>
      </AuthLinks>
    </AuthLayout>
  )
}

export function ConfirmAccountPage() {
  const mail = useMail()
  return (
    <AuthLayout
      title={t('Confirm your account')}
      heading={mail ? t('Check your inbox') : t('Your account is waiting for confirmation')}
    >
      {mail ? (
        <p>{t('We sent you an e-mail with a link that confirms your account. It is valid for 24 hours.')}</p>
      ) : (
        <>
          <p>{t('The link in the e-mail confirms your account. It is valid for 24 hours.')}</p>
          <StoredEmails />
        </>
      )}
      {linkParams(memberInvitationPage)['token'] !== undefined && (
        <p>{t('Then open the link of your invitation again, and accept it.')}</p>
      )}
      <p>
        {mail
          ? t('No e-mail? Check your spam folder, or send it again:')
          : t('Lost the link, or has it expired? Store a new e-mail:')}
      </p>
      <EmailRequestForm
        who={unconfirmed.name()}
        submit={mail ? t('Send it again') : t('Store a new one')}
        send={(username) => publicApi.users.resend({ body: { username } })}
        sentence={
          mail
            ? t(
                'If an account is waiting for confirmation, a new e-mail is on its way. The link in the older one no longer works.',
              )
            : t(
                'If an account is waiting for confirmation, a new e-mail was stored. The link in the older one no longer works.',
              )
        }
      />
      <AuthLinks>
        <Link to="/login">{t('Sign in')}</Link>
      </AuthLinks>
    </AuthLayout>
  )
}
