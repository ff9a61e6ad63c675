// Pairing: the page that the link of an installer leads to. It shows what asks to be taken in, and takes it
// into the current namespace or refuses it. The code is asked for once, because wrong codes are counted.
import { useQuery } from '@tanstack/react-query'
import { Link } from '@tanstack/react-router'
import { useState } from 'react'
import { defined } from '@hawser/contract/defined'
import type { Pairing } from '@hawser/contract/pairings'
import { api, useMay, useMe } from '../api.ts'
import { QuietButton } from '../components/button.tsx'
import { Field, Form, verbatim } from '../components/form.tsx'
import { Page, Panel } from '../components/page.tsx'
import { Fact } from '../components/row.tsx'
import { ErrorNotice, Loading } from '../components/query-content.tsx'
import { When } from '../components/status.tsx'
import { clearLink, linkParams } from '../link-params.ts'
import { attempt, showSaved } from '../namespace-query.ts'
import { isolated, rich, t } from '../language/language.ts'

export const codeField = () =>
  ({
    label: t('Code'),
    name: 'code',
    required: true,
    code: true,
    autoComplete: 'off',
    autoCapitalize: 'characters',
    spellCheck: false,
    pattern: '\\s*[2-9A-HJKMNP-Za-hjkmnp-z]{4}[ \\-]?[2-9A-HJKMNP-Za-hjkmnp-z]{4}\\s*',
    wrong: t('A code has eight letters and digits, for example K7QX-2MPT.'),
  }) as const

interface Taken {
  readonly uid: string
  readonly name: string
  readonly namespace: string
  /** The replaced device; null: none. */
  readonly replaced: string | null
}

export function PairPage() {
  const { tenant } = useMe()
  const may = useMay('operator')
  const [code, setCode] = useState(linkParams('/pair')['code'] ?? '')
  const [taken, setTaken] = useState<Taken>()
  const asking = useQuery({
    queryKey: ['pairing', tenant, code],
    queryFn: async () => (await api.pairings.get({ query: { code } })).body,
    enabled: may && code !== '',
    staleTime: Number.POSITIVE_INFINITY,
    refetchOnWindowFocus: false,
    refetchOnReconnect: false,
  })
  const leave = () => {
    clearLink('/pair')
    setCode('')
  }
  if (!may)
    return (
      <Page title={t('Pair a device')}>
        <Panel>
          <p>
            {t(
              'Only operators of the namespace can do this. Switch to a namespace where you are an operator.',
            )}
          </p>
        </Panel>
      </Page>
    )
  return (
    <Page title={t('Pair a device')}>
      {taken && <Done taken={taken} />}
      {code === '' && (
        <Panel title={taken ? t('Pair another device') : t('Enter the device’s code')}>
          <Form
            compact
            submit={t('Find the device')}
            send={async ({ code: typed = '' }) => {
              setTaken(undefined)
              setCode(typed)
            }}
          >
            <Field {...codeField()} hint={t('The agent’s installer shows it.')} />
          </Form>
        </Panel>
      )}
      {code !== '' && asking.isError && (
        <Panel>
          <ErrorNotice error={asking.error} />
          <QuietButton onPress={leave}>{t('Use another code')}</QuietButton>
        </Panel>
      )}
      {code !== '' && asking.isLoading && <Loading />}
      {code !== '' && asking.data && (
        <Asking
          code={code}
          asks={asking.data}
          leave={leave}
          done={async (device) => {
            leave()
            setTaken(device)
            await showSaved(t('{name} joined the namespace.', { name: device.name }))
          }}
        />
      )}
    </Page>
  )
}

function Done({ taken }: { taken: Taken }) {
  return (
    <Panel title={t('Device paired')}>
      <p>
        {rich('{link} is now an accepted device in {namespace}. Its installer continues on its own.', {
          link: (
            <Link to="/devices/$uid" params={{ uid: taken.uid }}>
              {taken.name}
            </Link>
          ),
          namespace: taken.namespace,
        })}
      </p>
      {taken.replaced !== null && (
        <p>
          {t(
            'It replaced {replaced}, which had the same MAC address, and took over its name, tags and sessions.',
            {
              replaced: taken.replaced,
            },
          )}
        </p>
      )}
    </Panel>
  )
}

interface AskingProps {
  readonly code: string
  readonly asks: Pairing
  readonly leave: () => void
  readonly done: (device: Taken) => Promise<void>
}

function Asking({ code, asks, leave, done }: AskingProps) {
  const { info } = asks
  const refuse = async () => {
    await attempt(() => api.pairings.refuse({ body: { code } }), t('The device was rejected.'))
    leave()
  }
  return (
    <Panel title={t('{hostname} wants to join', { hostname: asks.hostname })} tone="wanting">
      <p role="note">
        {rich(
          '<strong>Is this your machine?</strong> Pair it only if you see the code {code} on the machine itself. If someone sent you the code or a link, reject the request.',
          { strong: (inside) => <strong>{inside}</strong>, code },
        )}
      </p>
      <dl className="facts-list">
        <Fact name={t('System')}>
          {isolated(info.pretty_name) || t('unknown')} {info.arch && `(${isolated(info.arch)})`}
        </Fact>
        <Fact name={t('MAC address')}>
          <code>{isolated(asks.mac) || t('unknown')}</code>
        </Fact>
        <Fact name={t('Request from')}>
          <code>{asks.remote_addr}</code>
        </Fact>
        <Fact name={t('Key')}>
          <code>{asks.fingerprint}</code>
        </Fact>
        <Fact name={t('Requested')}>
          <When at={asks.created_at} />
        </Fact>
      </dl>
      <Form
        compact
        submit={t('Pair it')}
        send={async ({ name = '' }) => {
          const { body, headers } = await api.pairings.confirm({
            body: defined({ code, name: name || undefined }),
          })
          await done({ ...body, replaced: headers.get('x-replaced-device') })
        }}
        extra={<QuietButton onPress={refuse}>{t('Reject')}</QuietButton>}
      >
        <Field
          label={t('Name')}
          name="name"
          {...verbatim}
          pattern="[a-zA-Z0-9_\-]{0,64}"
          hint={t('Leave empty to use its host name.')}
          wrong={t('Up to 64 letters, digits, dashes and underscores.')}
        />
      </Form>
    </Panel>
  )
}
