// A key in ssh-agent, with a certificate: the client logs in with it, and the server judges it. The server
// has a certificate for its host key, too, which the client trusts by the key of its authority. Needs the
// programs ssh-keygen, ssh-add and ssh-agent.
import assert from 'node:assert/strict'
import { execFileSync, spawn } from 'node:child_process'
import { once } from 'node:events'
import { mkdtempSync, readFileSync, rmSync } from 'node:fs'
import os from 'node:os'
import path from 'node:path'
import {
  acceptConnection,
  AgentFailure,
  agentKeys,
  certify,
  certifyHostKey,
  clientAlgorithms,
  connect,
  generatePrivateKey,
  isCertifiedHostKey,
  judgeCertificate,
  parseCertificate,
  signCertificate,
  parsePublicKeyLine,
  withCertificate,
} from '@hawser/ssh'
import { socketPair } from './loopback.ts'

const folder = mkdtempSync(path.join(os.tmpdir(), 'ssh-example-'))
const [authority, user, agentSocket] = ['authority', 'user', 'agent'].map((name) =>
  path.join(folder, name),
) as [string, string, string]
for (const file of [authority, user])
  execFileSync('ssh-keygen', ['-q', '-t', 'ed25519', '-N', '', '-f', file])
execFileSync('ssh-keygen', ['-q', '-s', authority, '-I', 'olga', '-n', 'olga', '-V', '+1h', `${user}.pub`])
const agent = spawn('ssh-agent', ['-D', '-a', agentSocket], { stdio: ['ignore', 'pipe', 'ignore'] })
try {
  await once(agent.stdout, 'data')
  // The key alone; ssh-add would take the certificate along by itself.
  const certificateLine = readFileSync(`${user}-cert.pub`, 'utf8')
  rmSync(`${user}-cert.pub`)
  execFileSync('ssh-add', ['-q', user], { env: { ...process.env, SSH_AUTH_SOCK: agentSocket } })

  const [key] = await agentKeys(agentSocket)
  assert.ok(key)
  const certified = withCertificate(key, certificateLine)
  const trusted = parsePublicKeyLine(readFileSync(`${authority}.pub`, 'utf8')).blob
  const use = { kind: 'user', authorities: [trusted], principal: 'olga', now: new Date() } as const

  const known = generatePrivateKey('rsa')
  const hostKey = await certifyHostKey(generatePrivateKey(), known, 'example')
  const [near, far] = await socketPair()
  const accepting = acceptConnection(far, {
    hostKeys: [hostKey],
    methods: ['publickey'],
    authenticate: async (attempt) =>
      'key' in attempt && attempt.key.certificate && judgeCertificate(attempt.key.certificate, use).allowed
        ? 'accept'
        : 'refuse',
  })
  const client = await connect(near, {
    user: 'olga',
    proofs: [{ method: 'publickey', key: certified }],
    algorithms: { ...clientAlgorithms, hostKey: hostKey.algorithms },
    checkHostKey: (blob) => isCertifiedHostKey(blob, known.blob, 'example'),
  })
  assert.equal((await accepting).user, 'olga')
  await client.end()

  // The same certificate by itself.
  const certificate = await parseCertificate(certified.blob)
  assert.deepEqual(certificate.principals, ['olga'])
  const tomorrow = new Date(Date.now() + 86_400_000)
  assert.deepEqual(judgeCertificate(certificate, { ...use, now: tomorrow }), {
    allowed: false,
    because: 'It has expired.',
  })

  // A certificate of one's own, with a condition that judges may not know.
  const fields = {
    kind: 'user',
    id: 'olga',
    principals: ['olga'],
    validAfter: 0n,
    validBefore: 4_000_000_000n,
    criticalOptions: new Map([['tide@example', Buffer.from('high')]]),
  } as const
  const bound = await certify(generatePrivateKey(), known, fields)
  const conditional = judgeCertificate(await parseCertificate(bound.blob), {
    ...use,
    authorities: [known.blob],
  })
  assert.equal(conditional.allowed, false)
  // One for a key whose private half somebody else has: the public one is enough.
  const { type, blob } = generatePrivateKey()
  const signed = await signCertificate({ type, blob }, known, fields)
  assert.equal((await parseCertificate(signed.blob)).id, 'olga')
  await assert.rejects(agentKeys(path.join(folder, 'no-agent')), AgentFailure)
} finally {
  agent.kill()
  rmSync(folder, { recursive: true })
}
