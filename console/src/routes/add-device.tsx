// Adding a device: one command to run on it, with the id of the namespace, with a code, with an enrolment
// token, or without an agent. The page polls for devices that enrolled since it was opened, so that the
// person sees the new device arrive and can accept it at once.
import { Link, useNavigate } from '@tanstack/react-router'
import { useState } from 'react'
import { api, useMay, useMe } from '../api.ts'
import { useNamespaceQuery } from '../namespace-query.ts'
import { Copyable } from '../components/copy.tsx'
import { codeField } from './pair.tsx'
import { DeviceRow } from '../components/device-row.tsx'
import { WithoutAgent } from '../components/enrolment.tsx'
import { Field, Form } from '../components/form.tsx'
import { saveLink } from '../link-params.ts'
import { Page, Panel } from '../components/page.tsx'
import { useSshCommands } from '../ssh-commands.ts'
import { QueryContent } from '../components/query-content.tsx'
import { rich, t, tn } from '../language/language.ts'

export function AddDevicePage() {
  const { tenant } = useMe()
  const may = useMay('operator')
  const lines = useSshCommands()
  const [hostname, setHostname] = useState('')
  const fits = /^[a-zA-Z0-9_.-]{0,64}$/.test(hostname)
  const newest = useNamespaceQuery(['devices', 'arriving'], () =>
    api.devices.list({ query: { sort_by: 'created_at', order_by: 'desc', per_page: 10 } }),
  )
  const [known, setKnown] = useState<ReadonlySet<string>>()
  // Devices that were pending when the page was opened are no arrivals.
  if (!known && newest.data && newest.isFetchedAfterMount)
    setKnown(new Set(newest.data.body.map(({ uid }) => uid)))
  const arrived = (newest.data?.body ?? []).filter(({ uid }) => known && !known.has(uid))

  return (
    <Page title={t('Add a device')}>
      <Panel title={t('1. Run this on the device')}>
        <p className="soft">
          {t(
            'On a 64-bit Linux (x64 or arm64) with glibc 2.28 or newer, as root or with sudo. It fetches the agent from this server, starts it, and is done when the device has connected; the device connects out, so no port has to be opened. On other machines it says why not; they join in one of the ways below.',
          )}
        </p>
        {lines.loopback && (
          <p className="wrong">
            {t(
              'The lines on this page lead to {loopback}, which on any other machine is that machine itself. For other devices, open the console by an address at which they reach the server, or set HAWSER_URL on the server.',
              { loopback: lines.loopback },
            )}
          </p>
        )}
        <label className="inline">
          {t('Name of the device, if not its host name')}
          <input
            value={hostname}
            aria-invalid={!fits}
            autoCapitalize="none"
            autoComplete="off"
            spellCheck={false}
            onChange={(event) => setHostname(event.currentTarget.value)}
          />
        </label>
        {!fits && <p className="wrong">{t('Letters, digits, dots, dashes and underscores, up to 64.')}</p>}
        <Copyable text={lines.install(fits ? hostname : '')} name={t('the line that installs the agent')} />
        <p className="soft">{t('For agents that are installed another way, the id of this namespace:')}</p>
        <Copyable text={tenant} name={t('the id of the namespace')} />
      </Panel>
      <Panel title={t('2. Let it in')}>
        <QueryContent query={newest}>
          {() => (
            <div aria-live="polite" className="stack">
              {arrived.length === 0 ? (
                <p className="waiting">
                  <span className="pulse" aria-hidden="true" /> {t('Waiting for the device to connect …')}
                </p>
              ) : (
                <>
                  <p>{tn(arrived.length, 'It has connected.', '{count} devices have connected.')}</p>
                  <ul className="rows" aria-label={t('Devices that have connected')}>
                    {arrived.map((device) => (
                      <DeviceRow key={device.uid} device={device} may={may} />
                    ))}
                  </ul>
                </>
              )}
            </div>
          )}
        </QueryContent>
        {known && <AskedBefore arrived={arrived.map(({ uid }) => uid)} may={may} />}
        {!may && <p className="soft">{t('An operator of the namespace has to accept devices.')}</p>}
      </Panel>
      <WithCode />
      <Panel title={t('Or many at once')}>
        <p className="soft">
          {rich(
            'An enrolment token lets a number of devices join, named, tagged and accepted at once. Rules accept new devices of your own network. <link>To tokens and rules</link>',
            { link: (inside) => <Link to="/enrolment">{inside}</Link> },
          )}
        </p>
      </Panel>
      <WithoutAgent />
    </Page>
  )
}

/** Devices that wait since before the page was opened: one of them may be the one that is to be added. */
function AskedBefore({ arrived, may }: { arrived: readonly string[]; may: boolean }) {
  const waiting = useNamespaceQuery(['devices', 'asked before'], () =>
    api.devices.list({ query: { status: 'pending', sort_by: 'created_at', order_by: 'desc', per_page: 10 } }),
  )
  const { body = [], total = 0 } = waiting.data ?? {}
  const before = body.filter(({ uid }) => !arrived.includes(uid))
  if (before.length === 0) return null
  return (
    <>
      <h3>{t('Asked before you opened this page')}</h3>
      <ul className="rows" aria-label={t('Devices that asked before')}>
        {before.map((device) => (
          <DeviceRow key={device.uid} device={device} may={may} />
        ))}
      </ul>
      {total > body.length && (
        <p>
          <Link to="/devices" search={{ status: 'pending' }}>
            {t('All {total} that wait', { total })}
          </Link>
        </p>
      )}
    </>
  )
}

/** Pairing: the device shows a code, and needs no id. */
function WithCode() {
  const lines = useSshCommands()
  const navigate = useNavigate()
  return (
    <Panel title={t('Or with a code')}>
      <p className="soft">
        {t('Without any id, this line shows a code and a link. Follow the link, or type the code here.')}
      </p>
      <Copyable text={lines.pair()} name={t('the line that shows a code')} />
      <Form
        compact
        submit={t('Show the device')}
        label={t('Code of a device')}
        send={async ({ code = '' }) => {
          saveLink('/pair', { code })
          await navigate({ to: '/pair' })
        }}
      >
        <Field {...codeField()} />
      </Form>
    </Panel>
  )
}
