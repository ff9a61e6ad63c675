// A mail server for one service of a test: it takes every e-mail and keeps it as it came.
import { once } from 'node:events'
import type { AddressInfo } from 'node:net'
import { buffer } from 'node:stream/consumers'
import { SMTPServer } from 'smtp-server'

export interface MailServer extends AsyncDisposable {
  /** For `HAWSER_SMTP`. */
  readonly url: string
  /** E-mails in order. */
  readonly taken: readonly Buffer[]
}

export async function startMailServer(): Promise<MailServer> {
  const taken: Buffer[] = []
  const smtp = new SMTPServer({
    authOptional: true,
    hideSTARTTLS: true,
    logger: false,
    onData: (stream, _session, done) =>
      void buffer(stream).then((email) => {
        taken.push(email)
        done()
      }, done),
  })
  const server = smtp.listen(0, '127.0.0.1')
  await once(server, 'listening')
  return {
    url: `smtp://127.0.0.1:${(server.address() as AddressInfo).port}`,
    taken,
    [Symbol.asyncDispose]: () => new Promise((resolve) => smtp.close(resolve)),
  }
}
