// Keys: made, read from files and written to them, shown to people, and exchanged with node:crypto.
import assert from 'node:assert/strict'
import { generateKeyPairSync } from 'node:crypto'
import {
  blobOf,
  fingerprintMd5,
  fingerprintSha256,
  generatePrivateKey,
  KeyFormatError,
  knownKey,
  parsePrivateKey,
  parsePublicKeyBlob,
  parsePublicKeyLine,
  PassphraseNeeded,
  privateKeyFile,
  privateKeyFrom,
  publicKeyLine,
  verifySignature,
} from '@hawser/ssh'

// A key file, as ssh-keygen writes it.
const key = generatePrivateKey('ed25519', 'olga@harbour')
const file = privateKeyFile(key, 'a passphrase')
assert.throws(() => parsePrivateKey(file), PassphraseNeeded)
assert.deepEqual(parsePrivateKey(file, 'a passphrase').blob, key.blob)

// A line of authorized_keys. Only RSA keys differ in size.
const line = publicKeyLine(key.type, key.blob)
assert.deepEqual(parsePublicKeyLine(`${line} olga@harbour`), {
  type: 'ssh-ed25519',
  blob: key.blob,
  comment: 'olga@harbour',
  bits: null,
})
assert.throws(() => parsePublicKeyLine('ssh-ed25519 nonsense'), KeyFormatError)

// The blob is the key as it is on the wire.
assert.deepEqual(parsePublicKeyBlob(key.blob), { type: 'ssh-ed25519', bits: null })
assert.match(fingerprintSha256(key.blob), /^SHA256:[A-Za-z0-9+/]{43}$/)
assert.match(fingerprintMd5(key.blob), /^([0-9a-f]{2}:){15}[0-9a-f]{2}$/)

// From node:crypto, and back.
const { privateKey } = generateKeyPairSync('ed25519')
const own = privateKeyFrom(privateKey)
assert.deepEqual(blobOf(privateKey), own.blob)
assert.equal(knownKey(own.blob).object.asymmetricKeyType, 'ed25519')

// Signatures in the format of SSH.
const data = Buffer.from('anything')
const signature = await own.sign('ssh-ed25519', data)
assert.equal(await verifySignature(own.blob, 'ssh-ed25519', data, signature), true)
assert.equal(await verifySignature(own.blob, 'ssh-ed25519', Buffer.from('another'), signature), false)
