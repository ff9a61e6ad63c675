// Sign-in, its second step, and recovery. The hash of the URL chooses the step, so that the browser's back
// button works between them. The token of an unfinished sign-in is in the memory of this page only. The page is
// shown without the router and the rest of the console, which main.tsx fetches while the person types.
import { useEffect, useState } from 'react'
import { ApiError } from '@hawser/contract/client'
import { publicApi } from '../public-api.ts'
import { Field, Form, Tick } from '../components/form.tsx'
import {
  AppCodeField,
  AuthLayout,
  AuthLinks,
  IdentifierField,
  PasswordField,
  StoredEmails,
  withoutSpaces,
} from '../components/auth-layout.tsx'
import { auth, flash, unconfirmed } from '../auth.ts'
import { landing } from '../link-params.ts'
import { t } from '../language/language.ts'
import { useMail, useServerInfo } from '../server-info.ts'

interface Wait {
  until: number
}

/** Computed from the duration of the lock and not from its end: the clock of this machine may be wrong. */
const waitOf = (error: ApiError): Wait | undefined =>
  error.kind === 'locked' || error.kind === 'tooMany'
    ? { until: performance.now() + (error.retryAfter ?? 0) * 1000 }
    : undefined

/** Outside of the error sentence, so that screen readers do not read every second. */
function Countdown({ wait }: { wait: Wait | undefined }) {
  const [now, setNow] = useState(() => performance.now())
  useEffect(() => {
    const timer = setInterval(() => setNow(performance.now()), 1000)
    return () => clearInterval(timer)
  }, [wait])
  const seconds = wait ? Math.ceil((wait.until - now) / 1000) : 0
  return (
    <p className="left" role="timer">
      {wait &&
        (seconds > 0
          ? t('You can try again in {minutes}:{seconds}', {
              minutes: Math.floor(seconds / 60),
              seconds: String(seconds % 60).padStart(2, '0'),
            })
          : t('You can try again now.'))}
    </p>
  )
}

function useHash(): string {
  const read = () => location.hash.slice(1)
  const [hash, setHash] = useState(read)
  useEffect(() => {
    const look = () => setHash(read)
    addEventListener('hashchange', look)
    return () => removeEventListener('hashchange', look)
  }, [])
  return hash
}

/** Loads the rest of the console; pending until the new page begins. */
function goOn(): Promise<never> {
  location.assign(landing())
  return new Promise(() => {})
}

interface Begun {
  who: string
  stay: boolean
  mfaToken: string
}

type Enter = (answer: { body: { token: string } }) => Promise<void>

export function LoginPage() {
  const hash = useHash()
  const [begun, setBegun] = useState<Begun>({ who: '', stay: false, mfaToken: '' })
  const enter: Enter = async ({ body }) => {
    auth.save(body, begun.stay)
    await goOn()
  }
  if (hash === 'code' && begun.mfaToken !== '') return <Code begun={begun} enter={enter} />
  if (hash === 'recovery-code') return <RecoveryCode who={begun.who} enter={enter} />
  if (hash === 'lost-codes') return <LostCodes who={begun.who} />
  if (hash === 'forgot-password') return <ForgotPassword who={begun.who} />
  return <SignIn begun={begun} setBegun={setBegun} />
}

function SignIn({ begun, setBegun }: { begun: Begun; setBegun: (begun: Begun) => void }) {
  const info = useServerInfo()
  const [sentence] = useState(flash.take)
  const [wait, setWait] = useState<Wait>()
  const [waiting, setWaiting] = useState(false)
  return (
    <AuthLayout title={t('Sign in')}>
      <p className="note" role="status">
        {sentence}
      </p>
      {info?.setup === false && (
        <p className="note">
          {t(
            'This server has no users yet. Create the first one with the link that the server printed when it started.',
          )}
        </p>
      )}
      <Form
        submit={t('Sign in')}
        send={async ({ username = '', password = '', stay = '' }) => {
          setWaiting(false)
          setWait(undefined)
          try {
            const { body } = await publicApi.users.login({ body: { username, password } })
            auth.save(body, stay !== '')
            await goOn()
          } catch (error) {
            const mfaToken = error instanceof ApiError ? (error.headers.get('x-mfa-token') ?? '') : ''
            if (mfaToken === '') throw error
            setBegun({ who: username, stay: stay !== '', mfaToken })
            location.hash = 'code'
          }
        }}
        refused={(error, form) => {
          const { username, password } = form.elements as unknown as Record<
            'username' | 'password',
            HTMLInputElement
          >
          password.select()
          setWait(waitOf(error))
          setWaiting(error.kind === 'unconfirmed')
          if (error.kind === 'unconfirmed') unconfirmed.save(username.value)
          return undefined
        }}
      >
        <div
          onChange={({ target }) =>
            target instanceof HTMLInputElement &&
            target.name === 'username' &&
            setBegun({ ...begun, who: target.value })
          }
        >
          <IdentifierField name="username" defaultValue={begun.who} autoFocus />
        </div>
        <PasswordField />
        <Tick label={t('Keep me signed in on this device')} name="stay" />
        <Countdown wait={wait} />
      </Form>
      {waiting && (
        <p>
          <a href="/confirm-account">{t('Send the confirmation e-mail again')}</a>
        </p>
      )}
      <AuthLinks>
        <a href="#forgot-password">{t('I forgot my password')}</a>
        <a href="/sign-up">{t('Create an account')}</a>
      </AuthLinks>
    </AuthLayout>
  )
}

