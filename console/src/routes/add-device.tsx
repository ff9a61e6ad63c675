// Adding a device: one command to run on it, with the id of the namespace, with a code, with an enrolment
// token, or without an agent. The page polls for devices that enrolled since it was opened, so that the person
// sees the new device arrive and can accept it at once.
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

  return (
    <Page title="Add a device">
      <Panel title="1. Run this on the device">
        <p className="soft">
          On a 64-bit Linux (x64 or arm64) with glibc 2.28 or newer, as root or with sudo. It fetches the
          agent from this server, starts it, and is done when the device has connected; the device connects
          out, so no port has to be opened. On other machines it says why not; they join in one of the ways
          below.
        </p>
        {lines.loopback && (
          <p className="wrong">
            The lines on this page lead to {lines.loopback}, which on any other machine is that machine
            itself. For other devices, open the console by an address at which they reach the server, or set
            HAWSER_URL on the server.
          </p>
        )}
        <label className="inline">
          Name of the device, if not its host name
          <input
            value={hostname}
            aria-invalid={!fits}
            autoCapitalize="none"
            autoComplete="off"
            spellCheck={false}
            onChange={(event) => setHostname(event.currentTarget.value)}
          />
        </label>
        {!fits && <p className="wrong">Letters, digits, dots, dashes and underscores, up to 64.</p>}
        <Copyable text={lines.install(fits ? hostname : '')} name="the line that installs the agent" />
        <p className="soft">For agents that are installed another way, the id of this namespace:</p>
        <Copyable text={tenant} name="the id of the namespace" />
      </Panel>
      <Panel title="2. Let it in">
        <QueryContent query={newest}>
          {({ body }) => {
            const arrived = body.filter(({ uid }) => known && !known.has(uid))
            return (
              <div aria-live="polite">
                {arrived.length === 0 ? (
                  <p className="waiting">
                    <span className="pulse" aria-hidden="true" /> Waiting for the device to connect …
                  </p>
                ) : (
                  <>
                    <p>
                      {arrived.length === 1
                        ? 'It has connected.'
                        : `${arrived.length} devices have connected.`}
                    </p>
                    <ul className="rows" aria-label="Devices that have connected">
                      {arrived.map((device) => (
                        <DeviceRow key={device.uid} device={device} may={may} />
                      ))}
                    </ul>
                    {!may && <p className="soft">An operator of the namespace has to accept it.</p>}
                  </>
                )}
              </div>
            )
          }}
        </QueryContent>
      </Panel>
      <WithCode />
      <Panel title="Or many at once">
        <p className="soft">
          An enrolment token lets a number of devices join, named, tagged and accepted at once. Rules accept
          new devices of your own network. <Link to="/enrolment">To tokens and rules</Link>
        </p>
      </Panel>
      <WithoutAgent />
    </Page>
  )
}

/** Pairing: the device shows a code, and needs no id. */
function WithCode() {
  const lines = useSshCommands()
  const navigate = useNavigate()
  return (
    <Panel title="Or with a code">
      <p className="soft">
        Without any id, this line shows a code and a link. Follow the link, or type the code here.
      </p>
      <Copyable text={lines.pair()} name="the line that shows a code" />
      <Form
        compact
        submit="Show the device"
        label="Code of a device"
        send={async ({ code = '' }) => {
          saveLink('/pair', { code })
          await navigate({ to: '/pair' })
        }}
      >
        <Field {...codeField} />
      </Form>
    </Panel>
  )
}
