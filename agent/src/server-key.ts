// The server's key for approvals: of logins (key-approval.ts), of targets (targets.ts), and of the order to
// hang up (hang-up.ts). The agent stores it at its first enrolment, next to the device's key, with the address
// of the server. Another key of the same server is not trusted: until a person removes the file, logins work
// without approvals, by asking the server, and web services do not.
import { verify } from 'node:crypto'
import { readFileSync } from 'node:fs'
import { writeWhole } from './whole-file.ts'

export const serverKeyFile = (keyFile: string): string => `${keyFile}.server`

/**
 * Pins the server's key, unless there is one. Returns the blob of the pinned key; undefined: there is none,
 * or it is another one.
 */
export function pinServerKey(keyFile: string, server: string, told: string | undefined): Buffer | undefined {
  if (told === undefined) return undefined
  const file = serverKeyFile(keyFile)
  const wanted = `${server} ${told}`
  const kept = read(file)
  if (kept?.startsWith(`${server} `)) return kept === wanted ? blobIn(told) : undefined
  write(file, `${wanted}\n`)
  return blobIn(told)
}

/** Whether the server with this pinned key (its blob) has signed the text. `signature` is base64. */
export async function isSigned(
  text: string,
  signature: unknown,
  pinned: Buffer | undefined,
): Promise<boolean> {
  if (typeof signature !== 'string' || signature === '' || !pinned) return false
  const { knownKey } = await import('@hawser/ssh')
  try {
    const { type, object } = knownKey(pinned)
    return type === 'ssh-ed25519' && verify(null, Buffer.from(text), object, Buffer.from(signature, 'base64'))
  } catch {
    return false
  }
}

/** The blob in a line of OpenSSH. Whether it is a key shows at the first signature. */
function blobIn(line: string): Buffer {
  return Buffer.from(line.split(' ', 2)[1] ?? '', 'base64')
}

function read(file: string): string | undefined {
  try {
    return readFileSync(file, 'utf8').trim()
  } catch {
    return undefined
  }
}

function write(file: string, text: string): void {
  try {
    writeWhole(file, text)
  } catch {
    // The key may be in a place that can only be read: then it is pinned until the agent stops.
  }
}
