// The commands that connect to a device, install the agent or join without one, with the server's addresses.
import { publicApi, useMe } from './api.ts'
import { useBodyQuery } from './namespace-query.ts'

const isLoopback = (host: string): boolean =>
  host === '[::1]' || /^(localhost|127(\.\d+){3})$|\.localhost$/.test(host)

export function useSshCommands() {
  const { tenant } = useMe()
  const info = useBodyQuery(['info'], () => publicApi.system.info(), false).data
  const ssh = info?.endpoints.ssh ?? ''
  const colon = ssh.lastIndexOf(':')
  // An IPv6 address has brackets before a port; ssh takes it without.
  const host = ssh.slice(0, colon).replaceAll(/[[\]]/g, '')
  const port = ssh.slice(colon + 1)
  const server = `${location.protocol}//${info?.endpoints.api ?? location.host}`
  return {
    known: info !== undefined,
    /** The server's address in the lines if it is a loopback one, which other machines cannot use. */
    loopback: isLoopback(new URL(server).hostname) ? new URL(server).host : undefined,
    sshid: (namespace: string, device: string, user = 'root') => `${user}@${namespace}.${device}`,
    ssh: (namespace: string, device: string, user = 'root') =>
      `ssh ${port === '22' ? '' : `-p ${port} `}${user}@${namespace}.${device}@${host}`,
    forward: (namespace: string, device: string, user: string, ports: string) =>
      `ssh -N -L ${ports} ${port === '22' ? '' : `-p ${port} `}${user}@${namespace}.${device}@${host}`,
    hawserForward: (device: string, user: string, ports: string) =>
      `hawser forward ${user}@${device} ${ports}`,
    join: () =>
      `ssh -N -R 0:localhost:22 ${port === '22' ? '' : `-p ${port} `}-i <enrolment key> ${tenant}.<name>@${host}`,
    /** Runs ShellHub's agent, where it was unpacked. */
    shellhub: () =>
      `SHELLHUB_SERVER_ADDRESS=${server} SHELLHUB_TENANT_ID=${tenant} SHELLHUB_PRIVATE_KEY=/etc/shellhub.key ./shellhub-agent`,
    pair: () => `curl -fsSL '${server}/install.sh' | sh`,
    /** Joins with an enrolment token; not in the address, which proxies log. */
    enrol: (token: string) => `curl -fsSL '${server}/install.sh' | ENROLMENT_TOKEN=${token} sh`,
    install: (hostname = '') =>
      `curl -fsSL '${server}/install.sh?tenant_id=${tenant}${hostname && `&preferred_hostname=${hostname}`}' | sh`,
  }
}
