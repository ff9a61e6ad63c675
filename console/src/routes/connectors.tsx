// Connectors: container engines whose containers are devices of the namespace. Each shows its state in a
// word, and a failure in a sentence.
import { Link } from '@tanstack/react-router'
import { useState } from 'react'
import type { Connector } from '@hawser/contract/connectors'
import { api } from '../api.ts'
import { useBodyQuery } from '../namespace-query.ts'
import { QuietButton } from '../components/button.tsx'
import { Dialog, FormDialog } from '../components/dialog.tsx'
import { Area, Field, Tick, type Values, verbatim } from '../components/form.tsx'
import { ManagedPage, managing } from '../components/managed-list.tsx'
import { MoreMenu, type Item } from '../components/menu.tsx'
import { QueryContent } from '../components/query-content.tsx'
import { Fact, Row } from '../components/row.tsx'
import { Pill, type Tone } from '../components/status.tsx'
import { rich, t } from '../language/language.ts'

export const ConnectorsPage = () => (
  <ManagedPage
    id="connectors"
    list={(query) => api.connectors.list({ query })}
    label={t('Connectors')}
    lead={t(
      'Container engines (Docker, Podman) whose running containers appear as devices. Log in to a container with a public key, as a user that exists in it.',
    )}
    hides={t('add, switch and delete connectors')}
    empty={t('No connectors yet.')}
    hint={
      <p className="soft">
        {rich(
          'A connector needs an engine that this server can reach. If the server cannot reach it, run {code} next to the engine.',
          { code: <code>hawser-agent connector</code> },
        )}
      </p>
    }
    row={(connector, may) => <ConnectorRow key={connector.uid} connector={connector} may={may} />}
    add={{
      text: t('Add a connector'),
      dialog: (close) => (
        <FormDialog
          title={t('Add a connector')}
          submit={t('Add the connector')}
          close={close}
          wide
          send={(values) => api.connectors.create({ body: bodyFrom(values) })}
          done={t('The connector was added.')}
        >
          <Fields />
        </FormDialog>
      ),
    }}
  />
)

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
  const pem = {
    rows: 3,
    spellCheck: false,
    required: secure && !connector?.tls,
    wrong: t('Fill in all three fields.'),
  }
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
          'A host name or address that this server can reach, or unix:///path for a socket on the server’s own machine, if its administrator allows it.',
        )}
        wrong={t('Enter an address.')}
      />
      <Field
        label={t('Port')}
        name="port"
        type="number"
        required
        min={0}
        max={65_535}
        defaultValue={connector?.port ?? 2376}
        wrong={t('A port is a number up to 65535.')}
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
            <p className="soft">{t('Leave these empty to keep the current certificates.')}</p>
          )}
          <Area {...pem} label={t('Certificate of the authority (PEM)')} name="ca" />
          <Area {...pem} label={t('Client certificate (PEM)')} name="cert" />
          <Area
            {...pem}
            label={t('Client private key (PEM)')}
            name="key"
            hint={t('It is stored encrypted and never shown again.')}
          />
        </>
      )}
      <Tick
        label={t('Accept its containers automatically')}
        name="accept"
        defaultChecked={connector?.accept ?? false}
      />
      <Tick label={t('Active')} name="enable" defaultChecked={connector?.enable ?? true} />
    </>
  )
}

/** In a word. */
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
  const params = { uid: connector.uid }
  const where = whereOf(connector)
  const { tone, word } = stateOf(connector)
  const info = (close: () => void) => (
    <Dialog title={where} close={close} wide>
      <Info uid={connector.uid} />
      <div className="choices">
        <QuietButton onPress={close}>{t('Close')}</QuietButton>
      </div>
    </Dialog>
  )
  const managed = managing({
    active: connector.enable,
    switchTo: (enable) => api.connectors.update({ params, body: { enable } }),
    switched: t(connector.enable ? '{name} was disabled.' : '{name} was enabled.', { name: where }),
    edit: (close) => (
      <FormDialog
        title={t('Edit {name}', { name: where })}
        submit={t('Save')}
        close={close}
        wide
        send={(values) => api.connectors.update({ params, body: bodyFrom(values) })}
        done={t('The connector was changed.')}
      >
        <Fields connector={connector} />
      </FormDialog>
    ),
    remove: {
      title: t('Delete {name}?', { name: where }),
      says: t('Its containers no longer appear as devices.'),
      act: () => api.connectors.remove({ params }),
      done: t('The connector was deleted.'),
    },
  })
  const items: Item[] = [{ id: 'info', text: t('Engine details …'), dialog: info }, ...(may ? managed : [])]
  return (
    <Row
      name={
        <>
          <strong>{where}</strong> <Pill tone={tone}>{word}</Pill>
        </>
      }
      facts={
        <>
          {connector.secure ? t('with TLS') : t('without TLS')}
          {' · '}
          {connector.accept ? t('containers are accepted automatically') : t('containers wait for approval')}
          {' · '}
          <Link
            to="/devices"
            search={{ status: connector.accept ? 'accepted' : 'pending', find: connector.address }}
          >
            {connector.accept ? t('Containers') : t('Waiting containers')}
            <span className="unseen"> {t('of {name}', { name: where })}</span>
          </Link>
        </>
      }
      acts={<MoreMenu name={where} items={items} />}
    >
      {connector.enable && connector.status.message !== '' && (
        <p className={tone === 'bad' ? 'wrong' : 'soft'}>{connector.status.message}</p>
      )}
    </Row>
  )
}

function Info({ uid }: { uid: string }) {
  const info = useBodyQuery(['connector-info', uid], () => api.connectors.info({ params: { uid } }), false)
  return (
    <QueryContent query={info}>
      {(said) => (
        <>
          <dl className="facts-list">
            <Fact name={t('Engine')}>{textOf(said['Name'], said['ServerVersion'])}</Fact>
            <Fact name={t('System')}>{textOf(said['OperatingSystem'], said['Architecture'])}</Fact>
            <Fact name={t('Containers')}>
              {textOf(
                counted(said['ContainersRunning'], t('running')),
                counted(said['ContainersPaused'], t('paused')),
                counted(said['ContainersStopped'], t('stopped')),
              )}
            </Fact>
            <Fact name={t('Images')}>{textOf(said['Images'])}</Fact>
          </dl>
          <pre className="said" tabIndex={0} aria-label={t('Engine details')}>
            {JSON.stringify(said, null, 2)}
          </pre>
        </>
      )}
    </QueryContent>
  )
}

const counted = (count: unknown, word: string): string =>
  typeof count === 'number' ? `${count} ${word}` : ''

/** The engine's info is untrusted. */
const textOf = (...parts: unknown[]): string =>
  parts
    .filter((part) => typeof part === 'string' || typeof part === 'number')
    .filter((part) => part !== '')
    .join(', ')
