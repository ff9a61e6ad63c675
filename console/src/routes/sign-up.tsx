// Registration, and the page that waits for the confirmation e-mail or sends it again.
import { Link, useNavigate } from '@tanstack/react-router'
import { publicApi } from '../api.ts'
import { Form } from '../components/form.tsx'
import {
  EmailField,
  NameField,
  NewPasswordField,
  AuthLayout,
  UsernameField,
  AuthLinks,
} from '../components/auth-layout.tsx'
import { unconfirmed } from '../auth.ts'
import { EmailRequestForm } from './login.tsx'

export function SignUpPage() {
  const navigate = useNavigate()
  return (
    <AuthLayout title="Create an account">
      <Form
        submit="Create the account"
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
        <Link to="/login">I have an account</Link>
      </AuthLinks>
    </AuthLayout>
  )
}

export function ConfirmAccountPage() {
  return (
    <AuthLayout title="Confirm your account" heading="Check your mailbox">
      <p>We sent you an e-mail with a link that confirms your account. It is valid for 24 hours.</p>
      <p>No e-mail? Check your spam folder, or send it again:</p>
      <EmailRequestForm
        who={unconfirmed.name()}
        submit="Send it again"
        send={(username) => publicApi.users.resend({ body: { username } })}
        sentence="If an account waits for it, a new e-mail is on its way. The link in the older one no longer works."
      />
      <AuthLinks>
        <Link to="/login">Sign in</Link>
      </AuthLinks>
    </AuthLayout>
  )
}
