// Registration, and the page that waits for the letter or has it sent again.
import { Link, useNavigate } from '@tanstack/react-router'
import { open } from '../api.ts'
import { Form } from '../parts/form.tsx'
import { EmailField, NameField, NewPasswordField, Quay, UsernameField, Ways } from '../parts/quay.tsx'
import { unconfirmed } from '../session.ts'
import { LetterForm } from './login.tsx'

export function SignUpPage() {
  const navigate = useNavigate()
  return (
    <Quay title="Create an account">
      <Form
        submit="Create the account"
        send={async ({ name = '', username = '', email = '', password = '' }) => {
          await open.users.register({ body: { name, username, email, password } })
          unconfirmed.keep(username)
          await navigate({ to: '/confirm-account' })
        }}
      >
        <NameField />
        <UsernameField />
        <EmailField />
        <NewPasswordField />
      </Form>
      <Ways>
        <Link to="/login">I have an account</Link>
      </Ways>
    </Quay>
  )
}

export function ConfirmAccountPage() {
  return (
    <Quay title="Confirm your account" heading="Look into your mailbox">
      <p>We sent you a letter with a link that confirms your account. It is valid for 24 hours.</p>
      <p>No letter? Look among the unwanted ones, or have it sent again:</p>
      <LetterForm
        who={unconfirmed.name()}
        submit="Send it again"
        send={(username) => open.users.resend({ body: { username } })}
        sentence="If an account waits for it, a new letter is on its way. The link in the older one has ended."
      />
      <Ways>
        <Link to="/login">Sign in</Link>
      </Ways>
    </Quay>
  )
}
