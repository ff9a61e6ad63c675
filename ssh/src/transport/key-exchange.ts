// One key exchange, from the two KEXINIT messages to the secret, the hash and the server's signature over it,
// and the keys that follow (RFC 4253 sections 7.2 and 8; group exchange RFC 4419 section 3). The hash covers
//   string client ident, string server ident, string client KEXINIT, string server KEXINIT, string host key,
//   [for group exchange: uint32 min, uint32 wanted, uint32 max, mpint p, mpint g,]
//   string client value, string server value, secret
// so that its signer and its verifier have seen the same negotiation. What takes long is computed by other
// threads: one message at a time, and nothing else may be taken until it is done.
import { createHash } from 'node:crypto'
import { ownCopy, type Keys } from '../ciphers/cipher.ts'
import { ProtocolError, Reason, SshError } from '../errors.ts'
import { agreementOver, type Group } from '../kex/dh-group.ts'
import {
  groupFor,
  ourWish,
  readGroup,
  readWish,
  requireKnownGroup,
  writeWish,
  type GroupRequest,
} from '../kex/group-exchange.ts'
import type { Agreement, Hash, Started } from '../kex/method.ts'
import { verifySignature } from '../keys/signature.ts'
import type { PrivateKey } from '../keys/private-key.ts'
import { Message } from '../messages.ts'
import { message, Reader, Writer } from '../wire.ts'
import type { Direction, Negotiated, Role } from './kexinit.ts'

export interface Exchanged {
  readonly hash: Hash
  readonly secret: Buffer
  /** H; the first of a connection is its session id. */
  readonly digest: Buffer
  readonly hostKey: Buffer
}

export interface ExchangeInputs {
  readonly role: Role
  readonly negotiated: Negotiated
  readonly idents: Readonly<Record<Role, string>>
  /** The payloads of the two KEXINIT messages. */
  readonly inits: Readonly<Record<Role, Buffer>>
  /** A client's half, if its first message was sent already. */
  readonly started?: Started | undefined
  /** A server's key for the negotiated algorithm. */
  readonly hostKey: PrivateKey | undefined
  send(written: Writer): void
  done(exchanged: Exchanged): void
}

export interface KeyExchange {
  /** Sends the first message, before any of the peer. */
  begin(): Promise<void>
  receive(payload: Buffer): Promise<void>
}

export function keyExchange(inputs: ExchangeInputs): KeyExchange {
  return inputs.role === 'client' ? clientSide(inputs) : serverSide(inputs)
}

interface Chosen {
  readonly wish: GroupRequest
  readonly group: Group
}

function digestOf(
  { negotiated, idents, inits }: ExchangeInputs,
  hostKey: Buffer,
  chosen: Chosen | undefined,
  values: Values,
): Buffer {
  const writer = new Writer(6_000)
    .string(idents.client)
    .string(idents.server)
    .string(inits.client)
    .string(inits.server)
    .string(hostKey)
  if (chosen) writeWish(writer, chosen.wish).mpint(chosen.group.prime).mpint(chosen.group.generator)
  writer.string(values.client).string(values.server).raw(values.secret)
  return createHash(negotiated.kex.hash).update(writer.bytes()).digest()
}

interface Values {
  readonly client: Buffer
  readonly server: Buffer
  readonly secret: Buffer
}

function unexpected(): ProtocolError {
  return new ProtocolError('A message of the key exchange came out of order.')
}

export function firstMessage({ value }: Started): Writer {
  return message(Message.kexStart, 4 + value.length).string(value)
}

function clientSide(inputs: ExchangeInputs): KeyExchange {
  const { kex, hostKey: algorithm } = inputs.negotiated
  let chosen: Chosen | undefined
  let expected: number
  let started: Started

  const start = async (type: number, reply: number, agreement: Agreement): Promise<void> => {
    started = await agreement.start()
    inputs.send(message(type, 4 + started.value.length).string(started.value))
    expected = reply
  }

  return {
    async begin() {
      if (inputs.started) {
        started = inputs.started
        expected = Message.kexReply
        return
      }
      if (kex.kind === 'direct') return start(Message.kexStart, Message.kexReply, kex.agreement)
      inputs.send(writeWish(message(Message.gexRequest), ourWish))
      expected = Message.gexGroup
    },
    async receive(payload) {
      if (payload[0] !== expected) throw unexpected()
      if (kex.kind === 'group-exchange' && !chosen) {
        const group = readGroup(payload)
        requireKnownGroup(group)
        chosen = { wish: ourWish, group }
        return start(Message.gexInit, Message.gexReply, agreementOver(group))
      }
      expected = -1
      const reader = new Reader(payload, 1)
      const [hostKey, server, signature] = [reader.string(), reader.string(), reader.string()]
      reader.end()
      const secret = await started.finish(server)
      const digest = digestOf(inputs, hostKey, chosen, { client: started.value, server, secret })
      if (!(await verifySignature(hostKey, algorithm, digest, signature))) {
        throw new SshError(Reason.hostKeyNotVerifiable, 'The server did not prove that it has its host key.')
      }
      inputs.done({ hash: kex.hash, secret, digest, hostKey: ownCopy(hostKey) })
    },
  }
}

function serverSide(inputs: ExchangeInputs): KeyExchange {
  const { kex, hostKey: algorithm } = inputs.negotiated
  const hostKey = inputs.hostKey!
  let chosen: Chosen | undefined
  let expected: number = kex.kind === 'direct' ? Message.kexStart : Message.gexRequest

  return {
    begin: async () => undefined,
    async receive(payload) {
      if (payload[0] !== expected) throw unexpected()
      if (kex.kind === 'group-exchange' && !chosen) {
        const wish = readWish(payload)
        const group = groupFor(wish)
        chosen = { wish, group }
        inputs.send(message(Message.gexGroup, 1_100).mpint(group.prime).mpint(group.generator))
        expected = Message.gexInit
        return
      }
      expected = -1
      const reader = new Reader(payload, 1)
      const client = reader.string()
      reader.end()
      const agreement = kex.kind === 'direct' ? kex.agreement : agreementOver(chosen!.group)
      const { value: server, secret } = await agreement.respond(client)
      const digest = digestOf(inputs, hostKey.blob, chosen, { client, server, secret })
      const signature = await hostKey.sign(algorithm, digest)
      const reply = message(chosen ? Message.gexReply : Message.kexReply, 2_000)
      inputs.send(reply.string(hostKey.blob).string(server).string(signature))
      inputs.done({ hash: kex.hash, secret, digest, hostKey: hostKey.blob })
    },
  }
}

/** The keys of one direction (RFC 4253 section 7.2). */
export function deriveKeys(
  exchanged: Exchanged,
  sessionId: Buffer,
  towards: Role,
  { cipher, mac }: Direction,
): Keys {
  const derive = (letter: string, length: number): Buffer => {
    const hash = (...parts: (Buffer | string)[]): Buffer => {
      const digest = createHash(exchanged.hash).update(exchanged.secret).update(exchanged.digest)
      for (const part of parts) digest.update(part)
      return digest.digest()
    }
    let key = hash(letter, sessionId)
    while (key.length < length) key = Buffer.concat([key, hash(key)])
    return ownCopy(key.subarray(0, length))
  }
  const [iv, key, macKey] = towards === 'server' ? ['A', 'C', 'E'] : ['B', 'D', 'F']
  return {
    iv: derive(iv, cipher.iv_bytes),
    key: derive(key, cipher.key_bytes),
    mac: derive(macKey, mac?.bytes ?? 0),
  }
}
