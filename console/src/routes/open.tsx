// The way of a browser into a service. The service sends it here with a `state`; the signed-in person gets an
// address to go to, which is good once. It works in any namespace of the person, and shows nothing of it.
import { useQuery } from '@tanstack/react-query'
import { useParams } from '@tanstack/react-router'
import { useState } from 'react'
import { ApiError } from '@hawser/contract/client'
import { addressPattern } from '@hawser/contract/services'
import { api, useMeLoading } from '../api.ts'
import { auth } from '../auth.ts'
import { AuthLayout, AuthLinks } from '../components/auth-layout.tsx'
import { Button } from '../components/button.tsx'
import { ErrorNotice } from '../components/query-content.tsx'
import { rich, t } from '../language/language.ts'
import { keepPlace } from '../link-params.ts'
import { useTitle } from '../title.ts'

const isAddress = new RegExp(addressPattern)
const isState = /^[\w-]{22,64}$/
const longestPath = 4096

export function OpenPage() {
  const { address } = useParams({ from: '/open/$address' })
  const { data: me } = useMeLoading()
  // As the browser has it: the router reads what looks like a number as one.
  const [query] = useState(() => new URLSearchParams(location.search))
  const state = query.get('state') ?? ''
  const path = query.get('path') ?? ''
  if (!isAddress.test(address) || !isState.test(state))
    return (
      <AuthLayout title={t('Service')} heading={t('This link is not complete')}>
        <p>{t('Open the service’s own address again. It leads here when you need to sign in.')}</p>
        <ToDevices />
      </AuthLayout>
    )
  const wanted = { address, state, path: path.length > longestPath ? '' : path }
  return <Opening {...wanted} user={me?.user ?? '…'} />
}

const ToDevices = () => (
  <a className="button main" href="/devices">
    {t('Go to devices')}
  </a>
)

interface OpeningProps {
  address: string
  state: string
  path: string
  user: string
}

function Opening({ address, state, path, user }: OpeningProps) {
  const opened = useQuery({
    queryKey: ['opening', address, state, path],
    queryFn: async () => {
      const body = { address, state, ...(path && { path }) }
      const { url } = (await api.services.open({ body })).body
      // The service never sees the fragment; the browser keeps it on the way.
      location.replace(url + location.hash)
      return url
    },
    // Each answer is good once, and the browser is already on its way.
    staleTime: Infinity,
    gcTime: 0,
    refetchOnWindowFocus: false,
  })
  useTitle(t('Opening …'))
  if (opened.error instanceof ApiError && opened.error.kind === 'notFound') return <Refused user={user} />
  if (opened.isError)
    return (
      <AuthLayout title={t('Service')} heading={t('The service could not be opened')}>
        <ErrorNotice error={opened.error} again={() => opened.refetch()} />
      </AuthLayout>
    )
  return (
    <main className="opening">
      <h1>{t('Opening …')}</h1>
    </main>
  )
}

function Refused({ user }: { user: string }) {
  return (
    <AuthLayout title={t('Service')} heading={t('The service could not be opened')}>
      <p>{t('There is no such service, or you may not open it.')}</p>
      <p>
        {rich('You are signed in as {name}.', {
          name: <strong key="name">{user}</strong>,
        })}
      </p>
      <ToDevices />
      <AuthLinks>
        <Button
          kind="quiet"
          onPress={() => {
            keepPlace(location.pathname + location.search + location.hash)
            auth.signOut(t('Sign in as a person who may open the service.'))
          }}
        >
          {t('Sign in as someone else')}
        </Button>
      </AuthLinks>
    </AuthLayout>
  )
}
