// The first start: the link that the server prints leads here, and the first user is made.
import { useQuery } from '@tanstack/react-query'
import { Link, useNavigate } from '@tanstack/react-router'
import { useState } from 'react'
import { open } from '../api.ts'
import { Field, Form } from '../parts/form.tsx'
import {
  EmailField,
  NameField,
  NamespaceField,
  NewPasswordField,
  Quay,
  UsernameField,
  Ways,
} from '../parts/quay.tsx'
import { broughtTo, forgetLink, session } from '../session.ts'

const stale =
  'This set-up code is wrong, or not the newest: the server makes a new one at every start while it has no user. See what it printed last.'

export const useInfo = () =>
  useQuery({ queryKey: ['info'], queryFn: async () => (await open.system.info()).body, staleTime: 60_000 })

export function SetupPage() {
  const navigate = useNavigate()
  const code = broughtTo('/setup')['code'] ?? ''
  const [codeShown, showCode] = useState(code === '')
  const info = useInfo()

  if (info.data?.setup)
    return (
      <Quay title="Set up" heading="Welcome aboard">
        <p>This server is set up already.</p>
        <Link className="button main" to="/login">
          Sign in
        </Link>
      </Quay>
    )
  return (
    <Quay title="Set up" heading="Welcome aboard">
      <p>This server has no user yet. You become its first one, and own the first namespace.</p>
      <Form
        submit="Set up this server"
        send={async ({
          code: typed = '',
          name = '',
          username = '',
          email = '',
          password = '',
          namespace = '',
        }) => {
          const needed = { code: codeShown ? typed : code, name, username, email, password }
          const { body } = await open.system.setup({ body: namespace ? { ...needed, namespace } : needed })
          session.keep(body, false)
          forgetLink('/setup')
          await navigate({ to: '/' })
        }}
        refused={(error) => {
          if (error.kind !== 'wrongToken') return undefined
          showCode(true)
          return stale
        }}
      >
        {codeShown && (
          <Field
            label="Set-up code"
            name="code"
            required
            defaultValue={code}
            autoComplete="off"
            autoCapitalize="none"
            spellCheck={false}
            hint="The server printed it, in a link, when it started."
            wrong="The set-up code is missing."
          />
        )}
        <NameField />
        <UsernameField />
        <EmailField />
        <NewPasswordField />
        <NamespaceField hint="Your team’s own world of devices. Letters, digits and dashes; left empty, it is named after you." />
      </Form>
      <Ways>
        <Link to="/login">Sign in</Link>
      </Ways>
    </Quay>
  )
}
