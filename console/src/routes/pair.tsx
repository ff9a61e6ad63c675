// Pairing: the page that the link of an installer leads to. It shows what asks to be taken in, and takes it
// into the current namespace or refuses it. The code is asked for once, because wrong codes are counted.
import { useQuery } from '@tanstack/react-query'
import { Link } from '@tanstack/react-router'
import { useState } from 'react'
import type { Pairing } from '@hawser/contract/pairings'
import { api, useMay, useMe } from '../api.ts'
import { Button } from '../components/button.tsx'
import { Field, Form, verbatim } from '../components/form.tsx'
import { Page, Panel } from '../components/page.tsx'
import { ErrorNotice, Loading } from '../components/query-content.tsx'
import { When } from '../components/status.tsx'
import { errorText } from '../error-text.ts'
import { clearLink, linkParams } from '../link-params.ts'
import { showSaved } from '../namespace-query.ts'
import { showToast } from '../components/toast.tsx'
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
  /** The device that this one replaced; null: none. */
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
      <Page title={t('Take in a device')}>
        <Panel>
          <p>
            {t('An operator of the namespace has to do this; switch to a namespace in which you are one.')}
          </p>
        </Panel>
      </Page>
    )
  return (
    <Page title={t('Take in a device')}>
      {taken && <Done taken={taken} />}
      {code === '' && (
        <Panel title={taken ? t('Another one') : t('Which device?')}>
          <Form
            compact
            submit={t('Show the device')}
            send={async ({ code: typed = '' }) => {
              setTaken(undefined)
              setCode(typed)
            }}
          >
            <Field {...codeField()} hint={t('The installer of the agent shows it.')} />
          </Form>
        </Panel>
      )}
      {code !== '' && asking.isError && (
        <Panel>
          <ErrorNotice error={asking.error} />
          <Button kind="quiet" onPress={leave}>
            {t('Another code')}
          </Button>
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
            await showSaved(t('{name} is taken in.', { name: device.name }))
          }}
        />
      )}
    </Page>
  )
}

function Done({ taken }: { taken: Taken }) {
  return (
    <Panel title={t('It is in')}>
      <p>
        {rich('{link} is an accepted device of {namespace}; its installer goes on by itself.', {
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
          {t('It replaced {replaced}, which had the same MAC address, and has its name, tags and sessions.', {
            replaced: taken.replaced,
          })}
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
    try {
      await api.pairings.refuse({ body: { code } })
      showToast(t('The device is refused.'))
    } catch (error) {
      showToast(errorText(error))
    }
    leave()
  }
  return (
    <Panel title={t('{hostname} asks to be taken in', { hostname: asks.hostname })} tone="wanting">
      <p role="note">
        {rich(
          '<strong>Is this your machine?</strong> Take it in only if you see the code {code} on it yourself. If somebody sent you the code or a link, refuse it.',
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
        <Fact name={t('Asks from')}>
          <code>{asks.remote_addr}</code>
        </Fact>
        <Fact name={t('Key')}>
          <code>{asks.fingerprint}</code>
        </Fact>
        <Fact name={t('Asked')}>
          <When at={asks.created_at} />
        </Fact>
      </dl>
      <Form
        compact
        submit={t('Take it in')}
        send={async ({ name = '' }) => {
          const { body, headers } = await api.pairings.confirm({
            body: { code, ...(name === '' ? {} : { name }) },
          })
          await done({ ...body, replaced: headers.get('x-replaced-device') })
        }}
        beside={
          <Button kind="quiet" onPress={refuse}>
            {t('Refuse it')}
          </Button>
        }
      >
        <Field
          label={t('Name')}
          name="name"
          {...verbatim}
          pattern="[a-zA-Z0-9_\-]{0,64}"
          hint={t('Empty: its host name.')}
          wrong={t('Letters, digits, dashes and underscores, up to 64.')}
        />
      </Form>
    </Panel>
  )
}

function Fact({ name, children }: { name: string; children: React.ReactNode }) {
  return (
    <div>
      <dt>{name}</dt>
      <dd>{children}</dd>
    </div>
  )
}
