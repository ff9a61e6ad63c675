// Ports of a device on the reader's own machine: the commands that forward one, with the ports filled in, and
// the address to open while they run. The server itself opens nothing.
import { useState } from 'react'
import type { Device } from '@hawser/contract/devices'
import { api } from '../api.ts'
import { msg, rich, t } from '../language/language.ts'
import { useBodyQuery } from '../namespace-query.ts'
import { useSshCommands } from '../ssh-commands.ts'
import { Copyable } from './copy.tsx'
import { verbatim, Options } from './form.tsx'

/** Service → its usual port on the device, and a free one on this machine. */
const usual = [
  [msg('Web page'), 80, 8080],
  [msg('Web page, HTTPS'), 443, 8443],
  ['VNC', 5900, 5900],
  ['PostgreSQL', 5432, 15_432],
  ['MQTT', 1883, 11_883],
  ['Node-RED', 1880, 1880],
  ['Home Assistant', 8123, 8123],
  ['Grafana', 3000, 3000],
] as const

export const containerPlatform = 'connector'

const portOf = (text: string): number | undefined => {
  const port = /^\d{1,5}$/.test(text.trim()) ? Number(text) : 0
  return port >= 1 && port <= 65_535 ? port : undefined
}

/** Guessed from the port. */
export const schemeOf = (port: number): 'http' | 'https' | undefined => {
  if ([443, 8443, 9443].includes(port)) return 'https'
  return [80, 81, 1880, 3000, 5000, 8000, 8008, 8080, 8081, 8123, 8888, 9000, 9090].includes(port)
    ? 'http'
    : undefined
}

const port = (label: string, value: string, wrong: boolean, set: (value: string) => void) => (
  <label className="inline">
    {label}
    <input
      value={value}
      inputMode="numeric"
      aria-invalid={wrong}
      onChange={(event) => set(event.currentTarget.value)}
    />
  </label>
)

export function DeviceForwards({ device, user }: { device: Device; user: string }) {
  const [there, setThere] = useState('80')
  const [here, setHere] = useState('8080')
  const [host, setHost] = useState('localhost')
  const policy = useBodyQuery(['policy'], () => api.policies.get(), false).data
  if (device.info.platform === containerPlatform)
    return <p className="soft">{t('Ports are not forwarded into containers.')}</p>
  const [to, from] = [portOf(there), portOf(here)]
  const target = /^[\w.:[\]-]{1,253}$/.test(host.trim()) ? host.trim() : undefined
  const address = target?.includes(':') && !target.startsWith('[') ? `[${target}]` : target
  const ready = to && from && address
  return (
    <>
      {policy?.forwards === 'forbid' && (
        <p className="note">
          {policy.forward_exceptions.length > 0
            ? t('The namespace’s policy only allows forwarding to {destinations}.', {
                destinations: policy.forward_exceptions.join(', '),
              })
            : t('The namespace’s policy does not allow forwarding.')}
        </p>
      )}
      <div className="forward">
        <label className="inline">
          {t('What')}
          <select
            aria-label={t('What')}
            value={usual.find(([, port]) => String(port) === there)?.[0] ?? ''}
            onChange={({ currentTarget: { value } }) => {
              const found = usual.find(([name]) => name === value)
              if (!found) return
              setThere(String(found[1]))
              setHere(String(found[2]))
            }}
          >
            <Options options={usual.map(([name]) => [name, t(name)])} />
            <option value="">{t('Other')}</option>
          </select>
        </label>
        {port(t('Port on the device'), there, !to, setThere)}
        {port(t('Port on your machine'), here, !from, setHere)}
        <label className="inline">
          {t('Host, as seen from the device')}
          <input
            value={host}
            {...verbatim}
            aria-invalid={!target}
            onChange={(event) => setHost(event.currentTarget.value)}
          />
        </label>
      </div>
      {ready ? (
        <ForwardLines device={device} user={user} from={from} address={address} to={to} />
      ) : (
        <p className="wrong" role="status">
          {t('Enter a port from 1 to 65535 and a host name or address.')}
        </p>
      )}
    </>
  )
}

interface ForwardLinesProps {
  device: Device
  user: string
  from: number
  address: string
  to: number
}

function ForwardLines({ device, user, from, address, to }: ForwardLinesProps) {
  const lines = useSshCommands()
  const scheme = schemeOf(to)
  return (
    <div className="connect two">
      <div>
        <p>{t('With your SSH client')}</p>
        <Copyable
          text={lines.forward(device.namespace, device.name, user, `${from}:${address}:${to}`)}
          name={t('the ssh command that forwards it')}
        />
      </div>
      <div>
        <p>{t('With the Hawser command line')}</p>
        <Copyable
          text={lines.hawserForward(
            device.name,
            user,
            `${from}:${address === 'localhost' ? '' : `${address}:`}${to}`,
          )}
          name={t('the hawser command that forwards it')}
        />
      </div>
      {scheme && (
        <p className="all">
          {rich('While the command runs, open {link} on this machine.', {
            link: (
              <a key="link" href={`${scheme}://localhost:${from}/`} target="_blank" rel="noreferrer">
                <code>
                  {scheme}://localhost:{from}/
                </code>
              </a>
            ),
          })}
        </p>
      )}
    </div>
  )
}
