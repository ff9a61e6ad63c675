// The pages that links in e-mails lead to: confirm an account or an address, choose a new password, turn the
// second factor off, undo a change. Opening a link does nothing yet, because mail programs open links too;
// the button does.
import { Link, useNavigate } from '@tanstack/react-router'
import { useState, type ReactNode } from 'react'
import { ApiError } from '@hawser/contract/client'
import { defined } from '@hawser/contract/defined'
import { publicApi } from '../api.ts'
import { Field, Form } from '../components/form.tsx'
import { NewPasswordField, AuthLayout, AuthLinks, PasswordField } from '../components/auth-layout.tsx'
import { auth } from '../auth.ts'
import { clearLink, linkParams } from '../link-params.ts'
import { rich, t } from '../language/language.ts'

/** `rivals`: other accounts claim the same address, so the password is needed, too. */
type Stage = 'ask' | 'rivals' | 'done' | 'stale'
type Follow = (run: () => Promise<unknown>) => Promise<void>

interface LinkPageProps {
  /** The path of the page. */
  id: string
  /** Whether the link has all that it needs. */
  complete: boolean
  title: string
  heading?: string | undefined
  /** Once it worked: a heading, and the way from there. */
  done: readonly [heading: string, content: ReactNode]
  /** When it no longer works. */
  stale: readonly [sentence: string, links: ReactNode]
  /** Shown before the link is followed. */
  children: (follow: Follow, rivals: boolean) => ReactNode
}

/** The page of a link that works once. A used or expired one changes the stage; the form shows other errors. */
function LinkPage({ id, complete, title, heading, done, stale, children }: LinkPageProps) {
  const [stage, setStage] = useState<Stage>(complete ? 'ask' : 'stale')
  const follow: Follow = async (run) => {
    try {
      await run()
    } catch (error) {
      if (!(error instanceof ApiError)) throw error
      if (error.kind === 'passwordRequired') return setStage('rivals')
      if (error.kind !== 'wrongToken' && error.kind !== 'notFound') throw error
      return setStage('stale')
    }
    clearLink(id)
    setStage('done')
  }
  const headings = { ask: heading, rivals: heading, done: done[0], stale: t('This link does not work') }
  return (
    <AuthLayout title={title} heading={headings[stage]}>
      {stage === 'done' ? (
        done[1]
      ) : stage === 'stale' ? (
        <>
          <p>{stale[0]}</p>
          {stale[1]}
        </>
      ) : (
        children(follow, stage === 'rivals')
      )}
    </AuthLayout>
  )
}

/** Asks for the password of the link's account, while others claim the same address. */
const RivalsForm = ({ submit, send }: { submit: string; send: (password: string) => Promise<unknown> }) => (
  <>
    <p>
      {t(
        'Several accounts claim this address, perhaps including someone else’s. Check that the e-mail mentions your username, and enter the password of that account.',
      )}
    </p>
    <Form
      submit={submit}
      send={({ password = '' }) => send(password)}
      refused={{
        wrongCredentials: t(
          'This is not the password of the account in the e-mail. If the e-mail mentions another username, use the link in another e-mail.',
        ),
      }}
    >
      <PasswordField />
    </Form>
  </>
)

const ForgottenButton = ({ children }: { children: string }) => (
  <Link className="button main" to="/login" hash="forgot-password">
    {children}
  </Link>
)

/** The only way from there. */
const SignInNext = ({ children }: { children: string }) => (
  <>
    <p>{children}</p>
    <Link className="button main" to="/login">
      {t('Sign in')}
    </Link>
  </>
)

interface ConfirmFormProps {
  submit: string
  rivals: boolean
  send: (password?: string) => Promise<unknown>
}

const ConfirmForm = ({ submit, rivals, send }: ConfirmFormProps) =>
  rivals ? <RivalsForm submit={submit} send={send} /> : <Form submit={submit} send={() => send()} />

export function ValidationAccountPage() {
  const { email = '', token = '' } = linkParams('/validation-account')
  return (
    <LinkPage
      id="/validation-account"
      complete={email !== '' && token !== ''}
      title={t('Confirm your account')}
      done={[t('Your account is confirmed'), <SignInNext>{t('You can sign in now.')}</SignInNext>]}
      stale={[
        t(
          'It was already used, has expired (24 hours) or was not copied completely. If you have already confirmed your account, just sign in.',
        ),
        <AuthLinks>
          <Link to="/login">{t('Sign in')}</Link>
          <Link to="/confirm-account">{t('Send a new e-mail')}</Link>
        </AuthLinks>,
      ]}
    >
      {(follow, rivals) => (
        <>
          <p>
            {rich('This address will belong to your account: {strong}', { strong: <strong>{email}</strong> })}
          </p>
          <ConfirmForm
            submit={t('Confirm the account')}
            rivals={rivals}
            send={(password) =>
              follow(() =>
                password === undefined
                  ? publicApi.users.activate({ query: { email, token } })
                  : publicApi.users.confirmEmail({ body: { token, password } }),
              )
            }
          />
        </>
      )}
    </LinkPage>
  )
}

