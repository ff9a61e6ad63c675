// The page that the link of an invitation to a session leads to. Opening it accepts nothing yet: a
// signed-in person sees as which user, and accepts with a button. Then the page shows the session, and nothing
// else of its namespace.
import { lazy, Suspense, useEffect, useState } from 'react'
import type { Answer } from '@hawser/contract/client'
import type { sessionInvitations } from '@hawser/contract/session-invitations'
import { api, useMeLoading } from '../api.ts'
import { auth } from '../auth.ts'
import { AuthLayout, AuthLinks } from '../components/auth-layout.tsx'
import { Button } from '../components/button.tsx'
import { Form } from '../components/form.tsx'
import { Loading } from '../components/query-content.tsx'
import { Toasts } from '../components/toast.tsx'
import { inFull } from '../language/format.ts'
import { rich, t } from '../language/language.ts'
import { captureLink, keepPlace, linkParams } from '../link-params.ts'
import { useTitle } from '../title.ts'

const Watcher = lazy(() => import('../player/watcher.tsx'))

type Accepted = Answer<(typeof sessionInvitations)['acceptInvitation']>

export function JoinPage() {
  const [token, setToken] = useState(() => linkParams('/join')['token'] ?? '')
  const [accepted, setAccepted] = useState<Accepted>()
  useEffect(() => {
    // Another link in the same tab changes only the fragment.
    const look = () => {
      captureLink()
      setToken(linkParams('/join')['token'] ?? '')
      setAccepted(undefined)
    }
    addEventListener('hashchange', look)
    return () => removeEventListener('hashchange', look)
  }, [])
  if (token === '')
    return (
      <AuthLayout title={t('Invitation')} heading={t('This link is not complete')}>
        <p>{t('Ask the sender for a new link.')}</p>
        <a className="button main" href="/">
          {t('To the overview')}
        </a>
      </AuthLayout>
    )
  return (
    <>
      {accepted ? (
        <InvitedSession token={token} accepted={accepted} />
      ) : (
        <Invitation token={token} accept={setAccepted} />
      )}
      <Toasts />
    </>
  )
}

function Invitation({ token, accept }: { token: string; accept: (accepted: Accepted) => void }) {
  const me = useMeLoading()
  return (
    <AuthLayout title={t('Invitation')} heading={t('You are invited to a session')}>
      <p>
        {rich(
          'You are signed in as {name}. The person who invited you and the owner of the session will see this name.',
          {
            name: <strong key="name">{me.data?.user ?? '…'}</strong>,
          },
        )}
      </p>
      <Form
        submit={t('Open the session')}
        send={async () => accept((await api.sessions.acceptInvitation({ body: { token } })).body)}
      />
      <AuthLinks>
        <Button
          kind="quiet"
          onPress={() => {
            keepPlace('/join')
            auth.signOut(t('Sign in as the person the invitation is for.'))
          }}
        >
          {t('Sign in as someone else')}
        </Button>
      </AuthLinks>
    </AuthLayout>
  )
}

function InvitedSession({ token, accepted }: { token: string; accepted: Accepted }) {
  const { session_uid, username, device_name, created_by, expires_at, mode } = accepted
  const title = `${username} · ${device_name}`
  useTitle(title)
  return (
    <main className="invited">
      <div className="heading wide">
        <div>
          <h1>{title}</h1>
          <p className="soft">
            {t('{name} invited you. The invitation is valid until {moment}.', {
              name: created_by,
              moment: inFull(expires_at),
            })}
          </p>
        </div>
        <div className="acts">
          <a className="button quiet" href="/">
            {t('To the overview')}
          </a>
        </div>
      </div>
      <Suspense fallback={<Loading />}>
        <Watcher uid={session_uid} invitation={{ token, mode }} />
      </Suspense>
    </main>
  )
}
