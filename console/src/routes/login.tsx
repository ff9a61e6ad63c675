// Sign-in, its second step, and recovery. The hash of the URL chooses the step, so that the browser's back
// button works between them. The token of an unfinished sign-in is in the memory of this page only.
import { Link, useLocation, useNavigate } from '@tanstack/react-router'
import { useEffect, useState } from 'react'
import { ApiError } from '@hawser/contract/client'
import { publicApi } from '../api.ts'
import { Field, Form, Tick } from '../components/form.tsx'
import { AuthLayout, AuthLinks, IdentifierField } from '../components/auth-layout.tsx'
import { auth, flash, unconfirmed } from '../auth.ts'
import { landing } from '../link-params.ts'
import { useInfo } from './setup.tsx'

interface Wait {
  until: number
}

/**
 * When a lock ends, computed from its duration and not from its end: the clock of this machine may be wrong.
 */
const waitOf = (error: ApiError): Wait | undefined =>
  error.kind === 'locked' || error.kind === 'tooMany'
    ? { until: performance.now() + (error.retryAfter ?? 0) * 1000 }
    : undefined

/** A countdown outside of the error sentence, so that screen readers do not read every second. */
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
          ? `You can try again in ${Math.floor(seconds / 60)}:${String(seconds % 60).padStart(2, '0')}`
          : 'You can try again now.')}
    </p>
  )
}

interface Begun {
  who: string
  stay: boolean
  mfaToken: string
}

export function LoginPage() {
  const { hash } = useLocation()
  const navigate = useNavigate()
  const [begun, setBegun] = useState<Begun>({ who: '', stay: false, mfaToken: '' })
  const enter = async (body: { token: string }) => {
    auth.save(body, begun.stay)
    await navigate({ to: landing() })
  }
  if (hash === 'code' && begun.mfaToken !== '') return <Code begun={begun} enter={enter} />
  if (hash === 'recovery-code') return <RecoveryCode who={begun.who} enter={enter} />
  if (hash === 'lost-codes') return <LostCodes who={begun.who} />
  if (hash === 'forgot-password') return <ForgotPassword who={begun.who} />
  return <SignIn begun={begun} setBegun={setBegun} />
}

