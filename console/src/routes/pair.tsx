// Pairing: the page that the link of an installer leads to. It shows what asks to be taken in, and takes it
// into the current namespace or refuses it. The code is asked for once, because wrong codes are counted.
import { useQuery } from '@tanstack/react-query'
import { Link } from '@tanstack/react-router'
import { useState } from 'react'
import type { Pairing } from '@hawser/contract/pairings'
import { api, useMay, useMe } from '../api.ts'
import { Button } from '../components/button.tsx'
import { Field, Form } from '../components/form.tsx'
import { Page, Panel } from '../components/page.tsx'
import { ErrorNotice, Loading } from '../components/query-content.tsx'
import { When } from '../components/status.tsx'
import { errorText } from '../error-text.ts'
import { clearLink, linkParams } from '../link-params.ts'
import { showSaved } from '../namespace-query.ts'
import { showToast } from '../components/toast.tsx'

export const codeField = {
  label: 'Code',
  name: 'code',
  required: true,
  code: true,
  autoComplete: 'off',
  autoCapitalize: 'characters',
  spellCheck: false,
  pattern: '\\s*[2-9A-HJKMNP-Za-hjkmnp-z]{4}[ \\-]?[2-9A-HJKMNP-Za-hjkmnp-z]{4}\\s*',
  wrong: 'A code has eight letters and digits, for example K7QX-2MPT.',
} as const

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
      <Page title="Take in a device">
        <Panel>
          <p>An operator of the namespace has to do this; switch to a namespace in which you are one.</p>
        </Panel>
      </Page>
    )
  return (
    <Page title="Take in a device">
      {taken && <Done taken={taken} />}
      {code === '' && (
        <Panel title={taken ? 'Another one' : 'Which device?'}>
          <Form
            compact
            submit="Show the device"
            send={async ({ code: typed = '' }) => {
              setTaken(undefined)
              setCode(typed)
            }}
          >
            <Field {...codeField} hint="The installer of the agent shows it." />
          </Form>
        </Panel>
      )}
      {code !== '' && asking.isError && (
        <Panel>
          <ErrorNotice error={asking.error} />
          <Button kind="quiet" onPress={leave}>
            Another code
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
            await showSaved(`${device.name} is taken in.`)
          }}
        />
      )}
    </Page>
  )
}

function Done({ taken }: { taken: Taken }) {
  return (
    <Panel title="It is in">
      <p>
        <Link to="/devices/$uid" params={{ uid: taken.uid }}>
          {taken.name}
        </Link>{' '}
        is an accepted device of {taken.namespace}; its installer goes on by itself.
      </p>
      {taken.replaced !== null && (
        <p>
          It replaced {taken.replaced}, which had the same MAC address, and has its name, tags and sessions.
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
      showToast('The device is refused.')
    } catch (error) {
      showToast(errorText(error))
    }
    leave()
  }
  return (
    <Panel title={`${asks.hostname} asks to be taken in`} tone="wanting">
      <p role="note">
        <strong>Is this your machine?</strong> Take it in only if you see the code {code} on it yourself. If
        somebody sent you the code or a link, refuse it.
      </p>
      <dl className="facts-list">
        <Fact name="System">
          {info.pretty_name || 'unknown'} {info.arch && `(${info.arch})`}
        </Fact>
        <Fact name="MAC address">
          <code>{asks.mac || 'none'}</code>
        </Fact>
        <Fact name="Asks from">
          <code>{asks.remote_addr}</code>
        </Fact>
        <Fact name="Key">
          <code>{asks.fingerprint}</code>
        </Fact>
        <Fact name="Asked">
          <When at={asks.created_at} />
        </Fact>
      </dl>
      <Form
        compact
        submit="Take it in"
        send={async ({ name = '' }) => {
          const { body, headers } = await api.pairings.confirm({
            body: { code, ...(name === '' ? {} : { name }) },
          })
          await done({ ...body, replaced: headers.get('x-replaced-device') })
        }}
        beside={
          <Button kind="quiet" onPress={() => void refuse()}>
            Refuse it
          </Button>
        }
      >
        <Field
          label="Name"
          name="name"
          autoComplete="off"
          autoCapitalize="none"
          spellCheck={false}
          pattern="[a-zA-Z0-9_\-]{0,64}"
          hint="Empty: its host name."
          wrong="Letters, digits, dashes and underscores, up to 64."
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
