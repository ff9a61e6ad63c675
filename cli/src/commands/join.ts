// `hawser join` types in a live session of somebody else, once its person allows it. Everything typed goes to
// the session, except for Ctrl-] and the key after it, which are for this command.
import { defined } from '@hawser/contract/defined'
import type { LiveMessage, Participant, ParticipantMessage, Presence } from '@hawser/contract/sharing'
import type { Command } from '../command.ts'
import type { Context } from '../context.ts'
import { CliError } from '../errors.ts'
import { findSession } from '../resolve.ts'
import { safeText } from '../safe-text.ts'
import { showLive, type Participation } from './watch.ts'

const prefix = 0x1d
const help =
  'Ctrl-] then q leaves, t: only you type, e: everybody, 0 to 9 hands over, w: back to watching, a asks again, d: size of the driver, m: smallest size, p: who is there, Ctrl-]: sends it'

export const join: Command = {
  words: ['join'],
  summary: 'Asks to type in a live session and joins it once approved; Ctrl-] q leaves.',
  arguments: [
    {
      name: 'session',
      doc: 'its uid or the start of it, `last`, or an invitation link',
      completes: 'session',
    },
  ],
  options: [{ name: 'channel', value: 'number', doc: 'the terminal, if the session has several; from 0' }],
  async run(given, context) {
    if (!process.stdin.isTTY) throw new CliError('Joining a session needs a terminal.')
    const [, invitation] = /(?:^|#)(hwi_[a-z2-7]{32})$/.exec(given.words[0]!) ?? []
    if (invitation !== undefined) return joinInvited(invitation, context)
    const session = await findSession(context.api(), given.words[0]!)
    if (!session.active)
      throw new CliError(`The session has ended. Run \`hawser play ${session.uid.slice(0, 12)}\`.`)
    context.say(`Asking to type as ${safeText(session.username)} on ${safeText(session.device.name)} …`)
    context.say(`${help}.`)
    const query = { join: '', ...defined({ channel: given.value('channel') }) }
    context.say(await showLive(context, session.uid, query, participation()))
  },
}

/** Accepts the invitation and shows the session at once. An invitee who may type asks with Ctrl-] a. */
async function joinInvited(token: string, context: Context): Promise<void> {
  const { body } = await context.api().sessions.acceptInvitation({ body: { token } })
  const where = `${safeText(body.username)} on ${safeText(body.device_name)}`
  context.say(`${safeText(body.created_by)} invites you to ${where}, until ${body.expires_at}.`)
  context.say(`${body.mode === 'join' ? help : 'You can only watch; Ctrl-] then q leaves'}.`)
  context.say(await showLive(context, body.session_uid, { ticket: body.token }, participation(true)))
}

function participation(hasAsked = false): Participation {
  let presence: Presence | undefined
  let say: (message: ParticipantMessage) => void = () => undefined
  const tell = (text: string): void => void process.stdout.write(`\r\n[${text}]\r\n`)

  return {
    heard(message: LiveMessage) {
      if (message.kind === 'note') tell(safeText(message.message))
      if (message.kind !== 'present') return
      presence = message
      // Operators ask to type as they come in; viewers' consent is not needed.
      const own = message.people.find(({ id }) => id === message.you)
      if (!hasAsked && own?.state === 'watching') say({ kind: 'ask' })
      hasAsked = true
    },
    begin(socket, leave) {
      say = (message) => socket.readyState === socket.OPEN && socket.send(JSON.stringify(message))
      const resized = (): void => {
        const { columns, rows } = process.stdout
        if (columns > 0 && rows > 0) say({ kind: 'resize', width: columns, height: rows })
      }
      const keys: Readonly<Record<string, () => void>> = {
        q: leave,
        t: () => say({ kind: 'take' }),
        e: () => say({ kind: 'share' }),
        w: () => say({ kind: 'watch' }),
        a: () => say({ kind: 'ask' }),
        d: () => say({ kind: 'size', follow: 'driver' }),
        m: () => say({ kind: 'size', follow: 'smallest' }),
        p: () => tell(listOf(presence)),
      }
      let isCommand = false
      const command = (key: number): void => {
        const name = String.fromCharCode(key).toLowerCase()
        if (key === prefix) socket.send(Buffer.of(prefix))
        else if (/\d/.test(name)) say({ kind: 'hand', to: Number(name) })
        else if (keys[name]) keys[name]()
        else tell(help)
      }
      const read = (chunk: Buffer): void => {
        let from = 0
        for (const [at, byte] of chunk.entries()) {
          if (isCommand) {
            isCommand = false
            from = at + 1
            command(byte)
          } else if (byte === prefix) {
            if (at > from) socket.send(chunk.subarray(from, at))
            from = at + 1
            isCommand = true
          }
        }
        if (from < chunk.length) socket.send(chunk.subarray(from))
      }
      process.stdin.setRawMode(true)
      process.stdin.on('data', read).resume()
      process.stdout.on('resize', resized)
      socket.addEventListener('open', resized)
      return {
        [Symbol.dispose]() {
          process.stdout.off('resize', resized)
          process.stdin.off('data', read).pause()
          process.stdin.setRawMode(false)
        },
      }
    },
  }
}

function listOf(presence: Presence | undefined): string {
  if (!presence) return 'no answer yet'
  const { people, you, driver } = presence
  return people
    .map(({ id, name, state }) => {
      const own = id === you ? ' (you)' : ''
      return `${id}: ${safeText(name)}${own} ${wordFor(id, state, driver)}`
    })
    .join(', ')
}

/** A word for a person; while one alone types, the others who may type do not. */
function wordFor(id: number, state: Participant['state'], driver: Presence['driver']): string {
  if (state !== 'typing') return state
  if (driver === null) return 'types'
  return driver === id ? 'alone types' : 'may type'
}
