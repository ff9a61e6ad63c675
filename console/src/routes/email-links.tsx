// The pages that links in e-mails lead to: confirm an account or an address, choose a new password, turn the
// second factor off, undo a change. Opening a link does nothing yet, because mail programs open links too;
// the button does.
import { Link, useNavigate } from '@tanstack/react-router'
import { useState, type ReactNode } from 'react'
import { ApiError } from '@hawser/contract/client'
import { publicApi } from '../api.ts'
import { Field, Form } from '../components/form.tsx'
import { NewPasswordField, AuthLayout, AuthLinks } from '../components/auth-layout.tsx'
import { auth } from '../auth.ts'
import { clearLink, linkParams } from '../link-params.ts'
import { rich, t } from '../language/language.ts'

/** At `rivals` other accounts claim the same address, so that the password is needed, too. */
type Stage = 'ask' | 'rivals' | 'done' | 'stale'

/** Runs the call of a link. A used or expired link changes the stage; other errors are shown by the form. */
async function follow(
  page: string,
  setStage: (stage: Stage) => void,
  run: () => Promise<unknown>,
): Promise<void> {
  try {
    await run()
  } catch (error) {
    if (!(error instanceof ApiError)) throw error
    if (error.kind === 'passwordRequired') return setStage('rivals')
    if (error.kind !== 'wrongToken' && error.kind !== 'notFound') throw error
    return setStage('stale')
  }
  clearLink(page)
  setStage('done')
}

function ResultPage({ title, heading, children }: { title: string; heading: string; children: ReactNode }) {
  return (
    <AuthLayout title={title} heading={heading}>
      {children}
    </AuthLayout>
  )
}

/** Asks for the password of the account that the link is for, while others claim the same address. */
const RivalsForm = ({ submit, send }: { submit: string; send: (password: string) => Promise<unknown> }) => (
  <>
    <p>
      {t(
        'Several accounts claim this address, maybe somebody else’s, too. Check that the e-mail names your user name, and enter the password of that account.',
      )}
    </p>
    <Form
      submit={submit}
      send={({ password = '' }) => send(password)}
      refused={(error) =>
        error.kind === 'wrongCredentials'
          ? t(
              'This is not the password of the account that the e-mail names. If that is not your user name, use the link of another e-mail.',
            )
          : undefined
      }
    >
      <Field
        label={t('Password')}
        name="password"
        type="password"
        required
        autoComplete="current-password"
        wrong={t('Please fill in your password.')}
      />
    </Form>
  </>
)

const SignInButton = () => (
  <Link className="button main" to="/login">
    {t('Sign in')}
  </Link>
)

export function ValidationAccountPage() {
  const { email = '', token = '' } = linkParams('/validation-account')
  const [stage, setStage] = useState<Stage>(email && token ? 'ask' : 'stale')
  const title = t('Confirm your account')
  if (stage === 'done')
    return (
      <ResultPage title={title} heading={t('Your account is confirmed')}>
        <p>{t('You can sign in now.')}</p>
        <SignInButton />
      </ResultPage>
    )
  if (stage === 'stale')
    return (
      <ResultPage title={title} heading={t('This link does not work')}>
        <p>
          {t(
            'It was used already, is older than 24 hours, or was not copied as a whole. If you have confirmed your account before, just sign in.',
          )}
        </p>
        <AuthLinks>
          <Link to="/login">{t('Sign in')}</Link>
          <Link to="/confirm-account">{t('Send a new e-mail')}</Link>
        </AuthLinks>
      </ResultPage>
    )
  return (
    <AuthLayout title={title}>
      <p>
        {rich('This address will belong to your account: {strong}', { strong: <strong>{email}</strong> })}
      </p>
      {stage === 'rivals' ? (
        <RivalsForm
          submit={t('Confirm the account')}
          send={(password) =>
            follow('/validation-account', setStage, () =>
              publicApi.users.confirmEmail({ body: { token, password } }),
            )
          }
        />
      ) : (
        <Form
          submit={t('Confirm the account')}
          send={() =>
            follow('/validation-account', setStage, () =>
              publicApi.users.activate({ query: { email, token } }),
            )
          }
        />
      )}
    </AuthLayout>
  )
}

export function UpdatePasswordPage() {
  const { id = '', token = '' } = linkParams('/update-password')
  const [stage, setStage] = useState<Stage>(id && token ? 'ask' : 'stale')
  const title = t('New password')
  if (stage === 'done')
    return (
      <ResultPage title={title} heading={t('Your password is changed')}>
        <p>{t('Sign in with the new one.')}</p>
        <SignInButton />
      </ResultPage>
    )
  if (stage === 'stale')
    return (
      <ResultPage title={title} heading={t('This link does not work')}>
        <p>{t('It was used already, is older than 24 hours, or was not copied as a whole.')}</p>
        <Link className="button main" to="/login" hash="forgot-password">
          {t('Send a new e-mail')}
        </Link>
      </ResultPage>
    )
  return (
    <AuthLayout title={title} heading={t('Choose a new password')}>
      <p>{t('You are signed out everywhere when you have chosen it.')}</p>
      <Form
        submit={t('Keep this password')}
        send={({ password = '' }) =>
          follow('/update-password', setStage, async () => {
            await publicApi.users.resetPassword({ params: { uid: id }, body: { password, token } })
            auth.clear()
          })
        }
      >
        <NewPasswordField label={t('New password')} />
      </Form>
    </AuthLayout>
  )
}

