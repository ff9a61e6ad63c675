// The first day: what a new namespace still lacks, in the order in which people do it. It leaves when all is
// done, or when somebody has seen enough of it.
import { Link } from '@tanstack/react-router'
import { useState } from 'react'
import { api, useMay, useMe } from '../api.ts'
import { useNamespaceQuery } from '../namespace-query.ts'
import { Button } from './button.tsx'
import { Icon } from './icon.tsx'
import { Panel } from './page.tsx'
import { t } from '../language/language.ts'

const key = (tenant: string): string => `hawser.steps.${tenant}`

export function FirstSteps({ devices, members }: { devices: number; members: number }) {
  const me = useMe()
  const may = useMay('administrator')
  const [hidden, setHidden] = useState(() => localStorage.getItem(key(me.tenant)) !== null)
  const sessions = useNamespaceQuery(
    ['first steps', 'sessions'],
    async () => (await api.sessions.list({ query: { per_page: 1 } })).total,
    false,
  ).data
  const keys = useNamespaceQuery(
    ['first steps', 'keys'],
    async () => (await api.publicKeys.list({ query: { per_page: 1 } })).total,
    false,
  ).data
  if (!may || hidden || sessions === undefined || keys === undefined) return null
  const steps = [
    { done: devices > 0, text: t('Add and accept a device'), to: '/add-device' },
    { done: sessions > 0, text: t('Connect to it with ssh or in the browser'), to: '/devices' },
    { done: keys > 0, text: t('Add a public key to log in without a password'), to: '/public-keys' },
    { done: members > 1, text: t('Add a colleague'), to: '/settings' },
    { done: me.mfa, text: t('Turn on your second factor'), to: '/profile' },
  ]
  const left = steps.filter(({ done }) => !done).length
  if (left === 0) return null
  return (
    <Panel
      title={t('First steps')}
      acts={
        <Button
          kind="bare"
          small
          onPress={() => {
            localStorage.setItem(key(me.tenant), 'hidden')
            setHidden(true)
          }}
        >
          {t('Hide')}
        </Button>
      }
    >
      <ul className="steps">
        {steps.map(({ done, text, to }) => (
          <li key={to} data-done={done}>
            <span className="step-mark" aria-hidden="true">
              {done && <Icon name="check" />}
            </span>
            {done ? (
              <span>
                {text}
                <span className="unseen">, {t('done')}</span>
              </span>
            ) : (
              <Link to={to}>{text}</Link>
            )}
          </li>
        ))}
      </ul>
    </Panel>
  )
}
