// `hawser watch` shows a live session over the server's WebSocket. It is read-only: nothing typed here is
// sent; `hawser join` (join.ts) does that. The output passes through the filter of safe-text.ts.
import { randomBytes } from 'node:crypto'
import type { IncomingMessage } from 'node:http'
import { text } from 'node:stream/consumers'
import { ApiError } from '@hawser/contract/client'
import { defined } from '@hawser/contract/defined'
import { failureHeader } from '@hawser/contract/failures'
import { livePath } from '@hawser/contract/sessions'
import type { LiveMessage } from '@hawser/contract/sharing'
import type { Command } from '../command.ts'
import { CliError, notFoundCode, unreachableCode } from '../errors.ts'
import type { Context } from '../context.ts'
import { openKeyboard } from '../keyboard.ts'
import { findSession } from '../resolve.ts'
import { entersAlternateScreen, resetSequence, safeText, screenFilter } from '../safe-text.ts'

/** The most output buffered for a terminal that is slower than the session. */
const mostWaiting_bytes = 16 * 1024 * 1024
const timeout_ms = 10_000

export const watch: Command = {
  words: ['watch'],
  summary: 'Shows a live session; q or Ctrl-C stops watching, and the session continues.',
  arguments: [{ name: 'session', doc: 'its uid or the start of it, or `last`', completes: 'session' }],
  options: [{ name: 'channel', value: 'number', doc: 'the terminal, if the session has several; from 0' }],
  async run(given, context) {
    const session = await findSession(context.api(), given.words[0]!)
    if (!session.active)
      throw new CliError(`The session has ended. Run \`hawser play ${session.uid.slice(0, 12)}\`.`)
    context.say(`Watching ${safeText(session.username)} on ${safeText(session.device.name)}; q ends it.`)
    context.say(await showLive(context, session.uid, defined({ channel: given.value('channel') })))
  },
}

/** The parts of a guest who may type. */
export interface Participation {
  heard(message: LiveMessage): void
  /** Takes the keyboard, until it is disposed. */
  begin(socket: WebSocket, leave: () => void): Disposable
}

/** Returns the sentence with which the session ended. */
export async function showLive(
  context: Context,
  uid: string,
  query: Readonly<Record<string, string>>,
  participation?: Participation,
): Promise<string> {
  const { url, token, apiKey } = context.options()
  const address = new URL(`${url}${livePath.replace(':uid', uid)}`.replace(/^http/, 'ws'))
  for (const [name, value] of Object.entries(query)) address.searchParams.set(name, value)
  const headers: Record<string, string> = apiKey
    ? { 'x-api-key': apiKey }
    : { authorization: `Bearer ${token}` }
  if (typeof WebSocket === 'undefined')
    throw new CliError(`Watching needs Node 22 or newer; this is ${process.version}.`)
  const socket = new WebSocket(address, { headers })
  socket.binaryType = 'arraybuffer'
  const [filter, decoder] = [screenFilter(), new TextDecoder()]
  const { promise, resolve, reject } = Promise.withResolvers<string>()
  let [second, opened] = [false, false]
  const stop = (): void => resolve('')
  const draw = (bytes: ArrayBuffer): void => {
    const shown = filter(decoder.decode(bytes, { stream: true }))
    second = entersAlternateScreen(shown) ?? second
    process.stdout.write(shown)
    if (process.stdout.writableLength > mostWaiting_bytes)
      reject(new CliError('Your terminal is too slow for this session.'))
  }
  socket.addEventListener('open', () => (opened = true))
  socket.addEventListener('message', (event) => {
    const data = event.data as unknown
    if (typeof data !== 'string') return draw(data as ArrayBuffer)
    const message = JSON.parse(data) as LiveMessage
    if (message.kind === 'screen' && process.stdout.isTTY) process.stdout.write('\u001b[2J\u001b[H')
    if (message.kind === 'end') resolve(safeText(message.message))
    participation?.heard(message)
  })
  socket.addEventListener('error', () => void (opened || refusalOf(address, headers).then(reject, reject)))
  // After the `end` message this has no effect: the promise is already settled.
  socket.addEventListener('close', ({ reason }) => {
    if (opened) reject(new CliError(reason || 'The connection to the server was lost.', unreachableCode))
  })
  process.on('SIGINT', stop).on('SIGTERM', stop)
  using _ = participation?.begin(socket, stop) ?? openKeyboard((key) => key === 'quit' && stop())
  try {
    return await promise
  } finally {
    process.off('SIGINT', stop).off('SIGTERM', stop)
    socket.close()
    if (process.stdout.isTTY) process.stdout.write(`${resetSequence(second)}\r\n`)
  }
}

/**
 * Why a WebSocket was refused. `WebSocket` does not tell, so this repeats the request with plain HTTP, where
 * the response can be read.
 */
async function refusalOf(address: URL, headers: Record<string, string>): Promise<Error> {
  const { request } = address.protocol === 'wss:' ? await import('node:https') : await import('node:http')
  const upgrade = {
    connection: 'upgrade',
    upgrade: 'websocket',
    'sec-websocket-version': '13',
    'sec-websocket-key': randomBytes(16).toString('base64'),
  }
  const asked = request(address.href.replace(/^ws/, 'http'), {
    headers: { ...headers, ...upgrade },
    signal: AbortSignal.timeout(timeout_ms),
  })
  const answered = new Promise<Error>((resolve) => {
    asked.on('response', (response) => {
      text(response).then((body) => resolve(refusal(response, body)), resolve)
    })
    asked.on('upgrade', (_, socket) => {
      socket.destroy()
      resolve(new CliError('The connection to the server was lost; try again.', unreachableCode))
    })
    asked.on('error', (cause) =>
      resolve(new CliError(`The server cannot be reached: ${cause.message}.`, unreachableCode, cause)),
    )
  })
  asked.end()
  return answered
}

function refusal({ statusCode: status = 0, headers }: IncomingMessage, body: string): Error {
  if (status === 404)
    return new CliError(
      'There is nothing to watch: the session has no recorded terminal, or has ended.',
      notFoundCode,
    )
  let said: unknown = body
  try {
    said = JSON.parse(body)
  } catch {
    // A proxy answered; its status has to do.
  }
  const kind = headers[failureHeader]
  return new ApiError({
    status,
    headers: new Headers(typeof kind === 'string' ? { [failureHeader]: kind } : {}),
    body: said,
  })
}