function SignIn({ begun, setBegun }: { begun: Begun; setBegun: (begun: Begun) => void }) {
  const navigate = useNavigate()
  const info = useInfo()
  const [sentence] = useState(flash.take)
  const [wait, setWait] = useState<Wait>()
  const [waiting, setWaiting] = useState(false)
  return (
    <AuthLayout title="Sign in">
      <p className="note" role="status">
        {sentence}
      </p>
      {info.data?.setup === false && (
        <p className="note">
          This server has no user yet. The first one is made with the link that the server printed when it
          started.
        </p>
      )}
      <Form
        submit="Sign in"
        send={async ({ username = '', password = '', stay = '' }) => {
          setWaiting(false)
          setWait(undefined)
          try {
            const { body } = await publicApi.users.login({ body: { username, password } })
            auth.save(body, stay !== '')
            await navigate({ to: landing() })
          } catch (error) {
            const mfaToken = error instanceof ApiError ? (error.headers.get('x-mfa-token') ?? '') : ''
            if (mfaToken === '') throw error
            setBegun({ who: username, stay: stay !== '', mfaToken })
            await navigate({ to: '/login', hash: 'code' })
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
        <Field
          label="Password"
          name="password"
          type="password"
          required
          autoComplete="current-password"
          wrong="Please fill in your password."
        />
        <Tick label="Keep me signed in on this device" name="stay" />
        <Countdown wait={wait} />
      </Form>
      {waiting && (
        <p>
          <Link to="/confirm-account">Send the confirmation e-mail again</Link>
        </p>
      )}
      <AuthLinks>
        <Link to="/login" hash="forgot-password">
          I forgot my password
        </Link>
        <Link to="/sign-up">Create an account</Link>
      </AuthLinks>
    </AuthLayout>
  )
}

function Code({ begun, enter }: { begun: Begun; enter: (body: { token: string }) => Promise<void> }) {
  const [wait, setWait] = useState<Wait>()
  return (
    <AuthLayout title="Second factor">
      <p>Your password is right. Now the code that your authenticator app shows.</p>
      <Form
        submit="Go on"
        send={async ({ code = '' }) =>
          enter(
            (
              await publicApi.mfa.authenticate({
                body: { token: begun.mfaToken, code: code.replaceAll(/\s/g, '') },
              })
            ).body,
          )
        }
        refused={(error, form) => {
          form.querySelector('input')?.select()
          setWait(waitOf(error))
          return undefined
        }}
      >
        <Field
          label="Code"
          name="code"
          required
          code
          // The only field of the page.
          autoFocus
          pattern="\s*\d{3}\s*\d{3}\s*"
          inputMode="numeric"
          autoComplete="one-time-code"
          wrong="The code has six digits."
        />
        <Countdown wait={wait} />
      </Form>
      <AuthLinks>
        <Link to="/login" hash="recovery-code">
          Use a recovery code instead
        </Link>
        <Link to="/login">Start again</Link>
      </AuthLinks>
    </AuthLayout>
  )
}

function RecoveryCode({ who, enter }: { who: string; enter: (body: { token: string }) => Promise<void> }) {
  const [wait, setWait] = useState<Wait>()
  return (
    <AuthLayout title="Recovery code">
      <p>One of the codes you were given when you switched the second factor on. Each works once.</p>
      <Form
        submit="Sign in with this code"
        send={async ({ identifier = '', recovery_code = '' }) =>
          enter(
            (
              await publicApi.mfa.recover({
                body: { identifier, recovery_code: recovery_code.replaceAll(/\s/g, '') },
              })
            ).body,
          )
        }
        refused={(error) => {
          setWait(waitOf(error))
          return undefined
        }}
      >
        <IdentifierField name="identifier" defaultValue={who} />
        <Field
          label="Recovery code"
          name="recovery_code"
          required
          code
          wrong="Please fill in a recovery code."
        />
        <Countdown wait={wait} />
      </Form>
      <AuthLinks>
        <Link to="/login" hash="lost-codes">
          I have no recovery code left
        </Link>
        <Link to="/login">Back to sign in</Link>
      </AuthLinks>
    </AuthLayout>
  )
}

/** A form that requests an e-mail. It shows the same sentence whether or not the account exists. */
export function EmailRequestForm({
  who,
  submit,
  send,
  sentence,
}: {
  who: string
  submit: string
  send: (who: string) => Promise<unknown>
  sentence: string
}) {
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
  return (
    <AuthLayout title="Turn off the second factor">
      <p>
        We send one code to your main and one to your recovery address. With both you can turn the second
        factor off.
      </p>
      <EmailRequestForm
        who={who}
        submit="Send the e-mails"
        send={(identifier) => publicApi.mfa.requestReset({ body: { identifier } })}
        sentence="If there is such an account, with a second factor and a recovery address, two e-mails are on their way. Follow the link in one of them."
      />
      <AuthLinks>
        <Link to="/login">Back to sign in</Link>
      </AuthLinks>
    </AuthLayout>
  )
}

function ForgotPassword({ who }: { who: string }) {
  return (
    <AuthLayout title="Forgotten password">
      <p>We send you an e-mail with a link to choose a new one.</p>
      <EmailRequestForm
        who={who}
        submit="Send the e-mail"
        send={(username) => publicApi.users.recover({ body: { username } })}
        sentence="If there is such an account, an e-mail with a link is on its way to it. The link is valid for 24 hours."
      />
      <AuthLinks>
        <Link to="/login">Back to sign in</Link>
      </AuthLinks>
    </AuthLayout>
  )
}
