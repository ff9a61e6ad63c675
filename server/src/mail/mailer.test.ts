// Posting e-mails with a real SMTP server on this machine, read back by a real mail parser; then everything
// that can go wrong with such a server. In each case the e-mail is either delivered or kept, and no secret is
// in the log.
import { mkdir, mkdtemp, readdir, readFile, rm, stat } from 'node:fs/promises'
import { createServer, type AddressInfo } from 'node:net'
import { tmpdir } from 'node:os'
import path from 'node:path'
import PostalMime from 'postal-mime'
import { SMTPServer, type SMTPServerOptions } from 'smtp-server'
import { describe, expect, test, vi } from 'vitest'
import { recoveryEmail } from './emails.ts'
import { mailer, type MailerOptions } from './mailer.ts'

// A second attempt, and a drain, take seconds by design.
vi.setConfig({ testTimeout: 60_000 })

const token = 'tok-4f1d09'
const email = recoveryEmail({
  to: 'olga@example.com',
  name: 'Olga Ørsted',
  url: 'https://hawser.example.com',
  id: '507f1f77',
  token,
})
const link = `https://hawser.example.com/update-password?id=507f1f77&token=${token}`

/** A mailer with a folder of its own; what it logs is kept as text. */
async function openMailer(options: Partial<MailerOptions> = {}) {
  const folder = await mkdtemp(path.join(tmpdir(), 'hawser-post-'))
  const outbox = path.join(folder, 'outbox')
  const lines: string[] = []
  const write = (level: string) => (fields: object, message?: string) =>
    void lines.push(JSON.stringify({ level, ...fields, message }))
  const log = { info: write('info'), warn: write('warn'), error: write('error') }
  const opened = mailer({ smtp: undefined, from: 'Hawser <hawser@example.com>', outbox, log, ...options })
  return {
    send: opened.send,
    outbox,
    lines,
    events: () => lines.map((line) => (JSON.parse(line) as { event: string }).event),
    kept: () => readdir(outbox).catch(() => []),
    stop: () => opened[Symbol.asyncDispose](),
    async [Symbol.asyncDispose]() {
      await opened[Symbol.asyncDispose]()
      await rm(folder, { recursive: true, force: true })
    },
  }
}

interface Arrival {
  readonly raw: string
  readonly recipients: readonly string[]
  readonly user: string | undefined
}

/** A real mail server. `answers` are what it says to each e-mail in turn, undefined for yes. */
async function mailServer(
  answers: ({ code: number; text: string } | undefined)[] = [],
  options: SMTPServerOptions = {},
  host = '127.0.0.1',
) {
  const arrivals: Arrival[] = []
  let attempts = 0
  const server = new SMTPServer({
    authOptional: true,
    hideSTARTTLS: true,
    logger: false,
    onData(stream, session, done) {
      const chunks: Buffer[] = []
      stream.on('data', (chunk: Buffer) => chunks.push(chunk))
      stream.on('end', () => {
        const refused = answers[attempts]
        attempts += 1
        if (refused) return done(Object.assign(new Error(refused.text), { responseCode: refused.code }))
        const recipients = session.envelope.rcptTo.map(({ address }) => address)
        arrivals.push({
          raw: Buffer.concat(chunks).toString(),
          recipients,
          user: session.user as string | undefined,
        })
        return done()
      })
    },
    ...options,
  })
  const { promise, resolve } = Promise.withResolvers<void>()
  server.listen(0, host, resolve)
  await promise
  return {
    arrivals,
    attempts: () => attempts,
    port: (server.server.address() as AddressInfo).port,
    [Symbol.asyncDispose]: () => new Promise<void>((closed) => server.close(closed)),
  }
}

const modeOf = async (file: string): Promise<string> => ((await stat(file)).mode & 0o777).toString(8)

describe('without a mail server', () => {
  test('an e-mail is kept as a whole message that only its owner can read', async () => {
    await using our = await openMailer()
    await our.send(email)
    const [name = '', ...others] = await our.kept()
    expect(others).toEqual([])
    expect(name).toMatch(/^\d{4}-\d\d-\d\dT\d\d-\d\d-\d\d-\d{3}Z-[0-9a-f]{12}\.eml$/)
    expect(await modeOf(our.outbox)).toBe('700')
    expect(await modeOf(path.join(our.outbox, name))).toBe('600')

    const mail = await PostalMime.parse(await readFile(path.join(our.outbox, name)))
    expect(mail.subject).toBe('Choose a new password')
    expect(mail.from).toMatchObject({ name: 'Hawser', address: 'hawser@example.com' })
    expect(mail.to).toMatchObject([{ name: 'Olga Ørsted', address: 'olga@example.com' }])
    expect(mail.text?.split('\n')).toContain(link)
    expect(mail.html).toContain(`href="${link.replaceAll('&', '&amp;')}"`)
    expect(mail.messageId).toMatch(/@example\.com>$/)
    expect(our.events()).toEqual(['email.stored'])
    expect(our.lines.join('\n')).not.toContain(token)
  })

  test('a folder that was open to others is closed to them', async () => {
    await using our = await openMailer()
    await mkdir(our.outbox, { mode: 0o755 })
    await our.send(email)
    expect(await modeOf(our.outbox)).toBe('700')
  })

  test('e-mails of the same moment do not overwrite each other', async () => {
    await using our = await openMailer()
    await Promise.all(Array.from({ length: 20 }, () => our.send(email)))
    expect(await our.kept()).toHaveLength(20)
  })

  test('an e-mail that cannot even be kept is an error to its sender', async () => {
    await using our = await openMailer({ outbox: path.join('/dev/null', 'outbox') })
    await expect(our.send(email)).rejects.toThrow('ENOTDIR')
    expect(our.events()).toEqual([])
  })
})

