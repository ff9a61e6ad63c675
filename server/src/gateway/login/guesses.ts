// Tells a new guess at a password from one that is repeated. A script that tries one device again and again while
// it is offline guesses nothing, so only every tenth repetition counts against its address. Whether the device
// exists, is online or has judged the password makes no difference, or strangers could learn it from what counts.
import { createHmac, randomBytes } from 'node:crypto'
import { BoundedMap } from '../../kit/bounded-map.ts'

export interface PasswordGuesses {
  counts(source: string, sshid: string, password: string): boolean
}

/** A forgotten guess counts again. */
const mostKnown = 20_000
/** Repetitions cost work, too. */
const everyNth = 10

export function passwordGuesses(): PasswordGuesses {
  /** A key of this process, so that nobody else can test passwords against the marks. */
  const key = randomBytes(32)
  const known = new BoundedMap<string, number>(mostKnown, (times) => times > 1)
  return {
    counts(source, sshid, password) {
      const parts = JSON.stringify([source, sshid, password])
      const mark = createHmac('sha256', key).update(parts).digest('base64')
      const times = known.get(mark) ?? 0
      known.set(mark, times + 1)
      return times % everyNth === 0
    },
  }
}
