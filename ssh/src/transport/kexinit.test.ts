// The agreement of two lists: the client's first that the server has, for each kind and direction (RFC 4253
// section 7.1).
import { describe, expect, test } from 'vitest'
import { allAlgorithms, serverAlgorithms, type Algorithms } from '../algorithms.ts'
import { payloadOf } from '../wire.ts'
import { negotiate, readKexInit, writeKexInit } from './kexinit.ts'

const agree = (client: Partial<Algorithms>, server: Partial<Algorithms>) =>
  negotiate(
    readKexInit(payloadOf(writeKexInit('client', { ...allAlgorithms, ...client }))),
    readKexInit(payloadOf(writeKexInit('server', { ...allAlgorithms, ...server }))),
  )

test('the order of the client decides', () => {
  const agreed = agree(
    { kex: ['ecdh-sha2-nistp256', 'curve25519-sha256'] },
    { kex: ['curve25519-sha256', 'ecdh-sha2-nistp256'] },
  )
  expect(agreed.kex.name).toBe('ecdh-sha2-nistp256')
  expect(agreed.wrongGuess).toBe(true)
})

test('two of ours agree on the hybrid exchange and AES-GCM, without a MAC', () => {
  const agreed = agree(allAlgorithms, serverAlgorithms)
  expect([agreed.kex.name, agreed.hostKey, agreed.toServer.cipher.name, agreed.toClient.mac]).toEqual([
    'mlkem768x25519-sha256',
    'ssh-ed25519',
    'aes128-gcm@openssh.com',
    undefined,
  ])
})

test('a MAC that is not needed need not be common', () => {
  expect(agree({ macs: ['hmac-odd'] }, {}).toServer.mac).toBeUndefined()
  expect(() => agree({ macs: ['hmac-odd'], ciphers: ['aes128-ctr'] }, {})).toThrow(
    'There is no MAC that both sides know.',
  )
})

describe('nothing in common', () => {
  test.each<[string, Partial<Algorithms>]>([
    ['key exchange', { kex: ['rot13'] }],
    ['host key algorithm', { hostKey: ['ssh-dss'] }],
    ['cipher', { ciphers: ['3des-cbc'] }],
  ])('%s', (what, client) => {
    expect(() => agree(client, {})).toThrow(`There is no ${what} that both sides know.`)
  })
})
