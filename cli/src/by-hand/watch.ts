// `hawser watch`: a session of somebody else while it goes on, over the server's WebSocket. It is for looking only: nothing
// that is typed here goes anywhere. What is shown goes through the filter of safe-text.ts.
import { contract } from '@hawser/contract'
import { livePath } from '@hawser/contract/sessions'
import type { Command } from '../command.ts'
import { Complaint } from '../complaint.ts'
import type { Context } from '../context.ts'
import { openKeyboard } from '../keyboard.ts'
import { findSession } from '../resolve.ts'
import { alternate, restored, safeText, screenFilter } from '../safe-text.ts'

/** What may wait for a terminal that is slower than the session. */
const mostWaiting_bytes = 16 * 1024 * 1024

export const watch: Command = {
  words: ['watch'],
  summary: 'Shows a session while it goes on; q or Ctrl-C ends the watching, not the session.',
  arguments: [{ name: 'session', doc: 'its uid or the beginning of it, or `last`', named: 'session' }],
  options: [{ name: 'channel', value: 'number', doc: 'which terminal of the session, if it has several; from 0' }],
  async run(given, context) {
    const session = await findSession(context.api(), given.words[0]!)
    if (!session.active) throw new Complaint(`The session is over. Run \`hawser play ${session.uid.slice(0, 12)}\`.`)
    context.say(`Watching ${safeText(session.username)} on ${safeText(session.device.name)}; q ends it.`)
    context.say(await show(context, session.uid, given.value('channel')))
    return undefined
  },
}

/** The sentence with which it ended. */
async function show(context: Context, uid: string, channel: string | undefined): Promise<string> {
  const { url, token, apiKey } = context.options()
  const address = new URL(`${url}${livePath.replace(':uid', uid)}`.replace(/^http/, 'ws'))
  if (channel !== undefined) address.searchParams.set('channel', channel)
  const headers: Record<string, string> = apiKey ? { 'x-api-key': apiKey } : { authorization: `Bearer ${token}` }
  const socket = new WebSocket(address, { headers })
  socket.binaryType = 'arraybuffer'
  const [filter, decoder] = [screenFilter(), new TextDecoder()]
  const { promise, resolve, reject } = Promise.withResolvers<string>()
  let [second, opened] = [false, false]
  const stop = (): void => resolve('')
  const draw = (bytes: ArrayBuffer): void => {
    const shown = filter(decoder.decode(bytes, { stream: true }))
    second = alternate(shown) ?? second
    process.stdout.write(shown)
    if (process.stdout.writableLength > mostWaiting_bytes) reject(new Complaint('Your terminal is too slow for this session.'))
  }
  socket.addEventListener('open', () => (opened = true))
  socket.addEventListener('message', (event) => {
    const data = event.data as unknown
    if (typeof data !== 'string') return draw(data as ArrayBuffer)
    const { kind, message } = JSON.parse(data) as { kind?: string; message?: string }
    if (kind === 'screen' && process.stdout.isTTY) process.stdout.write('\u001b[2J\u001b[H')
    if (kind === 'end') resolve(safeText(message ?? ''))
  })
  socket.addEventListener('error', () => reject(opened ? new Complaint('The connection to the server was lost.', 6) : refused()))
  socket.addEventListener('close', () => resolve('The connection was closed.'))
  process.on('SIGINT', stop).on('SIGTERM', stop)
  using _ = openKeyboard((key) => key === 'quit' && stop())
  try {
    return await promise
  } finally {
    process.off('SIGINT', stop).off('SIGTERM', stop)
    socket.close()
    if (process.stdout.isTTY) process.stdout.write(`${restored(second)}\r\n`)
  }
}

/** A WebSocket does not tell why it was refused. */
function refused(): Complaint {
  const { access } = contract.sessions.play
  return new Complaint(
    `The session cannot be watched. That takes at least the role ${access.role}, and a session with a terminal that is being recorded.`,
    4,
  )
}
