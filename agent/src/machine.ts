// Whether the device's key was made on this machine. Next to the key is a mark of the machine: a hash of
// its machine id and of the address of its first network card. Where the mark is another's, the key came with
// a copy of a disk, or the network card was replaced; the agent cannot tell which, so it only says so, unless
// HAWSER_RESET_COPIED_IDENTITY is set.
import { createHash } from 'node:crypto'
import { existsSync, readdirSync, readFileSync, renameSync, rmSync } from 'node:fs'
import path from 'node:path'
import { macAddress } from './identity.ts'
import { namespaceFile } from './namespace.ts'
import { serverKeyFile } from './server-key.ts'
import { writeWhole } from './whole-file.ts'

export const markFile = (keyFile: string): string => `${keyFile}.machine`

/** Empty: the machine has nothing to identify it. */
export function machineMark(mac = macAddress(), file = '/etc/machine-id'): string {
  const id = existsSync(file) ? readFileSync(file, 'utf8').trim() : ''
  if (id === '' && mac === undefined) return ''
  return createHash('sha256').update(`hawser machine 1\n${id}\n${mac}\n`).digest('hex')
}

/** Whether the key was first used on another machine. The first use writes the mark. */
export function isCopied(keyFile: string, mark = machineMark()): boolean {
  if (mark === '') return false
  const file = markFile(keyFile)
  try {
    const before = existsSync(keyFile) && existsSync(file) ? readFileSync(file, 'utf8').trim() : ''
    // An incomplete mark, after a power cut or on a full disk, belongs to nobody.
    if (/^[0-9a-f]{64}$/.test(before)) return before !== mark
    writeWhole(file, `${mark}\n`)
  } catch {
    // The key may be in a place that can only be read; then nothing is known.
  }
  return false
}

const oldEnding = '.old-'

export function discardedKeys(keyFile: string): string[] {
  const folder = path.dirname(keyFile)
  const beginning = `${path.basename(keyFile)}${oldEnding}`
  const names = existsSync(folder) ? readdirSync(folder) : []
  return names
    .filter((name) => name.startsWith(beginning) && /^\d{8}T\d{6}Z$/.test(name.slice(beginning.length)))
    .map((name) => path.join(folder, name))
}

/**
 * Moves the key aside, so that the next start makes another. Returns its new place; undefined: there was
 * none.
 */
export function discardIdentity(keyFile: string, now = new Date()): string | undefined {
  rmSync(markFile(keyFile), { force: true })
  // Another device presents the enrolment token, if it has one, itself.
  rmSync(namespaceFile(keyFile), { force: true })
  rmSync(serverKeyFile(keyFile), { force: true })
  if (!existsSync(keyFile)) return undefined
  const aside = `${keyFile}${oldEnding}${now.toISOString().replaceAll(/[-:]|\.\d+/g, '')}`
  renameSync(keyFile, aside)
  return aside
}
