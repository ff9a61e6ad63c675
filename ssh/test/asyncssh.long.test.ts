// asyncssh in both roles; beyond what every library has, certificates and the keys of security tokens.
import { readFileSync } from 'node:fs'
import { afterAll, beforeAll, describe, expect, test, vi } from 'vitest'
import { allAlgorithms } from '../src/algorithms.ts'
import type { Attempt, Decision } from '../src/auth/server.ts'
import { connect } from '../src/client.ts'
import { judgeCertificate } from '../src/keys/certificate.ts'
import { parsePublicKeyLine, publicKeyLine } from '../src/keys/public-key.ts'
import { withCertificate } from '../src/keys/signer.ts'
import {
  claimsAboutClient,
  claimsAboutServer,
  materials,
  serve,
  startPythonServer,
  startWorker,
  wish,
  type Materials,
  type PythonPeer,
  type Worker,
} from './python.ts'
import { outputOf } from './reading.ts'

vi.setConfig({ testTimeout: 120_000, hookTimeout: 120_000 })

/**
 * It knows all of ours but the exchange that withstands quantum computers. The link of an SFTP client has its
 * arguments in the order of the draft unless the other side says to be OpenSSH, which has the other order;
 * ours is OpenSSH's. The version of Debian 12 sends data in the middle of a key exchange (forbidden by RFC
 * 4253 section 7.1, and not taken here).
 */
const asyncssh: PythonPeer = {
  client: 'asyncssh_client.py',
  server: 'asyncssh_server.py',
  software: 'Hawser_OpenSSH',
  renewsKeys: false,
  shared: { ...allAlgorithms, kex: allAlgorithms.kex.filter((name) => name !== 'mlkem768x25519-sha256') },
}

claimsAboutClient(asyncssh)
claimsAboutServer(asyncssh)

let given: Materials
let worker: Worker
beforeAll(() => {
  given = materials()
  worker = startWorker(asyncssh.client)
})
afterAll(async () => {
  await worker[Symbol.asyncDispose]()
  given[Symbol.dispose]()
})

describe('certificates that it made', () => {
  /** Signed by the first of our keys for the second, third … */
  const certify = async (subject: number, principal: string): Promise<string> => {
    const [authority, key] = [given.keys[0]!, given.keys[subject]!]
    const file = given.where.file(`${key.type}-cert.pub`)
    const wanted = { authority: given.fileOf(authority), key: given.fileOf(key), principal, file }
    expect(await worker.ask({ do: 'certify', ...wanted })).toEqual({ file })
    return file
  }

  test.each([
    ['olga', 'allowed', { authenticated: true }],
    [
      'pavel',
      'It is for another user or host.',
      { error: expect.stringMatching(/^PermissionDenied/) as string },
    ],
  ])('its client with one for %s at our server: %s', async (principal, judged, told) => {
    const reasons = new Set<string>()
    const authenticate = async (attempt: Attempt): Promise<Decision> => {
      if (
        (attempt.method !== 'publickey' && attempt.method !== 'publickey-offer') ||
        !attempt.key.certificate
      )
        return 'refuse'
      const use = {
        kind: 'user',
        authorities: [given.keys[0]!.blob],
        principal: attempt.user,
        now: new Date(),
        address: '127.0.0.1',
      } as const
      const judgement = judgeCertificate(attempt.key.certificate, use)
      reasons.add(judgement.allowed ? 'allowed' : judgement.because)
      return judgement.allowed ? 'accept' : 'refuse'
    }
    await using server = await serve(given, { authenticate, methods: ['publickey'] })
    // Of RSA its client says the name that goes with SHA-1, whatever it signs with; sshd of today does not
    // take that either.
    for (const subject of [2, 3, 4]) {
      const certificate = await certify(subject, principal)
      const key = given.fileOf(given.keys[subject]!)
      expect([key, await worker.ask({ ...wish(given, asyncssh, server), key, certificate })]).toEqual([
        key,
        told,
      ])
      if (principal === 'olga') await worker.ask({ do: 'close' })
    }
    expect([...reasons]).toEqual([judged])
  })

  test('our client at its server: for olga and not for pavel', async () => {
    const authority = given.keys[0]!
    const line = `cert-authority ${publicKeyLine(authority.type, authority.blob)}\n`
    await using daemon = await startPythonServer(asyncssh, given, {
      authorized_keys: given.where.write('authorities', line),
    })
    const login = async (subject: number, principal: string) => {
      const key = withCertificate(
        given.keys[subject]!,
        readFileSync(await certify(subject, principal), 'utf8'),
      )
      return connect(daemon.connect(), {
        user: 'olga',
        proofs: [{ method: 'publickey', key }],
        checkHostKey: () => true,
      })
    }
    for (const subject of [1, 2, 3, 4]) {
      await using connection = await login(subject, 'olga')
      expect((await outputOf(connection, 'echo in')).stdout.toString()).toBe('in\n')
      await expect(login(subject, 'pavel')).rejects.toMatchObject({ name: 'AuthenticationFailed' })
    }
  })
})

describe('keys of security tokens at our server', () => {
  test.each(['sk-ssh-ed25519@openssh.com', 'sk-ecdsa-sha2-nistp256@openssh.com'])(
    '%s gets in when touched, only then',
    async (type) => {
      const file = given.where.file('token.pub')
      const seen: string[] = []
      const authenticate = async (attempt: Attempt): Promise<Decision> => {
        if (attempt.method !== 'publickey' && attempt.method !== 'publickey-offer') return 'refuse'
        seen.push(`${attempt.method} ${attempt.key.type}`)
        return attempt.key.blob.equals(parsePublicKeyLine(readFileSync(file, 'utf8')).blob)
          ? 'accept'
          : 'refuse'
      }
      await using server = await serve(given, { authenticate, methods: ['publickey'] })
      const login = async (touched: boolean) =>
        worker.ask({ ...wish(given, asyncssh, server), token: { type, file, touched } })
      expect(await login(true)).toEqual({ authenticated: true })
      expect(await worker.ask({ do: 'execute', command: 'exit 3' })).toMatchObject({ status: 3 })
      await worker.ask({ do: 'close' })
      expect(seen).toEqual([`publickey-offer ${type}`, `publickey ${type}`])
      // It signs, but the signature says that nobody was there.
      expect((await login(false)).error).toMatch(/^PermissionDenied/)
      expect(seen.slice(2)).toEqual([`publickey-offer ${type}`])
    },
  )
})
