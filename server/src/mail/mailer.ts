// The post office: takes a letter and either sends it by SMTP or keeps it as an .eml file in the outbox
// folder. A letter is never lost without an error: without a mail server it is kept, and when the server
// cannot be reached, is too slow or refuses, it is kept as well. What stands in a letter (links, codes) is a
// secret, and so is the address of the mail server with its password: neither is ever logged. The outbox is
// the one place where such secrets stand in clear, so only its owner may read it.
import { randomBytes } from 'node:crypto'
import { chmod, mkdir, open, rename, rm } from 'node:fs/promises'
import path from 'node:path'
import { createTransport, type SendMailOptions } from 'nodemailer'
import { invariant } from '@hawser/contract/failures'
import { patterns } from '@hawser/contract/fields'
import { second_ms } from '../kit/clock.ts'
import { oneLine, type Letter } from './emails.ts'

interface Log {
  info(fields: object, message?: string): void
  warn(fields: object, message?: string): void
  error(fields: object, message?: string): void
}

export interface PostOptions {
  /** `smtp://user:password@host:587` or `smtps://…`; undefined: every letter is kept in the outbox. */
  readonly smtp: string | undefined
  /** `Hawser <hawser@example.com>` */
  readonly from: string
  readonly outbox: string
  readonly log: Log
}

const connect_ms = 10 * second_ms
const silence_ms = 30 * second_ms
const retryAfter_ms = 1 * second_ms
/** A stopping server gives letters that are on their way this long before it keeps them instead. */
const drain_ms = 5 * second_ms
const mostConnections = 2
/** Letters waiting for a slow mail server; those that come on top go straight to the outbox. */
const mostWaiting = 100

export type Post = ReturnType<typeof post>

export function post({ smtp, from, outbox, log }: PostOptions) {
  const envelope = { from: oneLine(from) }
  const paper = createTransport({ streamTransport: true, buffer: true, newline: 'windows', ...noFetching })
  const carrier = smtp === undefined ? undefined : openCarrier(smtp)
  const stopping = new AbortController()
  const onTheWay = new Set<Promise<void>>()

  async function send(letter: Letter): Promise<void> {
    const message = { ...envelope, ...compose(letter) }
    const mayWait = !stopping.signal.aborted && onTheWay.size < mostWaiting
    const task = carrier && mayWait ? carry(carrier, letter, message) : keep(letter, message)
    onTheWay.add(task)
    try {
      await task
    } finally {
      onTheWay.delete(task)
    }
  }

  async function carry(carrier: Carrier, letter: Letter, message: SendMailOptions): Promise<void> {
    const { subject } = letter
    try {
      await attemptTwice(carrier, message)
    } catch (error) {
      log.error({ event: 'letter.failed', subject, ...reasons(error) }, 'A letter could not be sent.')
      return keep(letter, message)
    }
    log.info({ event: 'letter.sent', subject })
  }

  async function attemptTwice(carrier: Carrier, message: SendMailOptions): Promise<void> {
    try {
      await carrier.sendMail(message)
    } catch (error) {
      if (isFinal(error) || stopping.signal.aborted) throw error
      await pause(retryAfter_ms, stopping.signal)
      await carrier.sendMail(message)
    }
  }

  /**
   * Written under another name and then renamed, so that whoever watches the folder never reads half a
   * letter.
   */
  async function keep(letter: Letter, message: SendMailOptions): Promise<void> {
    const { message: bytes } = await paper.sendMail(message)
    await mkdir(outbox, { recursive: true, mode: 0o700 })
    // The folder may have been there before, open to others.
    await chmod(outbox, 0o700)
    const name = `${new Date().toISOString().replaceAll(/[:.]/g, '-')}-${randomBytes(6).toString('hex')}.eml`
    const unfinished = path.join(outbox, `.${name}.unfinished`)
    try {
      await using file = await open(unfinished, 'wx', 0o600)
      await file.writeFile(bytes)
      await file.sync()
      await rename(unfinished, path.join(outbox, name))
    } catch (error) {
      await rm(unfinished, { force: true })
      throw error
    }
    log.info({ event: 'letter.kept', subject: letter.subject, file: name }, 'A letter is kept in the outbox.')
  }

  return {
    /** Resolves once the letter is sent or kept; rejects only when it could be neither. */
    send,

    async [Symbol.asyncDispose](): Promise<void> {
      stopping.abort()
      // Fails what has not begun, which is then kept; what is being handed over gets its time.
      carrier?.close()
      const impatience = setTimeout(() => carrier?.close({ force: true }), drain_ms)
      await Promise.allSettled(onTheWay)
      clearTimeout(impatience)
    },
  }
}

/** A letter is made of what we give; nothing in it may make the library read a file or call an address. */
const noFetching = { disableFileAccess: true, disableUrlAccess: true }

type Carrier = ReturnType<typeof openCarrier>

function openCarrier(smtp: string) {
  const url = URL.parse(smtp)
  // The address has a password in it and must not be in the message.
  if (!url || !['smtp:', 'smtps:'].includes(url.protocol) || url.hostname === '') {
    throw new Error(
      'The address of the mail server must look like smtp://user:password@host:587 or smtps://user:password@host.',
    )
  }
  const local = ['localhost', '127.0.0.1', '[::1]'].includes(url.hostname)
  return createTransport({
    url: smtp,
    pool: true,
    maxConnections: mostConnections,
    // Our own second attempt is the only one.
    maxRequeues: 0,
    connectionTimeout: connect_ms,
    greetingTimeout: connect_ms,
    socketTimeout: silence_ms,
    // A password goes over a network only under TLS; `?requireTLS=false` in the address says otherwise.
    requireTLS: url.protocol === 'smtp:' && url.username !== '' && !local,
    ...noFetching,
  })
}

const email = new RegExp(patterns.email)

/** Only values that cannot end a header are passed on; the library encodes them once more. */
function compose(letter: Letter): SendMailOptions {
  const { name, address } = letter.to
  invariant(
    address.length <= 254 && email.test(address) && !/\p{Cc}/u.test(address),
    'a letter goes to one well-formed address',
  )
  return {
    // As an object: in a text, a comma would make two recipients of one.
    to: { name: oneLine(name), address },
    subject: oneLine(letter.subject),
    text: letter.text,
    html: letter.html,
    // RFC 3834: nobody's holiday notice should answer.
    headers: { 'Auto-Submitted': 'auto-generated' },
    xMailer: false,
  }
}

/**
 * Not the error's message: it may quote what the server answered, and servers quote links that they dislike.
 */
function reasons(error: unknown): object {
  const { code, command, responseCode, syscall, errno } = error as Record<string, unknown>
  return { reason: code, command, answer: responseCode, syscall, errno }
}

/** A permanent answer, 5xx: asking again gives the same (RFC 5321 section 4.2.1). */
function isFinal(error: unknown): boolean {
  const answer = (error as { responseCode?: unknown }).responseCode
  return typeof answer === 'number' && answer >= 500
}

/** Returns early, without an error, when the signal comes. */
function pause(ms: number, signal: AbortSignal): Promise<void> {
  const { promise, resolve } = Promise.withResolvers<void>()
  const timer = setTimeout(resolve, ms)
  signal.addEventListener('abort', () => resolve(), { once: true })
  return promise.finally(() => clearTimeout(timer))
}
