// The identity of the device: its private key and the MAC address of its first network card, from which the
// server derives the uid. The key is also the host key of the agent's SSH server, by which the server
// recognises the device. A copy of the key file is a copy of the device, so only its owner can read the file.
import { createPrivateKey, createPublicKey, generateKeyPairSync, type KeyObject } from 'node:crypto'
import {
  chmodSync,
  existsSync,
  linkSync,
  mkdirSync,
  readdirSync,
  readFileSync,
  unlinkSync,
  writeFileSync,
} from 'node:fs'
import path from 'node:path'

export interface Identity {
  readonly key: KeyObject
  /** PKCS#1 PEM, as it is sent and hashed: every byte counts. */
  readonly publicKey: string
}

export function loadIdentity(file: string): Identity {
  if (!existsSync(file)) makeKey(file)
  chmodSync(file, 0o600)
  const key = createPrivateKey(readFileSync(file))
  if (key.asymmetricKeyType !== 'rsa')
    throw new Error(`${file} holds a ${key.asymmetricKeyType} key; expected an RSA key`)
  return { key, publicKey: createPublicKey(key).export({ type: 'pkcs1', format: 'pem' }) }
}

/** Written aside and linked: there is a whole key or none, and of two first starts one wins. */
function makeKey(file: string): void {
  mkdirSync(path.dirname(file), { recursive: true, mode: 0o700 })
  const { privateKey } = generateKeyPairSync('rsa', { modulusLength: 2048 })
  const draft = `${file}.${process.pid}`
  writeFileSync(draft, privateKey.export({ type: 'pkcs1', format: 'pem' }), { mode: 0o600, flush: true })
  try {
    linkSync(draft, file)
  } catch (error) {
    if (!existsSync(file)) throw error
  } finally {
    unlinkSync(draft)
  }
}

const ethernet = '1'

/** The address of the first Ethernet card, up or down: stable as long as the device is the same. */
export function macAddress(folder = '/sys/class/net'): string | undefined {
  const read = (card: string, file: string): string => {
    try {
      return readFileSync(path.join(folder, card, file), 'utf8').trim()
    } catch {
      return ''
    }
  }
  const cards = (existsSync(folder) ? readdirSync(folder) : [])
    .filter((card) => card !== 'lo' && read(card, 'type') === ethernet)
    .toSorted((a, b) => Number(read(a, 'ifindex')) - Number(read(b, 'ifindex')))
  return cards
    .map((card) => read(card, 'address'))
    .find((address) => /^[0-9a-f]{2}(:[0-9a-f]{2}){5}$/.test(address))
}
