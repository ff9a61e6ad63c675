// The mailer sends an e-mail by SMTP or stores it as an .eml file in the outbox folder: without a mail
// server, and when that is unreachable, too slow or refuses, so that none is lost without an error. Contents
// (links, codes) and the mail server's address with its password are never logged. In the outbox they are in
// clear, so only its owner may read it.
import { randomBytes } from 'node:crypto'
import { chmod, mkdir, open, rename, rm } from 'node:fs/promises'
import path from 'node:path'
import { createTransport, type SendMailOptions } from 'nodemailer'
import { invariant } from '@hawser/contract/failures'
import { patterns } from '@hawser/contract/fields'
import { second_ms } from '../kit/clock.ts'
import { oneLine } from '../kit/log.ts'
import type { Email } from './emails.ts'

interface Log {
  info(fields: object, message?: string): void
  warn(fields: object, message?: string): void
  error(fields: object, message?: string): void
}

export interface MailerOptions {
  /** `smtp://user:password@host:587` or `smtps://…`; undefined: every e-mail is stored in the outbox. */
  readonly smtp: string | undefined
  /** `Hawser <hawser@example.com>` */
  readonly from: string
  readonly outbox: string
  readonly log: Log
}

const connect_ms = 10 * second_ms
const silence_ms = 30 * second_ms
const retryAfter_ms = 1 * second_ms
/** How long running deliveries get when the server stops; then the e-mails are stored. */
const drain_ms = 5 * second_ms
const mostConnections = 2
/** Further ones go straight to the outbox. */
const mostWaiting = 100

export type Mailer = ReturnType<typeof mailer>

export function mailer({ smtp, from, outbox, log }: MailerOptions) {
  const envelope = { from: oneLine(from) }
  const formatter = createTransport({
    streamTransport: true,
    buffer: true,
    newline: 'windows',
    ...noFetching,
  })
  const transport = smtp === undefined ? undefined : openSmtp(smtp)
  const stopping = new AbortController()
  const sending = new Set<Promise<void>>()

  async function send(email: Email): Promise<void> {
    const message = { ...envelope, ...compose(email) }
    const mayWait = !stopping.signal.aborted && sending.size < mostWaiting
    const task = transport && mayWait ? sendBySmtp(transport, email, message) : store(email, message)
    sending.add(task)
    try {
      await task
    } finally {
      sending.delete(task)
    }
  }

  async function sendBySmtp(transport: SmtpTransport, email: Email, message: SendMailOptions): Promise<void> {
    const { subject } = email
    try {
      await attemptTwice(transport, message)
    } catch (error) {
      log.error({ event: 'email.failed', subject, ...reasons(error) }, 'An e-mail could not be sent.')
      return store(email, message)
    }
    log.info({ event: 'email.sent', subject })
  }

  async function attemptTwice(transport: SmtpTransport, message: SendMailOptions): Promise<void> {
    try {
      await transport.sendMail(message)
    } catch (error) {
      if (isFinal(error) || stopping.signal.aborted) throw error
      await pause(retryAfter_ms, stopping.signal)
      await transport.sendMail(message)
    }
  }

  /** Writes under another name and renames, so that a watcher of the folder never reads half an e-mail. */
  async function store(email: Email, message: SendMailOptions): Promise<void> {
    const { message: bytes } = await formatter.sendMail(message)
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
    log.info(
      { event: 'email.stored', subject: email.subject, file: name },
      'An e-mail is stored in the outbox.',
    )
  }

  return {
    /** Resolves once the e-mail is sent or stored; rejects only when both failed. */
    send,

    async [Symbol.asyncDispose](): Promise<void> {
      stopping.abort()
      // Deliveries that have not begun fail, and are stored; running ones get their time.
      transport?.close()
      const impatience = setTimeout(() => transport?.close({ force: true }), drain_ms)
      await Promise.allSettled(sending)
      clearTimeout(impatience)
    },
  }
}

/** Nothing in an e-mail may make the library read a file or call an address. */
const noFetching = { disableFileAccess: true, disableUrlAccess: true }

type SmtpTransport = ReturnType<typeof openSmtp>

function openSmtp(smtp: string) {
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

const emailPattern = new RegExp(patterns.email)

/** Only values that cannot end a header are passed on; the library encodes them once more. */
function compose(email: Email): SendMailOptions {
  const { name, address } = email.to
  invariant(
    address.length <= 254 && emailPattern.test(address) && !/\p{Cc}/u.test(address),
    'an e-mail goes to one well-formed address',
  )
  return {
    // As an object: in a text, a comma would make two recipients of one.
    to: { name: oneLine(name), address },
    subject: oneLine(email.subject),
    text: email.text,
    html: email.html,
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
