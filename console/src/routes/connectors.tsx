// Connectors: container engines whose containers are devices of the namespace. Each shows its state in a
// word, and a failure in a sentence.
import { Link } from '@tanstack/react-router'
import { useState } from 'react'
import type { Connector } from '@hawser/contract/connectors'
import { api, useMay } from '../api.ts'
import { attempt, showSaved, useNamespaceQuery } from '../namespace-query.ts'
import { Button } from '../components/button.tsx'
import { ConfirmDialog, Dialog, FormDialog } from '../components/dialog.tsx'
import { Area, Field, Tick, type Values, verbatim } from '../components/form.tsx'
import { Icon } from '../components/icon.tsx'
import { Menu, type Item } from '../components/menu.tsx'
import { Page, Panel } from '../components/page.tsx'
import { QueryContent, Empty, QueryList } from '../components/query-content.tsx'
import { Pill, type Tone } from '../components/status.tsx'
import { rich, t } from '../language/language.ts'

const page_size = 20

export function ConnectorsPage() {
  const [page, setPage] = useState(1)
  const [adding, setAdding] = useState(false)
  const may = useMay('administrator')
  const all = useNamespaceQuery(['connectors', page], () =>
    api.connectors.list({ query: { page, per_page: page_size } }),
  )
  return (
    <Page
      title={t('Connectors')}
      lead={t(
        'Container engines (Docker, Podman) whose running containers are offered as devices: reached by a public key, as a user that the container has.',
      )}
      acts={may && <Button onPress={() => setAdding(true)}>{t('Add a connector')}</Button>}
      hides={{ from: 'administrator', what: t('add, switch and delete connectors') }}
    >
      <Panel>
        <QueryList
          query={all}
          label={t('Connectors')}
          empty={
            <Empty title={t('There is no connector yet.')}>
              <p className="soft">
                {rich(
                  'A connector needs an engine that this server can reach. Where it cannot, run {code} beside the engine.',
                  { code: <code>hawser-agent connector</code> },
                )}
              </p>
            </Empty>
          }
          page={{ number: page, size: page_size, turn: setPage }}
          row={(connector) => <ConnectorRow key={connector.uid} connector={connector} may={may} />}
        />
      </Panel>
      {adding && (
        <FormDialog
          title={t('Add a connector')}
          submit={t('Add the connector')}
          close={() => setAdding(false)}
          wide
          send={async (values) => {
            await api.connectors.create({ body: bodyFrom(values) })
            await showSaved(t('The connector is added.'))
          }}
        >
          <Fields />
        </FormDialog>
      )}
    </Page>
  )
}

/** Without new certificates the old ones stay. */
function bodyFrom({ address = '', port = '', enable, secure, accept, ca = '', cert = '', key = '' }: Values) {
  const tls = ca || cert || key ? { tls: { ca, cert, key } } : {}
  return {
    address,
    port: Number(port),
    enable: enable === 'on',
    secure: secure === 'on',
    accept: accept === 'on',
    ...tls,
  }
}

function Fields({ connector }: { connector?: Connector }) {
  const [secure, setSecure] = useState(connector?.secure ?? false)
  const pem = { rows: 3, spellCheck: false, required: secure && !connector?.tls } as const
  return (
    <>
      <Field
        label={t('Address of the engine')}
        name="address"
        required
        maxLength={253}
        defaultValue={connector?.address}
        {...verbatim}
        hint={t(
          'A name or an address that this server can reach; unix:///path for a socket of its own machine, if its administrator allows it.',
        )}
        wrong={t('An address is needed.')}
      />
      <Field
        label={t('Port')}
        name="port"
        type="number"
        required
        min={0}
        max={65_535}
        defaultValue={connector?.port ?? 2376}
        wrong={t('A port has a number up to 65535.')}
      />
      <div
        onChange={({ target }) =>
          target instanceof HTMLInputElement && target.name === 'secure' && setSecure(target.checked)
        }
      >
        <Tick label={t('With TLS')} name="secure" defaultChecked={secure} />
      </div>
      {secure && (
        <>
          {connector?.tls && (
            <p className="soft">{t('The certificates stay as they are while these are left empty.')}</p>
          )}
          <Area
            {...pem}
            label={t('Certificate of the authority (PEM)')}
            name="ca"
            wrong={t('All three are needed.')}
          />
          <Area {...pem} label={t('Our certificate (PEM)')} name="cert" wrong={t('All three are needed.')} />
          <Area
            {...pem}
            label={t('Our private key (PEM)')}
            name="key"
            hint={t('It is kept sealed and never shown again.')}
            wrong={t('All three are needed.')}
          />
        </>
      )}
      <Tick
        label={t('Accept its containers at once')}
        name="accept"
        defaultChecked={connector?.accept ?? false}
      />
      <Tick label={t('Active')} name="enable" defaultChecked={connector?.enable ?? true} />
    </>
  )
}

