// The user's own account: name, e-mail addresses, password. The second factor has a file of its own.
import { useState } from 'react'
import { Link } from '@tanstack/react-router'
import { encodeFilter } from '@hawser/contract/filters'
import { api, queryClient, useMay, useMe } from '../api.ts'
import { useNamespaceQuery } from '../namespace-query.ts'
import { Field, Form } from '../components/form.tsx'
import { GuardedForm } from '../components/guarded-form.tsx'
import { FieldError } from '../error-text.ts'
import { Page, Panel } from '../components/page.tsx'
import { auth } from '../auth.ts'
import {
  EmailField,
  NameField,
  NewPasswordField,
  PasswordField,
  UsernameField,
} from '../components/auth-layout.tsx'
import { showToast } from '../components/toast.tsx'
import { SignInsPanel } from '../components/sign-ins.tsx'
import { Empty, QueryList } from '../components/query-content.tsx'
import { KeyRow } from './public-keys.tsx'
import { SecondFactor } from './second-factor.tsx'
import { t } from '../language/language.ts'
import { useMail } from '../server-info.ts'

export function ProfilePage() {
  const me = useMe()
  const mail = useMail()
  return (
    <Page title={t('Profile')} lead={t('Signed in as {user}', { user: me.user })}>
      <Panel title={t('You')}>
        <GuardedForm
          compact
          key={me.id}
          submit={t('Save the profile')}
          send={async ({ name = '', username = '', email = '', recovery_email = '' }) => {
            if (recovery_email !== '' && recovery_email.toLowerCase() === email.toLowerCase())
              throw new FieldError('recovery_email', t('It must be another address than your main one.'))
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
              !addressed
                ? t('Your profile was saved.')
                : mail
                  ? t(
                      'Your profile was saved. The new address takes effect once you follow the link that we sent to it.',
                    )
                  : t(
                      'Your profile was saved. The new address takes effect once you follow the link in an e-mail that the server stored in its outbox.',
                    ),
            )
          }}
        >
          <NameField defaultValue={me.name} />
          <UsernameField defaultValue={me.user} />
          <EmailField defaultValue={me.email} />
          <Field
            label={t('Recovery e-mail')}
            name="recovery_email"
            type="email"
            defaultValue={me.recovery_email}
            autoComplete="off"
            hint={t(
              'A different address, in case you lose your second factor. Once set, it can be changed but not removed.',
            )}
            wrong={t('It must be an e-mail address other than your main one, and cannot be removed again.')}
            taken={t('This address is already in use.')}
          />
        </GuardedForm>
      </Panel>
      <Password />
      <SecondFactor />
      <SignInsPanel />
      {me.tenant !== '' && <OwnKeys />}
    </Page>
  )
}

/** In the present namespace. */
function OwnKeys() {
  const me = useMe()
  const may = useMay('administrator')
  const mine = encodeFilter([{ type: 'property', params: { name: 'owner', operator: 'eq', value: me.id } }])
  const keys = useNamespaceQuery(['public-keys', 'own'], () =>
    api.publicKeys.list({ query: { filter: mine, per_page: 100 } }),
  )
  return (
    <Panel title={t('Your public keys')}>
      <p className="soft">
        {t(
          'Sessions opened with these keys count as yours. The keys are removed when you leave the namespace.',
        )}{' '}
        {may ? <Link to="/public-keys">{t('Add a key')}</Link> : t('An administrator can add one.')}
      </p>
      <QueryList
        query={keys}
        label={t('Your public keys')}
        empty={<Empty title={t('You have no public keys in this namespace.')} />}
        row={(key) => <KeyRow key={key.fingerprint} given={key} may={may} />}
      />
    </Panel>
  )
}

function Password() {
  /** A new key renders a new form, with empty fields. */
  const [changes, setChanges] = useState(0)
  return (
    <Panel title={t('Password')}>
      <p className="soft">
        {t(
          'A new password ends all other sign-ins and the invitations you created. This sign-in stays valid for at most 72 hours, and so does any copy of it.',
        )}
      </p>
      <Form
        compact
        key={changes}
        submit={t('Change the password')}
        send={async ({ password = '', current_password = '' }) => {
          // Only the token of this window stays valid: the others take it over.
          auth.save({ token: auth.token() })
          await api.users.update({ body: { password, current_password } })
          setChanges(changes + 1)
          showToast(
            t(
              'Your password was changed. All other sign-ins have ended; this one stays valid for at most 72 hours.',
            ),
          )
        }}
      >
        <PasswordField
          label={t('Current password')}
          name="current_password"
          wrong={t('This is not your current password.')}
        />
        <NewPasswordField label={t('New password')} />
      </Form>
    </Panel>
  )
}
