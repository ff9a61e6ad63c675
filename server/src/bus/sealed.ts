// Seals the messages of nodes on NATS, so that somebody who reaches NATS can neither read nor forge nor
// repeat them. Each process has a key of its own, derived from the installation's master key and a random
// number that it chose at its start. A message is AES-256-GCM under that key and bound to its subject; an
// answer is bound to its question.
//   byte 1 (version) · 16 bytes sender · uint48 counter, which is also the nonce · uint48 milliseconds since 1970 · ciphertext · 16 bytes tag
// A message counts once and for five minutes: of each sender the receiver remembers the latest counters it
// has seen, and forgets the sender when everything it has said is too old. Answers need no memory, because
// each question is asked once.
import { createCipheriv, createDecipheriv, hkdfSync, randomBytes } from 'node:crypto'

/** How far the clocks of two nodes may differ, with the transit time. It bounds lateness, not repetition. */
export const longest_ms = 300_000
/** How far messages of a sender may overtake each other, when it changes from one NATS server to another. */
const overtaking = 1_024

const version = 1
const header_bytes = 29
const tag_bytes = 16

export type Reason = 'unreadable' | 'own' | 'stale' | 'repeated'

export class Refused extends Error {
  readonly reason: Reason

  constructor(reason: Reason, message: string) {
    super(message)
    this.reason = reason
  }
}

/** A sealed message, and the name under which an answer refers to it. */
export interface Sealed {
  readonly bytes: Buffer
  readonly id: string
}

export interface Seal {
  seal(subject: string, text: string): Sealed
  /**
   * Throws Refused unless another node has said this on this subject a moment ago, and it is heard for the
   * first time.
   */
  open(subject: string, bytes: Uint8Array): { readonly text: string; readonly id: string }
  sealAnswer(question: string, text: string): Buffer
  openAnswer(question: string, bytes: Uint8Array): string
}

interface Sender {
  readonly key: Buffer
  highest: number
  readonly seen: Set<number>
  /** By the sender's own clock. */
  sent_at: number
}

export function seal(masterKey: Buffer, now: () => number = Date.now): Seal {
  const base = Buffer.from(hkdfSync('sha256', masterKey, Buffer.alloc(0), 'hawser bus 1', 32))
  const keyOf = (sender: Buffer) => Buffer.from(hkdfSync('sha256', base, sender, 'hawser bus sender 1', 32))
  const self = randomBytes(16)
  const own = { key: keyOf(self), counter: 0 }
  const senders = new Map<string, Sender>()

  function close(about: string, text: string): Sealed {
    const header = Buffer.allocUnsafe(header_bytes)
    header.writeUInt8(version, 0)
    self.copy(header, 1)
    header.writeUIntBE(++own.counter, 17, 6)
    header.writeUIntBE(now(), 23, 6)
    const cipher = createCipheriv('aes-256-gcm', own.key, nonceOf(header))
    cipher.setAAD(Buffer.concat([header, Buffer.from(about)]))
    const body = Buffer.concat([cipher.update(text, 'utf8'), cipher.final()])
    return { bytes: Buffer.concat([header, body, cipher.getAuthTag()]), id: idOf(header) }
  }

  /** The text, if a node that has the master key sealed it for this. */
  function read(about: string, bytes: Uint8Array): { text: string; header: Buffer; key: Buffer } {
    const message = Buffer.from(bytes.buffer, bytes.byteOffset, bytes.byteLength)
    const header = message.subarray(0, header_bytes)
    if (message.length < header_bytes + tag_bytes || header[0] !== version) throw unreadable()
    const key = senders.get(senderOf(header))?.key ?? keyOf(header.subarray(1, 17))
    const decipher = createDecipheriv('aes-256-gcm', key, nonceOf(header))
    decipher.setAAD(Buffer.concat([header, Buffer.from(about)]))
    decipher.setAuthTag(message.subarray(-tag_bytes))
    try {
      const text =
        decipher.update(message.subarray(header_bytes, -tag_bytes), undefined, 'utf8') +
        decipher.final('utf8')
      return { text, header, key }
    } catch {
      throw unreadable()
    }
  }

  function requireFresh(header: Buffer): void {
    if (header.subarray(1, 17).equals(self))
      throw new Refused('own', 'a message of this node was sent back to it')
    const late_ms = now() - header.readUIntBE(23, 6)
    if (Math.abs(late_ms) > longest_ms)
      throw new Refused(
        'stale',
        `a message was sent ${Math.round(late_ms / 1000)} s ago by the clock of this node: it was recorded and repeated, or the clocks of the nodes differ`,
      )
  }

  /** Throws when the message was heard before. */
  function requireFirst(header: Buffer, key: Buffer): void {
    const name = senderOf(header)
    const counter = header.readUIntBE(17, 6)
    let sender = senders.get(name)
    if (!sender) {
      for (const [other, { sent_at }] of senders) if (sent_at < now() - 2 * longest_ms) senders.delete(other)
      senders.set(name, (sender = { key, highest: 0, seen: new Set(), sent_at: 0 }))
    }
    if (sender.seen.has(counter) || counter <= sender.highest - overtaking)
      throw new Refused('repeated', 'a message came a second time')
    sender.seen.add(counter)
    sender.highest = Math.max(sender.highest, counter)
    sender.sent_at = Math.max(sender.sent_at, header.readUIntBE(23, 6))
    const { seen, highest } = sender
    if (seen.size > 2 * overtaking) for (const old of seen) if (old <= highest - overtaking) seen.delete(old)
  }

  return {
    seal: (subject, text) => close(`told\n${subject}`, text),
    open(subject, bytes) {
      const { text, header, key } = read(`told\n${subject}`, bytes)
      requireFresh(header)
      requireFirst(header, key)
      return { text, id: idOf(header) }
    },
    sealAnswer: (question, text) => close(`answered\n${question}`, text).bytes,
    openAnswer(question, bytes) {
      const { text, header } = read(`answered\n${question}`, bytes)
      requireFresh(header)
      return text
    },
  }
}

const unreadable = () =>
  new Refused(
    'unreadable',
    'a message is not from a node that has the master key of this one, or was meant for another subject',
  )
const senderOf = (header: Buffer) => header.toString('latin1', 1, 17)
/** Sender and counter: no two messages have both. */
const idOf = (header: Buffer) => header.toString('hex', 1, 23)
const nonceOf = (header: Buffer) => Buffer.concat([Buffer.alloc(6), header.subarray(17, 23)])
