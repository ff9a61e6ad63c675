// Requests to authenticate, changed at random, behind keys that are there already: each is judged or refused
// with a named reason. The judge hears of passwords and keys only as they were sent, and nobody is in whom it
// did not accept.
import { expect, test, vi } from 'vitest'
import { authenticateClient } from '../../ssh/src/auth/server.ts'
import { generatePrivateKey, proofData, SshError } from '../../ssh/src/index.ts'
import { Message } from '../../ssh/src/messages.ts'
import { message, type Writer } from '../../ssh/src/wire.ts'
import { bareTransport, inputOf } from './bare-transport.ts'
import { fuzz } from './fuzz.ts'

vi.setConfig({ testTimeout: 3_600_000 })

const key = generatePrivateKey('ed25519')
const algorithm = 'ssh-ed25519'
const service = message(Message.serviceRequest).string('ssh-userauth')
const request = (method: string): Writer =>
  message(Message.authRequest, 1_024).string('olga').string('ssh-connection').string(method)
const shown = (signed: boolean): Writer =>
  request('publickey').boolean(signed).string(algorithm).string(key.blob)
const signature = await key.sign(algorithm, proofData(Buffer.alloc(32, 7), 'olga', algorithm, key.blob))

const seeds = [
  inputOf(service, request('none')),
  inputOf(service, request('none'), request('password').boolean(false).string('rope')),
  inputOf(service, request('password').boolean(true).string('rope').string('anchor')),
  inputOf(service, shown(false), shown(true).string(signature)),
  inputOf(
    service,
    request('keyboard-interactive').string('').string('pam'),
    message(Message.authInfoResponse).uint32(1).string('rope'),
  ),
]

test('any requests to authenticate', async () => {
  const { inputs, endings } = await fuzz({
    name: 'ssh-login',
    seeds,
    async feed(input) {
      const { transport, feed } = bareTransport()
      const heard = new Set<string>()
      let accepted = false
      const judged = authenticateClient(transport, {
        methods: ['publickey', 'password', 'keyboard-interactive'],
        mostFailures: 6,
        async authenticate(attempt) {
          heard.add(attempt.method)
          if (attempt.method === 'keyboard-interactive')
            await attempt.ask([{ text: 'Password: ', echo: false }])
          // What was really signed gets in, so that what follows is tried, too.
          accepted ||= attempt.method === 'publickey'
          return attempt.method.startsWith('publickey') ? 'accept' : 'refuse'
        },
      }).catch((error: unknown) => error)
      await feed(input)
      const ending = await judged
      if (typeof ending === 'string') {
        expect(accepted).toBe(true)
        return `in after ${[...heard].join(' ')}`
      }
      expect(ending).toBeInstanceOf(SshError)
      return `${(ending as SshError).message} after ${[...heard].join(' ')}`
    },
  })
  expect(endings.size).toBeGreaterThan(6)
  console.log(`ssh-login: ${inputs} inputs, ${endings.size} endings`)
})
