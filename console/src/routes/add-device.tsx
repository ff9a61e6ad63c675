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
import { Field, Form, verbatim } from '../components/form.tsx'
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
            'Run it as root or with sudo on 64-bit Linux (x64 or arm64) with glibc 2.28 or newer. It downloads the agent from this server, starts it and finishes when the device has connected. The device connects out, so you do not need to open a port. On other machines the command explains why it cannot run; use one of the ways below instead.',
          )}
        </p>
        {lines.loopback && (
          <p className="wrong">
            {t(
              'The commands on this page use {loopback}, which only works on this machine. For other devices, open the console at an address where they can reach the server, or set HAWSER_URL on the server.',
              { loopback: lines.loopback },
            )}
          </p>
        )}
        <label className="inline">
          {t('Device name (default: its host name)')}
          <input
            value={hostname}
            aria-invalid={!fits}
            {...verbatim}
            onChange={(event) => setHostname(event.currentTarget.value)}
          />
        </label>
        {!fits && <p className="wrong">{t('Up to 64 letters, digits, dots, dashes and underscores.')}</p>}
        <Copyable
          text={lines.install(fits ? hostname : '')}
          name={t('the command that installs the agent')}
        />
        <p className="soft">{t('For agents installed in another way, this is the namespace ID:')}</p>
        <Copyable text={tenant} name={t('the namespace ID')} />
      </Panel>
      <Panel title={t('2. Accept the device')}>
        <QueryContent query={newest}>
          {() => (
            <div aria-live="polite" className="stack">
              {arrived.length === 0 ? (
                <p className="waiting">
                  <span className="pulse" aria-hidden="true" /> {t('Waiting for the device to connect …')}
                </p>
              ) : (
                <>
                  <p>{tn(arrived.length, 'The device has connected.', '{count} devices have connected.')}</p>
                  <ul className="rows" aria-label={t('Connected devices')}>
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
        {!may && <p className="soft">{t('Only operators of the namespace can accept devices.')}</p>}
      </Panel>
      <WithCode />
      <Panel title={t('Or add many at once')}>
        <p className="soft">
          {rich(
            'An enrolment token lets several devices join, already named, tagged and accepted. Accept rules accept new devices from your own network. <link>Manage tokens and rules</link>',
            { link: (inside) => <Link to="/enrolment">{inside}</Link> },
          )}
        </p>
      </Panel>
      <WithoutAgent />
    </Page>
  )
}

/** Devices from before the page was opened: one of them may be the one to add. */
function AskedBefore({ arrived, may }: { arrived: readonly string[]; may: boolean }) {
  const waiting = useNamespaceQuery(['devices', 'asked before'], () =>
    api.devices.list({ query: { status: 'pending', sort_by: 'created_at', order_by: 'desc', per_page: 10 } }),
  )
  const { body = [], total = 0 } = waiting.data ?? {}
  const before = body.filter(({ uid }) => !arrived.includes(uid))
  if (before.length === 0) return null
  return (
    <>
      <h3>{t('Requested before you opened this page')}</h3>
      <ul className="rows" aria-label={t('Earlier requests')}>
        {before.map((device) => (
          <DeviceRow key={device.uid} device={device} may={may} />
        ))}
      </ul>
      {total > body.length && (
        <p>
          <Link to="/devices" search={{ status: 'pending' }}>
            {t('All {total} waiting', { total })}
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
    <Panel title={t('Or pair with a code')}>
      <p className="soft">
        {t(
          'This command needs no namespace ID: it shows a code and a link. Follow the link, or enter the code here.',
        )}
      </p>
      <Copyable text={lines.pair()} name={t('the command that shows a code')} />
      <Form
        compact
        submit={t('Find the device')}
        label={t('Device code')}
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
