// Where one is signed in, on the page of the profile: each browser and program, and how to end it.
import { useQuery } from '@tanstack/react-query'
import type { SignIn } from '@hawser/contract/sign-ins'
import { api, queryClient, refetch_ms } from '../api.ts'
import { auth } from '../auth.ts'
import { errorText } from '../error-text.ts'
import { inFull } from '../language/format.ts'
import { t, tn } from '../language/language.ts'
import { said } from '../language/said.ts'
import { Button } from './button.tsx'
import { ConfirmButton } from './dialog-button.tsx'
import { Panel } from './page.tsx'
import { QueryContent } from './query-content.tsx'
import { Row } from './row.tsx'
import { showToast } from './toast.tsx'

const key = ['sign-ins']

export function SignInsPanel() {
  const query = useQuery({
    queryKey: key,
    queryFn: async () => (await api.signIns.list()).body,
    refetchInterval: refetch_ms,
  })
  const others = (query.data ?? []).filter(({ current }) => !current).length
  return (
    <Panel
      title={t('Where you are signed in')}
      acts={
        others > 0 && (
          <ConfirmButton
            small
            kind="danger"
            question={{
              title: t('End all other sign-ins?'),
              says: t(
                'Those browsers and programs are signed out immediately, including open browser terminals.',
              ),
              yes: t('End them'),
              act: async () => {
                const { body } = await api.signIns.endOthers()
                await queryClient.invalidateQueries({ queryKey: key })
                showToast(tn(body.ended, 'One sign-in has ended.', '{count} sign-ins have ended.'))
              },
            }}
          >
            {t('End all others')}
          </ConfirmButton>
        )
      }
    >
      <p className="soft">
        {t(
          'End any sign-in you do not recognize, then choose a new password. API keys are not sign-ins and stay valid.',
        )}
      </p>
      <QueryContent query={query}>
        {(signIns) => (
          <ul className="rows" aria-label={t('Where you are signed in')}>
            {signIns.map((signIn) => (
              <SignInRow key={signIn.id} signIn={signIn} />
            ))}
          </ul>
        )}
      </QueryContent>
    </Panel>
  )
}

function SignInRow({ signIn }: { signIn: SignIn }) {
  const { id, agent, source, created_at, used_from, used_at, current } = signIn
  const client = said(signIn.client, signIn.client_parts)
  const moments = {
    moment: inFull(created_at),
    address: source,
    used: inFull(used_at),
    last: used_from,
  }
  async function end(): Promise<void> {
    try {
      await api.signIns.end({ params: { id } })
    } catch (error) {
      showToast(errorText(error))
      return
    }
    if (current) auth.signOut(t('You are signed out.'))
    else {
      await queryClient.invalidateQueries({ queryKey: key })
      showToast(t('The sign-in of {client} has ended.', { client }))
    }
  }
  return (
    <Row
      name={
        <span title={agent}>
          <strong>{client}</strong> {current && <span className="soft">{t('(this one)')}</span>}
        </span>
      }
      facts={
        used_from === source
          ? t('since {moment} from {address}; last used {used}', moments)
          : t('since {moment} from {address}; last used {used} from {last}', moments)
      }
      acts={
        <Button
          kind="quiet"
          small
          aria-label={
            current
              ? t('Sign out here')
              : t('End the sign-in of {client} from {address}', { client, address: source })
          }
          onPress={end}
        >
          {current ? t('Sign out') : t('End')}
        </Button>
      }
    />
  )
}