export function ResetMfaPage() {
  const { id = '' } = linkParams('/reset-mfa')
  const navigate = useNavigate()
  const title = t('Turn off the second factor')
  const sendAgain = (
    <Link to="/login" hash="lost-codes">
      {t('Send new e-mails')}
    </Link>
  )
  if (!id)
    return (
      <ResultPage title={title} heading={t('This link is not complete')}>
        <p>{t('Please open it from one of the two e-mails, and copy all of it.')}</p>
        <AuthLinks>{sendAgain}</AuthLinks>
      </ResultPage>
    )
  return (
    <AuthLayout title={title}>
      <p>{t('You need the codes of two e-mails: one to your main address, one to your recovery address.')}</p>
      <Form
        submit={t('Turn it off and sign in')}
        send={async ({ main_email_code = '', recovery_email_code = '' }) => {
          const { body } = await publicApi.mfa.reset({
            params: { user_id: id },
            body: { main_email_code, recovery_email_code },
          })
          clearLink('/reset-mfa')
          auth.save(body, false)
          await navigate({ to: '/' })
        }}
        refused={(error) =>
          error.kind === 'wrongCode'
            ? t(
                'These codes do not belong together, were used, or are older than 24 hours. Take both from the newest e-mails.',
              )
            : undefined
        }
      >
        <Field
          label={t('Code from your main address')}
          name="main_email_code"
          required
          code
          wrong={t('Please fill in the code.')}
        />
        <Field
          label={t('Code from your recovery address')}
          name="recovery_email_code"
          required
          code
          wrong={t('Please fill in the code.')}
        />
      </Form>
      <AuthLinks>{sendAgain}</AuthLinks>
    </AuthLayout>
  )
}

export function ConfirmEmailPage() {
  const { token = '' } = linkParams('/confirm-email')
  const [stage, setStage] = useState<Stage>(token ? 'ask' : 'stale')
  const title = t('Confirm your address')
  if (stage === 'done')
    return (
      <ResultPage title={title} heading={t('Your address is confirmed')}>
        <p>{t('E-mails about your account go there from now on.')}</p>
        <Link className="button main" to="/">
          {t('To the overview')}
        </Link>
      </ResultPage>
    )
  if (stage === 'stale')
    return (
      <ResultPage title={title} heading={t('This link does not work')}>
        <p>
          {t(
            'It was used already, is older than 72 hours, was not copied as a whole, or the address was changed again since.',
          )}
        </p>
        <AuthLinks>
          <Link to="/confirm-account">{t('Send a new e-mail')}</Link>
          <Link to="/login">{t('Sign in')}</Link>
        </AuthLinks>
      </ResultPage>
    )
  return (
    <AuthLayout title={title}>
      <p>
        {t(
          'E-mails about your account, with which one gets back in, will go to this address instead of the one before.',
        )}
      </p>
      {stage === 'rivals' ? (
        <RivalsForm
          submit={t('Confirm the address')}
          send={(password) =>
            follow('/confirm-email', setStage, () =>
              publicApi.users.confirmEmail({ body: { token, password } }),
            )
          }
        />
      ) : (
        <Form
          submit={t('Confirm the address')}
          send={() =>
            follow('/confirm-email', setStage, () => publicApi.users.confirmEmail({ body: { token } }))
          }
        />
      )}
    </AuthLayout>
  )
}

export function UndoChangePage() {
  const { token = '' } = linkParams('/undo-change')
  const [stage, setStage] = useState<Stage>(token ? 'ask' : 'stale')
  const title = t('Take a change back')
  if (stage === 'done')
    return (
      <ResultPage title={title} heading={t('Everything is as it was before')}>
        <p>
          {t(
            'Your addresses and your second factor are back, and nobody is signed in as you. If the password was changed meanwhile, it does not work any more.',
          )}
        </p>
        <p>
          {t(
            'Choose a new password in any case, and look through the API keys and public keys of your namespaces.',
          )}
        </p>
        <Link className="button main" to="/login" hash="forgot-password">
          {t('Choose a new password')}
        </Link>
        <AuthLinks>
          <Link to="/login">{t('Sign in')}</Link>
        </AuthLinks>
      </ResultPage>
    )
  if (stage === 'stale')
    return (
      <ResultPage title={title} heading={t('This link does not work')}>
        <p>
          {t(
            'It was used already, is older than 72 hours, or was not copied as a whole. An earlier e-mail may have one that does.',
          )}
        </p>
        <AuthLinks>
          <Link to="/login">{t('Sign in')}</Link>
        </AuthLinks>
      </ResultPage>
    )
  return (
    <AuthLayout title={title}>
      <p>
        {t(
          'If you did not make the change that the e-mail is about, somebody else is signed in as you. This puts your addresses and your second factor back as they were before it, and signs you out everywhere.',
        )}
      </p>
      <Form
        submit={t('Take it back')}
        kind="danger"
        send={() =>
          follow('/undo-change', setStage, async () => {
            await publicApi.users.undoChange({ body: { token } })
            auth.clear()
          })
        }
      />
    </AuthLayout>
  )
}
