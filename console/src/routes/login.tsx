// Sign-in, its second step and the ways back in, each a part that the hash of the address chooses, so that
// the browser's way back works between them. The token of a half-finished sign-in lives in the memory of this
// page only.
import { Link, useLocation, useNavigate } from '@tanstack/react-router'
import { useEffect, useState } from 'react'
import { ApiError } from '@hawser/contract/client'
import { open } from '../api.ts'
import { Field, Form, Tick } from '../parts/form.tsx'
import { Quay, Ways, WhoField } from '../parts/quay.tsx'
import { note, session, unconfirmed } from '../session.ts'
import { useInfo } from './setup.tsx'

interface Wait {
  until: number
}

/**
 * How long a lock lasts, from how long it is and not from when it ends: this machine's clock may be wrong.
 */
const waitOf = (error: ApiError): Wait | undefined =>
  error.kind === 'locked' || error.kind === 'tooMany'
    ? { until: performance.now() + (error.retryAfter ?? 0) * 1000 }
    : undefined

/**
 * Counts down beside the sentence, not in it: that one is read out once, and a screen reader must not read
 * every second.
 */
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
    session.keep(body, begun.stay)
    await navigate({ to: '/' })
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
  const [sentence] = useState(note.take)
  const [wait, setWait] = useState<Wait>()
  const [waiting, setWaiting] = useState(false)
  return (
    <Quay title="Sign in">
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
            const { body } = await open.users.login({ body: { username, password } })
            session.keep(body, stay !== '')
            await navigate({ to: '/' })
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
          if (error.kind === 'unconfirmed') unconfirmed.keep(username.value)
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
          <WhoField name="username" defaultValue={begun.who} autoFocus />
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
          <Link to="/confirm-account">Send the confirmation letter again</Link>
        </p>
      )}
      <Ways>
        <Link to="/login" hash="forgot-password">
          I forgot my password
        </Link>
        <Link to="/sign-up">Create an account</Link>
      </Ways>
    </Quay>
  )
}

function Code({ begun, enter }: { begun: Begun; enter: (body: { token: string }) => Promise<void> }) {
  const [wait, setWait] = useState<Wait>()
  return (
    <Quay title="Second factor">
      <p>Your password is right. Now the code that your authenticator app shows.</p>
      <Form
        submit="Go on"
        send={async ({ code = '' }) =>
          enter(
            (
              await open.mfa.authenticate({
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
          // The page has this one field.
          autoFocus
          pattern="\s*\d{3}\s*\d{3}\s*"
          inputMode="numeric"
          autoComplete="one-time-code"
          wrong="The code has six digits."
        />
        <Countdown wait={wait} />
      </Form>
      <Ways>
        <Link to="/login" hash="recovery-code">
          Use a recovery code instead
        </Link>
        <Link to="/login">Start again</Link>
      </Ways>
    </Quay>
  )
}

function RecoveryCode({ who, enter }: { who: string; enter: (body: { token: string }) => Promise<void> }) {
  const [wait, setWait] = useState<Wait>()
  return (
    <Quay title="Recovery code">
      <p>One of the codes you were given when you switched the second factor on. Each works once.</p>
      <Form
        submit="Sign in with this code"
        send={async ({ identifier = '', recovery_code = '' }) =>
          enter(
            (
              await open.mfa.recover({
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
        <WhoField name="identifier" defaultValue={who} />
        <Field
          label="Recovery code"
          name="recovery_code"
          required
          code
          wrong="Please fill in a recovery code."
        />
        <Countdown wait={wait} />
      </Form>
      <Ways>
        <Link to="/login" hash="lost-codes">
          I have no recovery code left
        </Link>
        <Link to="/login">Back to sign in</Link>
      </Ways>
    </Quay>
  )
}

/** A form that asks for a letter. The answer is the same whoever is asked for, and so is what we say. */
export function LetterForm({
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
        <WhoField name="identifier" defaultValue={who} />
      </Form>
      <p className="note" role="status">
        {sent && sentence}
      </p>
    </>
  )
}

function LostCodes({ who }: { who: string }) {
  return (
    <Quay title="Turn off the second factor">
      <p>
        We send one code to your main and one to your recovery address. With both you can turn the second
        factor off.
      </p>
      <LetterForm
        who={who}
        submit="Send the letters"
        send={(identifier) => open.mfa.requestReset({ body: { identifier } })}
        sentence="If there is such an account, with a second factor and a recovery address, two letters are on their way. Follow the link in one of them."
      />
      <Ways>
        <Link to="/login">Back to sign in</Link>
      </Ways>
    </Quay>
  )
}

function ForgotPassword({ who }: { who: string }) {
  return (
    <Quay title="Forgotten password">
      <p>We send you a letter with a link, with which you can choose a new one.</p>
      <LetterForm
        who={who}
        submit="Send the letter"
        send={(username) => open.users.recover({ body: { username } })}
        sentence="If there is such an account, a letter with a link is on its way to it. The link is valid for 24 hours."
      />
      <Ways>
        <Link to="/login">Back to sign in</Link>
      </Ways>
    </Quay>
  )
}
