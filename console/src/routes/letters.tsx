// Where the links of letters lead: confirm an account or an address, choose a new password, turn the second
// factor off, take a change back. Nothing is done by opening a link (mail programs open them too), only by
// pressing the button.
import { Link, useNavigate } from '@tanstack/react-router'
import { useState, type ReactNode } from 'react'
import { ApiError } from '@hawser/contract/client'
import { open } from '../api.ts'
import { Field, Form } from '../parts/form.tsx'
import { NewPasswordField, Quay, Ways } from '../parts/quay.tsx'
import { broughtTo, forgetLink, session } from '../session.ts'

type Stage = 'ask' | 'done' | 'stale'

/**
 * Runs a call of a link: what it says about the link itself decides what is shown next, the rest is shown as
 * it is.
 */
async function follow(
  page: string,
  setStage: (stage: Stage) => void,
  run: () => Promise<unknown>,
): Promise<void> {
  try {
    await run()
  } catch (error) {
    if (!(error instanceof ApiError) || (error.kind !== 'wrongToken' && error.kind !== 'notFound'))
      throw error
    setStage('stale')
    return
  }
  forgetLink(page)
  setStage('done')
}

function Told({ title, heading, children }: { title: string; heading: string; children: ReactNode }) {
  return (
    <Quay title={title} heading={heading}>
      {children}
    </Quay>
  )
}

const SignInButton = () => (
  <Link className="button main" to="/login">
    Sign in
  </Link>
)

export function ValidationAccountPage() {
  const { email = '', token = '' } = broughtTo('/validation-account')
  const [stage, setStage] = useState<Stage>(email && token ? 'ask' : 'stale')
  const title = 'Confirm your account'
  if (stage === 'done')
    return (
      <Told title={title} heading="Your account is confirmed">
        <p>You can sign in now.</p>
        <SignInButton />
      </Told>
    )
  if (stage === 'stale')
    return (
      <Told title={title} heading="This link does not work">
        <p>
          It was used already, is older than 24 hours, or was not copied as a whole. If you have confirmed
          your account before, just sign in.
        </p>
        <Ways>
          <Link to="/login">Sign in</Link>
          <Link to="/confirm-account">Have a new letter sent</Link>
        </Ways>
      </Told>
    )
  return (
    <Quay title={title}>
      <p>
        This address will belong to your account: <strong>{email}</strong>
      </p>
      <Form
        submit="Confirm the account"
        send={() =>
          follow('/validation-account', setStage, () => open.users.activate({ query: { email, token } }))
        }
      />
    </Quay>
  )
}

export function UpdatePasswordPage() {
  const { id = '', token = '' } = broughtTo('/update-password')
  const [stage, setStage] = useState<Stage>(id && token ? 'ask' : 'stale')
  const title = 'New password'
  if (stage === 'done')
    return (
      <Told title={title} heading="Your password is changed">
        <p>Sign in with the new one.</p>
        <SignInButton />
      </Told>
    )
  if (stage === 'stale')
    return (
      <Told title={title} heading="This link does not work">
        <p>It was used already, is older than 24 hours, or was not copied as a whole.</p>
        <Link className="button main" to="/login" hash="forgot-password">
          Have a new letter sent
        </Link>
      </Told>
    )
  return (
    <Quay title={title} heading="Choose a new password">
      <p>You are signed out everywhere when you have chosen it.</p>
      <Form
        submit="Keep this password"
        send={({ password = '' }) =>
          follow('/update-password', setStage, async () => {
            await open.users.resetPassword({ params: { uid: id }, body: { password, token } })
            session.forget()
          })
        }
      >
        <NewPasswordField label="New password" />
      </Form>
    </Quay>
  )
}