describe('with a mail server', () => {
  test('an e-mail arrives, and nothing is kept', async () => {
    await using server = await mailServer()
    await using our = await openMailer({ smtp: `smtp://127.0.0.1:${server.port}` })
    await our.send(email)
    const [arrival] = server.arrivals
    const mail = await PostalMime.parse(arrival!.raw)
    expect(arrival!.recipients).toEqual(['olga@example.com'])
    expect(mail.subject).toBe('Choose a new password')
    expect(mail.from).toMatchObject({ name: 'Hawser', address: 'hawser@example.com' })
    expect(mail.to).toMatchObject([{ name: 'Olga Ørsted', address: 'olga@example.com' }])
    expect(mail.text?.split('\n')).toContain(link)
    expect(mail.html).toContain(`href="${link.replaceAll('&', '&amp;')}"`)
    expect(mail.headers.find(({ key }) => key === 'auto-submitted')?.value).toBe('auto-generated')
    expect(await our.kept()).toEqual([])
    expect(our.events()).toEqual(['email.sent'])
    expect(our.lines.join('\n')).not.toContain(token)
  })

  test('many e-mails at once share two connections', async () => {
    let open = 0
    let most = 0
    await using server = await mailServer([], {
      onConnect(_, done) {
        open += 1
        most = Math.max(most, open)
        done()
      },
      onClose: () => void (open -= 1),
    })
    await using our = await openMailer({ smtp: `smtp://127.0.0.1:${server.port}` })
    await Promise.all(Array.from({ length: 30 }, () => our.send(email)))
    expect(server.arrivals).toHaveLength(30)
    expect(most).toBeLessThanOrEqual(2)
  })

  test('it signs in with the name and password of the address', async () => {
    await using server = await mailServer([], {
      authOptional: false,
      allowInsecureAuth: true,
      onAuth: ({ username, password }, _, done) =>
        username === 'hawser' && password === 'p@ss:word'
          ? done(null, { user: username })
          : done(new Error('no')),
    })
    await using our = await openMailer({
      smtp: `smtp://hawser:${encodeURIComponent('p@ss:word')}@127.0.0.1:${server.port}`,
    })
    await our.send(email)
    expect(server.arrivals.map(({ user }) => user)).toEqual(['hawser'])
  })

  test('a password goes over a network only under TLS, unless the address says otherwise', async () => {
    let connections = 0
    let signIns = 0
    const options: SMTPServerOptions = {
      allowInsecureAuth: true,
      onConnect(_, done) {
        connections += 1
        done()
      },
      onAuth({ username }, _, done) {
        signIns += 1
        done(null, { user: username ?? '' })
      },
    }
    // On this machine too, but not by one of the addresses that we know to be.
    await using server = await mailServer([], options, '127.0.0.2')
    const smtp = `smtp://hawser:hunter2@127.0.0.2:${server.port}`
    await using careful = await openMailer({ smtp })
    await careful.send(email)
    expect(connections).toBe(2)
    expect(signIns).toBe(0)
    expect(await careful.kept()).toHaveLength(1)

    await using careless = await openMailer({ smtp: `${smtp}?requireTLS=false` })
    await careless.send(email)
    expect(signIns).toBe(1)
    expect(server.arrivals).toHaveLength(1)
  })
})