function Code({ begun, enter }: { begun: Begun; enter: Enter }) {
  const [wait, setWait] = useState<Wait>()
  return (
    <AuthLayout title={t('Second factor')}>
      <p>{t('Your password is correct. Now enter the code from your authenticator app.')}</p>
      <Form
        submit={t('Continue')}
        send={async ({ code = '' }) =>
          enter(
            await publicApi.mfa.authenticate({ body: { token: begun.mfaToken, code: withoutSpaces(code) } }),
          )
        }
        refused={(error, form) => {
          form.querySelector('input')?.select()
          setWait(waitOf(error))
          return undefined
        }}
      >
        <AppCodeField autoFocus />
        <Countdown wait={wait} />
      </Form>
      <AuthLinks>
        <a href="#recovery-code">{t('Use a recovery code instead')}</a>
        <a href="#">{t('Start again')}</a>
      </AuthLinks>
    </AuthLayout>
  )
}

function RecoveryCode({ who, enter }: { who: string; enter: Enter }) {
  const [wait, setWait] = useState<Wait>()
  return (
    <AuthLayout title={t('Recovery code')}>
      <p>{t('One of the codes you received when you turned on the second factor. Each works once.')}</p>
      <Form
        submit={t('Sign in with this code')}
        send={async ({ identifier = '', recovery_code = '' }) =>
          enter(
            await publicApi.mfa.recover({
              body: { identifier, recovery_code: withoutSpaces(recovery_code) },
            }),
          )
        }
        refused={(error) => {
          setWait(waitOf(error))
          return undefined
        }}
      >
        <IdentifierField name="identifier" defaultValue={who} />
        <Field
          label={t('Recovery code')}
          name="recovery_code"
          required
          code
          wrong={t('Enter a recovery code.')}
        />
        <Countdown wait={wait} />
      </Form>
      <AuthLinks>
        <a href="#lost-codes">{t('I have no recovery codes left')}</a>
        <a href="#">{t('Back to sign in')}</a>
      </AuthLinks>
    </AuthLayout>
  )
}

interface EmailRequestFormProps {
  who: string
  submit: string
  send: (who: string) => Promise<unknown>
  sentence: string
}

/** A form that requests an e-mail. It shows the same sentence whether or not the account exists. */
export function EmailRequestForm({ who, submit, send, sentence }: EmailRequestFormProps) {
  const [sent, setSent] = useState(false)
  return (
    <>
      <Form
        submit={submit}
        send={async ({ identifier = '' }) => {
          setSent(false)
          await send(identifier)
          setSent(true)
        }}
      >
        <IdentifierField name="identifier" defaultValue={who} />
      </Form>
      <p className="note" role="status">
        {sent && sentence}
      </p>
    </>
  )
}

function LostCodes({ who }: { who: string }) {
  const mail = useMail()
  return (
    <AuthLayout title={t('Turn off the second factor')}>
      <p>
        {mail
          ? t(
              'We will send one code to your main address and one to your recovery address. With both you can turn off the second factor.',
            )
          : t('With the codes from two e-mails you can turn off the second factor.')}
      </p>
      {!mail && <StoredEmails />}
      <EmailRequestForm
        who={who}
        submit={mail ? t('Send the e-mails') : t('Store the e-mails')}
        send={(identifier) => publicApi.mfa.requestReset({ body: { identifier } })}
        sentence={
          mail
            ? t(
                'If this account exists and has a second factor and a recovery address, two e-mails are on their way. Follow the link in one of them.',
              )
            : t(
                'If this account exists and has a second factor and a recovery address, two e-mails were stored. Follow the link in one of them.',
              )
        }
      />
      <AuthLinks>
        <a href="#">{t('Back to sign in')}</a>
      </AuthLinks>
    </AuthLayout>
  )
}

function ForgotPassword({ who }: { who: string }) {
  const mail = useMail()
  return (
    <AuthLayout title={t('Forgotten password')}>
      {mail ? (
        <p>{t('We will send you an e-mail with a link to choose a new one.')}</p>
      ) : (
        <>
          <p>{t('You can choose a new one with a link sent by e-mail.')}</p>
          <StoredEmails />
        </>
      )}
      <EmailRequestForm
        who={who}
        submit={mail ? t('Send the e-mail') : t('Store the e-mail')}
        send={(username) => publicApi.users.recover({ body: { username } })}
        sentence={
          mail
            ? t(
                'If this account exists, an e-mail with a link is on its way. The link is valid for 24 hours.',
              )
            : t('If this account exists, an e-mail with a link was stored. The link is valid for 24 hours.')
        }
      />
      <AuthLinks>
        <a href="#">{t('Back to sign in')}</a>
      </AuthLinks>
    </AuthLayout>
  )
}
