// A private certificate authority for tests, made by OpenSSL in a folder, and certificates that it signs for
// names and addresses of this machine.
import { run, type Folder } from '../../ssh/test/programs.ts'

export interface Authority {
  readonly file: string
  /** Writes `<name>.pem` and `<name>.key` into the folder and returns their paths. */
  issue(name: string, ...names: string[]): Promise<{ readonly chain: string; readonly key: string }>
}

const newKey = ['-newkey', 'ec', '-pkeyopt', 'ec_paramgen_curve:prime256v1', '-nodes']

export async function makeAuthority(where: Folder): Promise<Authority> {
  const file = where.file('authority.pem')
  const key = where.file('authority.key')
  await openssl(
    'req',
    '-x509',
    ...newKey,
    '-keyout',
    key,
    '-out',
    file,
    '-days',
    '2',
    '-subj',
    '/CN=authority',
  )
  return {
    file,
    async issue(name, ...names) {
      const [chain, ownKey, request] = ['pem', 'key', 'csr'].map((end) => where.file(`${name}.${end}`)) as [
        string,
        string,
        string,
      ]
      const extensions = where.write(
        `${name}.ext`,
        `subjectAltName=${names.join(',')}\nextendedKeyUsage=serverAuth\n`,
      )
      await openssl('req', ...newKey, '-keyout', ownKey, '-out', request, '-subj', `/CN=${name}`)
      const signed = ['-CA', file, '-CAkey', key, '-CAcreateserial', '-days', '2', '-extfile', extensions]
      await openssl('x509', '-req', '-in', request, ...signed, '-out', chain)
      return { chain, key: ownKey }
    },
  }
}

export async function openssl(...words: string[]): Promise<string> {
  const { status, stdout, stderr } = await run('openssl', words)
  if (status !== 0) throw new Error(stderr)
  return stdout.toString()
}