export function UpdatePasswordPage() {
  const { id = '', token = '' } = linkParams('/update-password')
  return (
    <LinkPage
      id="/update-password"
      complete={id !== '' && token !== ''}
      title={t('New password')}
      heading={t('Choose a new password')}
      done={[t('Your password was changed'), <SignInNext>{t('Sign in with your new password.')}</SignInNext>]}
      stale={[
        t('It was already used, has expired (24 hours) or was not copied completely.'),
        <ForgottenButton>{t('Send a new e-mail')}</ForgottenButton>,
      ]}
    >
      {(follow) => (
        <>
          <p>{t('Choosing a new password signs you out everywhere.')}</p>
          <Form
            submit={t('Save the password')}
            send={({ password = '' }) =>
              follow(async () => {
                await publicApi.users.resetPassword({ params: { uid: id }, body: { password, token } })
                auth.clear()
              })
            }
          >
            <NewPasswordField label={t('New password')} />
          </Form>
        </>
      )}
    </LinkPage>
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
      <AuthLayout title={title} heading={t('This link is not complete')}>
        <p>{t('Open it from one of the two e-mails, or copy it completely.')}</p>
        <AuthLinks>{sendAgain}</AuthLinks>
      </AuthLayout>
    )
  return (
    <AuthLayout title={title}>
      <p>
        {t(
          'You need the codes from two e-mails: one sent to your main address, one to your recovery address.',
        )}
      </p>
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
        refused={{
          wrongCode: t(
            'These codes do not match, were already used or have expired (24 hours). Take both from the newest e-mails.',
          ),
        }}
      >
        <Field
          label={t('Code from your main address')}
          name="main_email_code"
          required
          code
          wrong={t('Enter the code.')}
        />
        <Field
          label={t('Code from your recovery address')}
          name="recovery_email_code"
          required
          code
          wrong={t('Enter the code.')}
        />
      </Form>
      <AuthLinks>{sendAgain}</AuthLinks>
    </AuthLayout>
  )
}

export function ConfirmEmailPage() {
  const { token = '' } = linkParams('/confirm-email')
  return (
    <LinkPage
      id="/confirm-email"
      complete={token !== ''}
      title={t('Confirm your address')}
      done={[
        t('Your address is confirmed'),
        <>
          <p>{t('E-mails about your account now go to this address.')}</p>
          <Link className="button main" to="/">
            {t('To the overview')}
          </Link>
        </>,
      ]}
      stale={[
        t(
          'It was already used, has expired (72 hours) or was not copied completely, or the address has changed again since.',
        ),
        <AuthLinks>
          <Link to="/confirm-account">{t('Send a new e-mail')}</Link>
          <Link to="/login">{t('Sign in')}</Link>
        </AuthLinks>,
      ]}
    >
      {(follow, rivals) => (
        <>
          <p>
            {t(
              'Account e-mails, including those that restore access, will go to this address instead of the previous one.',
            )}
          </p>
          <ConfirmForm
            submit={t('Confirm the address')}
            rivals={rivals}
            send={(password) =>
              follow(() => publicApi.users.confirmEmail({ body: defined({ token, password }) }))
            }
          />
        </>
      )}
    </LinkPage>
  )
}

export function UndoChangePage() {
  const { token = '' } = linkParams('/undo-change')
  const signIn = (
    <AuthLinks>
      <Link to="/login">{t('Sign in')}</Link>
    </AuthLinks>
  )
  return (
    <LinkPage
      id="/undo-change"
      complete={token !== ''}
      title={t('Undo a change')}
      done={[
        t('The change was undone'),
        <>
          <p>
            {t(
              'Your addresses and your second factor are restored, and all sign-ins have ended. A password set since the change no longer works.',
            )}
          </p>
          <p>
            {t(
              'Choose a new password in any case, and review the API keys and public keys in your namespaces.',
            )}
          </p>
          <ForgottenButton>{t('Choose a new password')}</ForgottenButton>
          {signIn}
        </>,
      ]}
      stale={[
        t(
          'It was already used, has expired (72 hours) or was not copied completely. The link in an earlier e-mail may still work.',
        ),
        signIn,
      ]}
    >
      {(follow) => (
        <>
          <p>
            {t(
              'If you did not make the change described in the e-mail, someone else is signed in as you. This restores your addresses and your second factor to what they were before the change, and signs you out everywhere.',
            )}
          </p>
          <Form
            submit={t('Undo it')}
            kind="danger"
            send={() =>
              follow(async () => {
                await publicApi.users.undoChange({ body: { token } })
                auth.clear()
              })
            }
          />
        </>
      )}
    </LinkPage>
  )
}