/** The state of a connector, in a word. */
function stateOf({ enable, status }: Connector): { tone: Tone; word: string } {
  if (!enable) return { tone: 'plain', word: t('off') }
  if (status.state === 'connected') return { tone: 'good', word: t('connected') }
  return status.state === 'failed'
    ? { tone: 'bad', word: t('failed') }
    : { tone: 'wait', word: t('connecting') }
}

const whereOf = ({ address, port }: Connector): string =>
  address.startsWith('unix:') ? address : `${address}:${port}`

function ConnectorRow({ connector, may }: { connector: Connector; may: boolean }) {
  const [open, setOpen] = useState<'edit' | 'delete' | 'info'>()
  const close = () => setOpen(undefined)
  const params = { uid: connector.uid }
  const where = whereOf(connector)
  const { tone, word } = stateOf(connector)
  const items: Item[] = [
    { id: 'info', text: t('What the engine says …'), act: () => setOpen('info') },
    ...(may
      ? [
          { id: 'edit', text: t('Edit …'), act: () => setOpen('edit') },
          {
            id: 'switch',
            text: connector.enable ? t('Switch off') : t('Switch on'),
            act: () =>
              void attempt(
                () => api.connectors.update({ params, body: { enable: !connector.enable } }),
                t(connector.enable ? '{name} is switched off.' : '{name} is switched on.', { name: where }),
              ),
          },
          { id: 'delete', text: t('Delete …'), danger: true, act: () => setOpen('delete') },
        ]
      : []),
  ]
  return (
    <li className="row">
      <div className="about">
        <p className="name">
          <strong>{where}</strong> <Pill tone={tone}>{word}</Pill>
        </p>
        {connector.enable && connector.status.message !== '' && (
          <p className={tone === 'bad' ? 'wrong' : 'soft'}>{connector.status.message}</p>
        )}
        <p className="facts">
          {connector.secure ? t('with TLS') : t('without TLS')}
          {' · '}
          {connector.accept ? t('containers are accepted at once') : t('containers wait to be accepted')}
          {' · '}
          <Link
            to="/devices"
            search={{ status: connector.accept ? 'accepted' : 'pending', find: connector.address }}
          >
            {connector.accept ? t('Its devices') : t('Those that wait')}
            <span className="unseen"> {t('of {name}', { name: where })}</span>
          </Link>
        </p>
      </div>
      <div className="acts">
        <Menu label={t('More for {name}', { name: where })} items={items}>
          <Icon name="more" />
        </Menu>
      </div>
      {open === 'edit' && (
        <FormDialog
          title={t('Edit {name}', { name: where })}
          submit={t('Save')}
          close={close}
          wide
          send={async (values) => {
            await api.connectors.update({ params, body: bodyFrom(values) })
            await showSaved(t('The connector is changed.'))
          }}
        >
          <Fields connector={connector} />
        </FormDialog>
      )}
      {open === 'info' && (
        <Dialog title={where} close={close} wide>
          <Info uid={connector.uid} />
          <div className="choices">
            <Button kind="quiet" onPress={close}>
              {t('Close')}
            </Button>
          </div>
        </Dialog>
      )}
      {open === 'delete' && (
        <ConfirmDialog
          close={close}
          question={{
            title: t('Delete {name}?', { name: where }),
            says: t('Its containers are no longer offered as devices.'),
            yes: t('Delete it'),
            act: async () => {
              await api.connectors.remove({ params })
              await showSaved(t('The connector is deleted.'))
            },
          }}
        />
      )}
    </li>
  )
}

function Info({ uid }: { uid: string }) {
  const info = useNamespaceQuery(
    ['connector-info', uid],
    async () => (await api.connectors.info({ params: { uid } })).body,
    false,
  )
  return (
    <QueryContent query={info}>
      {(said) => (
        <>
          <dl className="facts-list">
            <Said name={t('Engine')}>{textOf(said['Name'], said['ServerVersion'])}</Said>
            <Said name={t('System')}>{textOf(said['OperatingSystem'], said['Architecture'])}</Said>
            <Said name={t('Containers')}>
              {textOf(
                counted(said['ContainersRunning'], t('running')),
                counted(said['ContainersPaused'], t('paused')),
                counted(said['ContainersStopped'], t('stopped')),
              )}
            </Said>
            <Said name={t('Images')}>{textOf(said['Images'])}</Said>
          </dl>
          <pre className="said" tabIndex={0} aria-label={t('What the engine says of itself')}>
            {JSON.stringify(said, null, 2)}
          </pre>
        </>
      )}
    </QueryContent>
  )
}

function Said({ name, children }: { name: string; children: string }) {
  if (children === '') return null
  return (
    <div>
      <dt>{name}</dt>
      <dd>{children}</dd>
    </div>
  )
}

const counted = (count: unknown, word: string): string =>
  typeof count === 'number' ? `${count} ${word}` : ''

/** The engine's info is untrusted JSON. */
const textOf = (...parts: unknown[]): string =>
  parts
    .filter((part) => typeof part === 'string' || typeof part === 'number')
    .filter((part) => part !== '')
    .join(', ')
