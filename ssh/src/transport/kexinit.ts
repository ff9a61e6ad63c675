// The lists that both sides send before each key exchange, and what follows from the two (RFC 4253 section
// 7.1).
//   byte      20
//   byte[16]  cookie
//   name-list kex, host key, cipher →, cipher ←, mac →, mac ←, compression →, compression ←, language →, language ←
//   boolean   a guessed kex message follows
//   uint32    0
// Among the kex names stand markers that are no algorithms: `ext-info-c` asks for RFC 8308,
// `kex-strict-c-v00@openssh.com` and its -s- twin announce strict key exchange (OpenSSH's PROTOCOL file,
// section 1.10).
import { randomBytes } from 'node:crypto'
import { ciphers, compressions, kexMethods, macs, type Algorithms } from '../algorithms.ts'
import type { Cipher, Mac } from '../ciphers/cipher.ts'
import type { Compression } from '../compression/compression.ts'
import { NothingInCommon } from '../errors.ts'
import type { KexMethod } from '../kex/method.ts'
import { Message } from '../messages.ts'
import { message, Reader, type Writer } from '../wire.ts'

export type Role = 'client' | 'server'

export const peerOf = (role: Role): Role => (role === 'client' ? 'server' : 'client')

export const extInfoMarker = 'ext-info-c'
export const strictMarker: Readonly<Record<Role, string>> = {
  client: 'kex-strict-c-v00@openssh.com',
  server: 'kex-strict-s-v00@openssh.com',
}

export interface KexInit {
  readonly kex: readonly string[]
  readonly hostKey: readonly string[]
  readonly cipher: readonly [toServer: readonly string[], toClient: readonly string[]]
  readonly mac: readonly [toServer: readonly string[], toClient: readonly string[]]
  readonly compression: readonly [toServer: readonly string[], toClient: readonly string[]]
  readonly guess: boolean
}

export interface Direction {
  readonly cipher: Cipher
  readonly mac: Mac | undefined
  readonly compression: Compression | undefined
}

export interface Negotiated {
  readonly kex: KexMethod
  readonly hostKey: string
  readonly toServer: Direction
  readonly toClient: Direction
  /** Whether the message after a wrong guess must be ignored. */
  readonly wrongGuess: boolean
}

/** `guess`: the first message of the exchange that the lists prefer follows at once. */
export function writeKexInit(role: Role, algorithms: Algorithms, guess = false): Writer {
  const markers = role === 'client' ? [extInfoMarker, strictMarker.client] : [strictMarker.server]
  const both = (writer: Writer, names: readonly string[]): Writer => writer.names(names).names(names)
  const writer = message(Message.kexInit, 1_200).raw(randomBytes(16))
  writer.names([...algorithms.kex, ...markers]).names(algorithms.hostKey)
  both(writer, algorithms.ciphers)
  both(writer, algorithms.macs)
  both(writer, algorithms.compression)
  both(writer, [])
  return writer.boolean(guess).uint32(0)
}

export function readKexInit(payload: Buffer): KexInit {
  const reader = new Reader(payload, 17)
  const kex = reader.names()
  const hostKey = reader.names()
  const pair = (): [string[], string[]] => [reader.names(), reader.names()]
  const [cipher, mac, compression] = [pair(), pair(), pair()]
  pair()
  const guess = reader.boolean()
  reader.uint32()
  reader.end()
  return { kex, hostKey, cipher, mac, compression, guess }
}

export function negotiate(client: KexInit, server: KexInit): Negotiated {
  const first = (what: string, wanted: readonly string[], offered: readonly string[]): string => {
    const name = wanted.find((candidate) => offered.includes(candidate))
    if (name === undefined) throw new NothingInCommon(what, wanted)
    return name
  }
  const direction = (at: 0 | 1): Direction => {
    const cipher = ciphers.get(first('cipher', client.cipher[at], server.cipher[at]))!
    return {
      cipher,
      mac: cipher.needsMac ? macs.get(first('MAC', client.mac[at], server.mac[at]))! : undefined,
      // No method by the name `none` exists.
      compression: compressions.get(first('compression', client.compression[at], server.compression[at])),
    }
  }
  const method = kexMethods.get(first('key exchange', client.kex, server.kex))
  // Only a marker that both sides sent could get here, and each side sends its own.
  if (!method) throw new NothingInCommon('key exchange', client.kex)
  return {
    kex: method,
    hostKey: first('host key algorithm', client.hostKey, server.hostKey),
    toServer: direction(0),
    toClient: direction(1),
    wrongGuess: client.kex[0] !== server.kex[0] || client.hostKey[0] !== server.hostKey[0],
  }
}