export function ResetMfaPage() {
  const { id = '' } = broughtTo('/reset-mfa')
  const navigate = useNavigate()
  const title = 'Turn off the second factor'
  const anew = (
    <Link to="/login" hash="lost-codes">
      Have new letters sent
    </Link>
  )
  if (!id)
    return (
      <Told title={title} heading="This link is not complete">
        <p>Please open it from one of the two letters, as a whole.</p>
        <Ways>{anew}</Ways>
      </Told>
    )
  return (
    <Quay title={title}>
      <p>
        Two letters are on their way to you, each with a code: one to your main address, one to your recovery
        address.
      </p>
      <Form
        submit="Turn it off and sign in"
        send={async ({ main_email_code = '', recovery_email_code = '' }) => {
          const { body } = await open.mfa.reset({
            params: { user_id: id },
            body: { main_email_code, recovery_email_code },
          })
          forgetLink('/reset-mfa')
          session.keep(body, false)
          await navigate({ to: '/' })
        }}
        refused={(error) =>
          error.kind === 'wrongCode'
            ? 'These codes do not belong together, were used, or are older than 24 hours. Take both from the newest letters.'
            : undefined
        }
      >
        <Field
          label="Code from your main address"
          name="main_email_code"
          required
          code
          wrong="Please fill in the code."
        />
        <Field
          label="Code from your recovery address"
          name="recovery_email_code"
          required
          code
          wrong="Please fill in the code."
        />
      </Form>
      <Ways>{anew}</Ways>
    </Quay>
  )
}

export function ConfirmEmailPage() {
  const { token = '' } = broughtTo('/confirm-email')
  const [stage, setStage] = useState<Stage>(token ? 'ask' : 'stale')
  const title = 'Confirm your address'
  if (stage === 'done')
    return (
      <Told title={title} heading="Your address is confirmed">
        <p>E-mails about your account go there from now on.</p>
        <Link className="button main" to="/">
          To the overview
        </Link>
      </Told>
    )
  if (stage === 'stale')
    return (
      <Told title={title} heading="This link does not work">
        <p>
          It was used already, is older than 72 hours, was not copied as a whole, or the address was changed
          again since.
        </p>
        <Ways>
          <Link to="/confirm-account">Have a new letter sent</Link>
          <Link to="/login">Sign in</Link>
        </Ways>
      </Told>
    )
  return (
    <Quay title={title}>
      <p>
        E-mails about your account, with which one gets back in, will go to this address instead of the one
        before.
      </p>
      <Form
        submit="Confirm the address"
        send={() => follow('/confirm-email', setStage, () => open.users.confirmEmail({ body: { token } }))}
      />
    </Quay>
  )
}

export function UndoChangePage() {
  const { token = '' } = broughtTo('/undo-change')
  const [stage, setStage] = useState<Stage>(token ? 'ask' : 'stale')
  const title = 'Take a change back'
  if (stage === 'done')
    return (
      <Told title={title} heading="Everything is as it was before">
        <p>
          Your addresses and your second factor are back, and nobody is signed in as you. If the password was
          changed meanwhile, it does not work any more, and a letter with a link to choose a new one is on its
          way to you.
        </p>
        <p>
          Choose a new password in any case, and look through the API keys and public keys of your namespaces.
        </p>
        <Link className="button main" to="/login" hash="forgot-password">
          Choose a new password
        </Link>
        <Ways>
          <Link to="/login">Sign in</Link>
        </Ways>
      </Told>
    )
  if (stage === 'stale')
    return (
      <Told title={title} heading="This link does not work">
        <p>
          It was used already, is older than 72 hours, or was not copied as a whole. An earlier letter may
          have one that does.
        </p>
        <Ways>
          <Link to="/login">Sign in</Link>
        </Ways>
      </Told>
    )
  return (
    <Quay title={title}>
      <p>
        If you did not make the change that the letter is about, somebody else is signed in as you. This puts
        your addresses and your second factor back as they were before it, and signs you out everywhere.
      </p>
      <Form
        submit="Take it back"
        kind="danger"
        send={() =>
          follow('/undo-change', setStage, async () => {
            await open.users.undoChange({ body: { token } })
            session.forget()
          })
        }
      />
    </Quay>
  )
}
