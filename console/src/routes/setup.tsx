// The first set-up: the link that the server prints at its first start leads here, to create the first user.
import { useQuery } from '@tanstack/react-query'
import { Link, useNavigate } from '@tanstack/react-router'
import { useState } from 'react'
import { publicApi } from '../api.ts'
import { Field, Form, verbatim } from '../components/form.tsx'
import {
  EmailField,
  NameField,
  NamespaceField,
  NewPasswordField,
  AuthLayout,
  UsernameField,
  AuthLinks,
} from '../components/auth-layout.tsx'
import { auth } from '../auth.ts'
import { clearLink, linkParams } from '../link-params.ts'
import { msg, t } from '../language/language.ts'

const stale = msg(
  'This set-up code is wrong or outdated. Until it has a user, the server creates a new code at every start: use the one it printed last.',
)

const useInfo = () =>
  useQuery({
    queryKey: ['info'],
    queryFn: async () => (await publicApi.system.info()).body,
    staleTime: 60_000,
  })

export function SetupPage() {
  const navigate = useNavigate()
  const code = linkParams('/setup')['code'] ?? ''
  const [codeShown, showCode] = useState(code === '')
  const info = useInfo()

  if (info.data?.setup)
    return (
      <AuthLayout title={t('Set up')} heading={t('Welcome aboard')}>
        <p>{t('This server is already set up.')}</p>
        <Link className="button main" to="/login">
          {t('Sign in')}
        </Link>
      </AuthLayout>
    )
  return (
    <AuthLayout title={t('Set up')} heading={t('Welcome aboard')}>
      <p>{t('This server has no users yet. You will be the first, and own the first namespace.')}</p>
      <Form
        submit={t('Set up this server')}
        send={async ({
          code: typed = '',
          name = '',
          username = '',
          email = '',
          password = '',
          namespace = '',
        }) => {
          const needed = { code: codeShown ? typed : code, name, username, email, password }
          const { body } = await publicApi.system.setup({
            body: namespace ? { ...needed, namespace } : needed,
          })
          auth.save(body, false)
          clearLink('/setup')
          await navigate({ to: '/' })
        }}
        refused={(error) => {
          if (error.kind !== 'wrongToken') return undefined
          showCode(true)
          return t(stale)
        }}
      >
        {codeShown && (
          <Field
            label={t('Set-up code')}
            name="code"
            required
            defaultValue={code}
            {...verbatim}
            hint={t('The server printed it in a link when it started.')}
            wrong={t('The set-up code is missing.')}
          />
        )}
        <NameField />
        <UsernameField />
        <EmailField />
        <NewPasswordField />
        <NamespaceField
          hint={t(
            'A namespace holds your team’s devices. Use letters, digits and dashes; left empty, it is named after you.',
          )}
        />
      </Form>
      <AuthLinks>
        <Link to="/login">{t('Sign in')}</Link>
      </AuthLinks>
    </AuthLayout>
  )
}