describe('when the mail server fails', () => {
  test('it cannot be reached: the e-mail is kept and the log says so, without a secret', async () => {
    const gone = createServer().listen(0, '127.0.0.1')
    await new Promise((listening) => gone.once('listening', listening))
    const { port } = gone.address() as AddressInfo
    await new Promise((closed) => gone.close(closed))
    await using our = await openMailer({ smtp: `smtp://hawser:hunter2@127.0.0.1:${port}` })
    await our.send(email)
    const [name = ''] = await our.kept()
    expect((await PostalMime.parse(await readFile(path.join(our.outbox, name)))).text).toContain(link)
    expect(our.events()).toEqual(['email.failed', 'email.stored'])
    expect(JSON.parse(our.lines[0]!)).toMatchObject({ level: 'error', syscall: 'connect' })
    expect(our.lines.join('\n')).not.toMatch(/hunter2|tok-4f1d09|olga@/)
  })

  test('it is busy once: the second attempt succeeds', async () => {
    await using server = await mailServer([{ code: 451, text: 'Come back later' }])
    await using our = await openMailer({ smtp: `smtp://127.0.0.1:${server.port}` })
    await our.send(email)
    expect(server.arrivals).toHaveLength(1)
    expect(await our.kept()).toEqual([])
  })

  test('it is busy twice: the e-mail is kept', async () => {
    await using server = await mailServer([
      { code: 451, text: 'Come back later' },
      { code: 451, text: 'Come back later' },
    ])
    await using our = await openMailer({ smtp: `smtp://127.0.0.1:${server.port}` })
    await our.send(email)
    expect(server.attempts()).toBe(2)
    expect(await our.kept()).toHaveLength(1)
  })

  test('it refuses for good: it is not asked again, and what it quotes is not logged', async () => {
    await using server = await mailServer([{ code: 554, text: `Spam: ${link}` }])
    await using our = await openMailer({ smtp: `smtp://127.0.0.1:${server.port}` })
    await our.send(email)
    expect(server.attempts()).toBe(1)
    expect(await our.kept()).toHaveLength(1)
    expect(JSON.parse(our.lines[0]!)).toMatchObject({ event: 'email.failed', answer: 554 })
    expect(our.lines.join('\n')).not.toContain(token)
  })

  test('it says nothing: what is too much goes to the outbox, and so does the rest when we stop', async () => {
    const silent = createServer(() => {}).listen(0, '127.0.0.1')
    await new Promise((listening) => silent.once('listening', listening))
    await using our = await openMailer({ smtp: `smtp://127.0.0.1:${(silent.address() as AddressInfo).port}` })
    const waiting = Array.from({ length: 100 }, () => our.send(email))
    await our.send(email)
    expect(await our.kept()).toHaveLength(1)
    await our.stop()
    await Promise.all(waiting)
    expect(await our.kept()).toHaveLength(101)
    silent.close()
  })

  test('an e-mail that comes after the end is kept', async () => {
    await using server = await mailServer()
    await using our = await openMailer({ smtp: `smtp://127.0.0.1:${server.port}` })
    await our.stop()
    await our.send(email)
    expect(await our.kept()).toHaveLength(1)
  })

  test.each(['http://hawser:hunter2@example.com', 'hawser:hunter2@example.com', 'smtp:', ''])(
    '%j is no address of one',
    (smtp) => {
      const log = { info() {}, warn() {}, error() {} }
      let message = ''
      try {
        mailer({ smtp, from: 'hawser@example.com', outbox: 'nowhere', log })
      } catch (error) {
        message = (error as Error).message
      }
      expect(message).toMatch(/^The address of the mail server must look like/)
      expect(message).not.toContain('hunter2')
    },
  )
})

describe('hostile names and addresses', () => {
  const crlf = 'Eve\r\nBcc: victim@example.com\r\n\r\nBuy anchors'

  test('a name, a subject or a sender with line breaks adds no header, no recipient and no text', async () => {
    await using server = await mailServer()
    await using our = await openMailer({
      smtp: `smtp://127.0.0.1:${server.port}`,
      from: '"Hawser\r\nX-Evil: 1" <hawser@example.com>',
    })
    await our.send({ ...email, to: { name: crlf, address: 'olga@example.com' }, subject: `Hello ${crlf}` })
    await our.send(
      recoveryEmail({
        to: 'olga@example.com',
        name: crlf,
        url: 'https://hawser.example.com',
        id: '1',
        token: '2',
      }),
    )
    expect(server.arrivals).toHaveLength(2)
    for (const { raw, recipients } of server.arrivals) {
      const mail = await PostalMime.parse(raw)
      expect(recipients).toEqual(['olga@example.com'])
      expect(mail.to).toMatchObject([
        { name: 'Eve Bcc: victim@example.com Buy anchors', address: 'olga@example.com' },
      ])
      expect(mail.headers.map(({ key }) => key).toSorted()).toEqual([
        'auto-submitted',
        'content-type',
        'date',
        'from',
        'message-id',
        'mime-version',
        'subject',
        'to',
      ])
      expect(mail.text).not.toContain('Buy anchors')
    }
  })

  test.each([
    'olga@example.com, victim@example.com',
    'olga@example.com\r\nBcc: victim@example.com',
    'Olga <olga@example.com>',
    'olga\u0000@example.com',
    'olga',
    `${'x'.repeat(300)}@example.com`,
    '',
  ])('an e-mail to %j is refused', async (address) => {
    await using our = await openMailer()
    await expect(our.send({ ...email, to: { name: 'Olga', address } })).rejects.toThrow(
      'one well-formed address',
    )
    expect(await our.kept()).toEqual([])
  })
})
