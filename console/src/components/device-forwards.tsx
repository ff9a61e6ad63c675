// Ports of a device on the reader's own machine: the commands that forward one, with the ports filled in, and
// the address to open while they run. The server itself opens nothing.
import { useState } from 'react'
import type { Device } from '@hawser/contract/devices'
import { api } from '../api.ts'
import { msg, rich, t } from '../language/language.ts'
import { useNamespaceQuery } from '../namespace-query.ts'
import { useSshCommands } from '../ssh-commands.ts'
import { Copyable } from './copy.tsx'

/** What is often wanted of a device → its port there, and one that is free here. */
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

/** Of a container, as connectors report it. */
export const containerPlatform = 'connector'

const portOf = (text: string): number | undefined => {
  const port = /^\d{1,5}$/.test(text.trim()) ? Number(text) : 0
  return port >= 1 && port <= 65_535 ? port : undefined
}

const schemeOf = (port: number): 'http' | 'https' | undefined => {
  if ([443, 8443, 9443].includes(port)) return 'https'
  return [80, 81, 1880, 3000, 5000, 8000, 8008, 8080, 8081, 8123, 8888, 9000, 9090].includes(port)
    ? 'http'
    : undefined
}

export function DeviceForwards({ device, user }: { device: Device; user: string }) {
  const [there, setThere] = useState('80')
  const [here, setHere] = useState('8080')
  const [host, setHost] = useState('localhost')
  const policy = useNamespaceQuery(['policy'], async () => (await api.policies.get()).body, false).data
  const lines = useSshCommands()
  if (device.info.platform === containerPlatform)
    return <p className="soft">{t('Ports are not forwarded into containers.')}</p>
  const [to, from] = [portOf(there), portOf(here)]
  const target = /^[\w.:[\]-]{1,253}$/.test(host.trim()) ? host.trim() : undefined
  const address = target?.includes(':') && !target.startsWith('[') ? `[${target}]` : target
  const scheme = to && schemeOf(to)
  const ready = to && from && address
  return (
    <>
      {policy?.forwards === 'forbid' && (
        <p className="note">
          {policy.forward_exceptions.length > 0
            ? t('The policy of the namespace forbids forwarded connections but to {destinations}.', {
                destinations: policy.forward_exceptions.join(', '),
              })
            : t('The policy of the namespace forbids forwarded connections.')}
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
            {usual.map(([name]) => (
              <option key={name} value={name}>
                {t(name)}
              </option>
            ))}
            <option value="">{t('Something else')}</option>
          </select>
        </label>
        <label className="inline">
          {t('Port on the device')}
          <input
            value={there}
            inputMode="numeric"
            aria-invalid={!to}
            onChange={(event) => setThere(event.currentTarget.value)}
          />
        </label>
        <label className="inline">
          {t('Port on your machine')}
          <input
            value={here}
            inputMode="numeric"
            aria-invalid={!from}
            onChange={(event) => setHere(event.currentTarget.value)}
          />
        </label>
        <label className="inline">
          {t('Host, as the device sees it')}
          <input
            value={host}
            autoCapitalize="none"
            autoComplete="off"
            spellCheck={false}
            aria-invalid={!target}
            onChange={(event) => setHost(event.currentTarget.value)}
          />
        </label>
      </div>
      {ready ? (
        <div className="connect two">
          <div>
            <p>{t('With the SSH client you already have')}</p>
            <Copyable
              text={lines.forward(device.namespace, device.name, user, `${from}:${address}:${to}`)}
              name={t('the ssh line that forwards it')}
            />
          </div>
          <div>
            <p>{t('With the command line of Hawser')}</p>
            <Copyable
              text={lines.hawserForward(
                device.name,
                user,
                `${from}:${address === 'localhost' ? '' : `${address}:`}${to}`,
              )}
              name={t('the hawser line that forwards it')}
            />
          </div>
          {scheme && (
            <p className="all">
              {rich('While it runs, open {link} here.', {
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
      ) : (
        <p className="wrong" role="status">
          {t('A port is a number from 1 to 65535, and a host a name or an address.')}
        </p>
      )}
    </>
  )
}
