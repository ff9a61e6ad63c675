// The user's own account: name, e-mail addresses, password. The second factor has a file of its own.
import { useState } from 'react'
import { api, queryClient, useMe } from '../api.ts'
import { Field, Form } from '../components/form.tsx'
import { Page, Panel } from '../components/page.tsx'
import { EmailField, NewPasswordField, UsernameField } from '../components/auth-layout.tsx'
import { showToast } from '../components/toast.tsx'
import { SecondFactor } from './second-factor.tsx'

export function ProfilePage() {
  const me = useMe()
  return (
    <Page title="Profile" lead={`Signed in as ${me.user}`}>
      <Panel title="You">
        <Form
          compact
          key={me.id}
          submit="Save the profile"
          send={async ({ name = '', username = '', email = '', recovery_email = '' }) => {
            const before = {
              name: me.name,
              username: me.user,
              email: me.email,
              recovery_email: me.recovery_email,
            }
            const now = { name, username, email, recovery_email }
            const changed = Object.entries(now).filter(
              ([key, value]) => before[key as keyof typeof before] !== value,
            )
            await api.users.update({ body: Object.fromEntries(changed) })
            await queryClient.invalidateQueries({ queryKey: ['me'] })
            const addressed = changed.some(
              ([key]) => key === 'email' || (key === 'recovery_email' && before.recovery_email !== ''),
            )
            showToast(
              addressed
                ? 'Your profile is saved. The new address counts once you have followed the link that we sent there.'
                : 'Your profile is saved.',
            )
          }}
        >
          <Field
            label="Your name"
            name="name"
            required
            pattern=".{1,64}"
            defaultValue={me.name}
            autoComplete="name"
            wrong="A name has 1 to 64 characters."
          />
          <UsernameField defaultValue={me.user} />
          <EmailField defaultValue={me.email} />
          <Field
            label="Recovery e-mail"
            name="recovery_email"
            type="email"
            defaultValue={me.recovery_email}
            autoComplete="off"
            hint="Another address of yours, for the day you lose your second factor. Once given, it can be changed but not emptied."
            wrong="It must be an e-mail address other than your main one, and cannot be emptied again."
            taken="This address is in use already."
          />
        </Form>
      </Panel>
      <Password />
      <SecondFactor />
    </Page>
  )
}

function Password() {
  /** A new key renders a new form, with empty fields. */
  const [changes, setChanges] = useState(0)
  return (
    <Panel title="Password">
      <p className="soft">
        With a new password all other sign-ins end; this one, with every copy of it, ends within 72 hours.
      </p>
      <Form
        compact
        key={changes}
        submit="Change the password"
        send={async ({ password = '', current_password = '' }) => {
          await api.users.update({ body: { password, current_password } })
          setChanges(changes + 1)
          showToast(
            'Your password is changed. All other sign-ins have ended; copies of this one end within 72 hours.',
          )
        }}
      >
        <Field
          label="Present password"
          name="current_password"
          type="password"
          required
          autoComplete="current-password"
          wrong="This is not your present password."
        />
        <NewPasswordField label="New password" />
      </Form>
    </Panel>
  )
}
