// The page that the link of an invitation into a namespace leads to. Opening it accepts nothing yet.
// A person with an account for the invited address signs in and accepts; another creates one here.
import { useQuery } from '@tanstack/react-query'
import { useNavigate } from '@tanstack/react-router'
import { useEffect, useState, type ReactNode } from 'react'
import { ApiError, type Answer } from '@hawser/contract/client'
import { memberInvitationPage, type invitations } from '@hawser/contract/invitations'
import { api, publicApi, switchNamespace, useMeLoading } from '../api.ts'
import { auth, unconfirmed } from '../auth.ts'
import {
  AuthLayout,
  AuthLinks,
  NameField,
  NewPasswordField,
  UsernameField,
} from '../components/auth-layout.tsx'
import { Button, QuietButton } from '../components/button.tsx'
import { Form } from '../components/form.tsx'
import { ErrorNotice, Loading } from '../components/query-content.tsx'
import { inFull } from '../language/format.ts'
import { rich, t } from '../language/language.ts'
import { captureLink, clearLink, keepPlace, linkParams } from '../link-params.ts'

type Opened = Answer<(typeof invitations)['open']>
const page = memberInvitationPage

export function InvitationPage() {
  const [token, setToken] = useState(() => linkParams(page)['token'] ?? '')
  useEffect(() => {
    // Another link in the same tab changes only the fragment.
    const look = () => {
      captureLink()
      setToken(linkParams(page)['token'] ?? '')
    }
    addEventListener('hashchange', look)
    return () => removeEventListener('hashchange', look)
  }, [])
  const opened = useQuery({
    queryKey: ['invitation', token],
    queryFn: async () => (await publicApi.invitations.open({ body: { token } })).body,
    enabled: token !== '',
    retry: false,
  })
  const stale = opened.error instanceof ApiError && [400, 401].includes(opened.error.status)
  if (token === '' || stale)
    return (
      <AuthLayout title={t('Invitation')} heading={t('This link does not work')}>
        <p>
          {t(
            'It was already used, has expired, was withdrawn or was not copied completely. Ask for a new invitation.',
          )}
        </p>
        <a className="button main" href="/">
          {t('To the overview')}
        </a>
      </AuthLayout>
    )
  if (opened.error)
    return (
      <AuthLayout title={t('Invitation')}>
        <ErrorNotice error={opened.error} again={() => opened.refetch()} />
      </AuthLayout>
    )
  return opened.data ? <Invitation token={token} about={opened.data} /> : <Loading />
}

function Invitation({ token, about }: { token: string; about: Opened }) {
  const isSignedIn = auth.token() !== ''
  return (
    <AuthLayout
      title={t('Invitation')}
      heading={t('You are invited to {namespace}', { namespace: about.namespace })}
    >
      <p>
        {rich('{name} invites {email} as {role}, until {moment}.', {
          name: <strong key="name">{about.invited_by}</strong>,
          email: <strong key="email">{about.email}</strong>,
          role: t(about.role),
          moment: inFull(about.expires_at),
        })}
      </p>
      {isSignedIn ? (
        <Accept token={token} about={about} />
      ) : (about.account ?? !about.sign_up) ? (
        <SignInFirst>{t('To accept, sign in with the account that has this address.')}</SignInFirst>
      ) : about.sign_up ? (
        <SignUp token={token} />
      ) : (
        <SignInFirst>
          {t(
            'No account has this address, and this server does not allow registration. Ask its administrator for an account.',
          )}
        </SignInFirst>
      )}
    </AuthLayout>
  )
}

function signInHere(): void {
  keepPlace(page)
  location.assign('/login')
}

function SignInFirst({ children }: { children: ReactNode }) {
  return (
    <>
      <p>{children}</p>
      <Button onPress={signInHere}>{t('Sign in')}</Button>
    </>
  )
}

function Accept({ token, about }: { token: string; about: Opened }) {
  const me = useMeLoading()
  if (!me.data) return <Loading />
  const isMine = me.data.email.toLowerCase() === about.email
  return (
    <>
      <p>
        {isMine
          ? t('You are signed in as {name}.', { name: me.data.user })
          : t('You are signed in as {name}, with another address. The invitation is for {email} alone.', {
              name: me.data.user,
              email: about.email,
            })}
      </p>
      {isMine && (
        <Form
          submit={t('Accept the invitation')}
          send={async () => {
            const { body } = await api.invitations.accept({ body: { token } })
            clearLink(page)
            await switchNamespace(body.tenant_id)
            location.assign('/')
          }}
        />
      )}
      <AuthLinks>
        <Button
          kind="quiet"
          onPress={() => {
            keepPlace(page)
            auth.signOut(t('Sign in as the person the invitation is for.'))
          }}
        >
          {t('Sign in as someone else')}
        </Button>
      </AuthLinks>
    </>
  )
}

function SignUp({ token }: { token: string }) {
  const navigate = useNavigate()
  return (
    <>
      <p>{t('Create an account for this address:')}</p>
      <Form
        submit={t('Create the account and accept')}
        send={async ({ name = '', username = '', password = '' }) => {
          const { body } = await publicApi.invitations.signUp({ body: { token, name, username, password } })
          if (body.token === '') {
            unconfirmed.save(username)
            // After the sign-in the person still has to accept.
            keepPlace(page)
            await navigate({ to: '/confirm-account' })
            return
          }
          clearLink(page)
          auth.save(body, false)
          location.assign('/')
        }}
      >
        <NameField />
        <UsernameField />
        <NewPasswordField />
      </Form>
      <AuthLinks>
        <QuietButton onPress={signInHere}>{t('I have an account')}</QuietButton>
      </AuthLinks>
    </>
  )
}
