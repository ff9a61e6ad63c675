// ssh-audit objects to nothing, in any category, about a server with our default lists and the types of host
// keys that a server makes for itself. It writes a line for every algorithm, `(kex) name
// -- [level] remark`, and further remarks below it.
import { expect, test, vi } from 'vitest'
import { serverAlgorithms } from '../src/algorithms.ts'
import { generatePrivateKey } from '../src/keys/private-key.ts'
import { run } from './programs.ts'
import { startServer, type TestServerOptions } from './server.ts'

vi.setConfig({ testTimeout: 60_000 })

interface Remark {
  readonly category: string
  readonly name: string
  readonly level: string
  readonly text: string
}

async function audit(options: TestServerOptions): Promise<Remark[]> {
  await using server = await startServer(options)
  const { stdout } = await run('ssh-audit', ['-n', '-b', '-2', '-4', '-p', String(server.port), '127.0.0.1'])
  const remarks: Remark[] = []
  let [category, name] = ['', '']
  for (const line of stdout.toString().split('\n')) {
    const [, inCategory, ofName, level, text] =
      /^(?:\((\w+)\) (\S+).*-- |\s*`- )\[(\w+)\] (.*)$/.exec(line) ?? []
    if (level === undefined || text === undefined) continue
    if (inCategory !== undefined && ofName !== undefined) [category, name] = [inCategory, ofName]
    remarks.push({ category, name, level, text })
  }
  return remarks
}

/** Debian's version is older than these two, and says so. */
const unknown = ['mlkem768x25519-sha256', 'kex-strict-s-v00@openssh.com']

test('there is nothing to object to', async () => {
  const remarks = await audit({ hostKeys: [generatePrivateKey('ed25519'), generatePrivateKey('rsa')] })
  const seen = (category: string) => [
    ...new Set(remarks.filter((remark) => remark.category === category).map(({ name }) => name)),
  ]
  expect(seen('kex')).toEqual([...serverAlgorithms.kex, 'kex-strict-s-v00@openssh.com'])
  // This server has no certificate.
  expect(seen('key')).toEqual(serverAlgorithms.hostKey.filter((name) => !name.includes('-cert-')))
  expect(seen('enc')).toEqual([...serverAlgorithms.ciphers])
  expect(seen('mac')).toEqual([...serverAlgorithms.macs])
  const objections = remarks.filter(({ level }) => level !== 'info')
  expect(
    objections.filter(({ name, text }) => !(unknown.includes(name) && text === 'unknown algorithm')),
  ).toEqual([])
})

test('it would object to what the default lists leave out', async () => {
  const kex = [...serverAlgorithms.kex, 'ecdh-sha2-nistp256']
  const remarks = await audit({
    algorithms: { ...serverAlgorithms, kex, hostKey: ['ecdsa-sha2-nistp256'] },
    hostKeys: [generatePrivateKey('ecdsa')],
  })
  const objections = remarks.filter(({ level, name }) => level !== 'info' && !unknown.includes(name))
  expect(new Set(objections.map(({ name }) => name))).toEqual(
    new Set(['ecdh-sha2-nistp256', 'ecdsa-sha2-nistp256']),
  )
})
