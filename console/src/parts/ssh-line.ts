// The lines that connect to a device and bring one aboard, as the server's own addresses say.
import { open, useMe } from '../api.ts'
import { useAsk } from './ask.ts'

export function useLines() {
  const { tenant } = useMe()
  const info = useAsk(['info'], async () => (await open.system.info()).body, false).data
  const ssh = info?.endpoints.ssh ?? ''
  const colon = ssh.lastIndexOf(':')
  // An IPv6 address has brackets beside a port, and for ssh none.
  const host = ssh.slice(0, colon).replaceAll(/[[\]]/g, '')
  const port = ssh.slice(colon + 1)
  return {
    known: info !== undefined,
    /** The name of a device for ssh, as the server takes it. */
    sshid: (namespace: string, device: string, user = 'root') => `${user}@${namespace}.${device}`,
    ssh: (namespace: string, device: string, user = 'root') =>
      `ssh ${port === '22' ? '' : `-p ${port} `}${user}@${namespace}.${device}@${host}`,
    /** What a device without an agent runs. */
    join: () =>
      `ssh -N -R 0:localhost:22 ${port === '22' ? '' : `-p ${port} `}-i <enrolment key> ${tenant}.<name>@${host}`,
    install: (hostname = '') =>
      `curl -fsSL '${location.protocol}//${info?.endpoints.api ?? location.host}/install.sh?tenant_id=${tenant}${hostname && `&preferred_hostname=${hostname}`}' | sh`,
  }
}
