// Logging in, attempt by attempt: what a gateway does that gets the proofs from somebody else.
import assert from 'node:assert/strict'
import {
  acceptConnection,
  AuthenticationFailed,
  connect,
  generatePrivateKey,
  openClient,
  proofData,
  verifySignature,
  type Attempt,
  type Decision,
} from '@hawser/ssh'
import { socketPair } from './loopback.ts'

const hostKey = generatePrivateKey()

/** A password, and then a code from the user's telephone. */
async function authenticate(attempt: Attempt): Promise<Decision> {
  if (attempt.method === 'password' && attempt.password === 'correct horse')
    return { partial: ['keyboard-interactive'] }
  if (attempt.method !== 'keyboard-interactive') return 'refuse'
  const [code] = await attempt.ask([{ text: 'Code: ', echo: true }])
  return code === '123456' ? 'accept' : 'refuse'
}

const methods = ['password', 'keyboard-interactive']
const [near, far] = await socketPair()
const accepting = acceptConnection(far, { hostKeys: [hostKey], methods, authenticate })

// One attempt at a time: openClient stops before the login.
const client = await openClient(near, { checkHostKey: (key) => key.equals(hostKey.blob) })
const wrong = await client.attempt('olga', { method: 'password', password: 'wrong' })
assert.deepEqual(wrong, { accepted: false, partial: false, methods })
const right = await client.attempt('olga', { method: 'password', password: 'correct horse' })
assert.deepEqual(right, { accepted: false, partial: true, methods: ['keyboard-interactive'] })
const code = await client.attempt('olga', {
  method: 'keyboard-interactive',
  answer: async ({ prompts }) => prompts.map(() => '123456'),
})
assert.equal(code.accepted, true)
assert.equal((await accepting).user, 'olga')
await client.connection().end()

// All in one call: connect throws when the server takes none of the proofs.
const [otherNear, otherFar] = await socketPair()
acceptConnection(otherFar, { hostKeys: [hostKey], methods, authenticate }).catch(() => undefined)
await assert.rejects(
  connect(otherNear, {
    user: 'olga',
    proofs: [{ method: 'password', password: 'wrong' }],
    checkHostKey: () => true,
  }),
  AuthenticationFailed,
)

// The data that a key signs to log in: for programs that sign elsewhere, or verify elsewhere.
const key = generatePrivateKey()
const sessionId = Buffer.alloc(32, 1)
const data = proofData(sessionId, 'olga', 'ssh-ed25519', key.blob)
const signature = await key.sign('ssh-ed25519', data)
assert.equal(await verifySignature(key.blob, 'ssh-ed25519', data, signature), true)
