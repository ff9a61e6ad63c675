// The program that an installation copies. An agent from a tarball is a folder with a Node of its own. An
// agent from npm or a checkout is not copied: npm or git updates it in its place.
import {
  chmodSync,
  cpSync,
  existsSync,
  lstatSync,
  mkdirSync,
  readdirSync,
  readlinkSync,
  realpathSync,
  renameSync,
  rmSync,
  symlinkSync,
} from 'node:fs'
import path from 'node:path'
import { ConfigError } from '../config.ts'
import { isPlainPath } from './options.ts'

export type Form =
  | { readonly kind: 'folder'; readonly from: string }
  | { readonly kind: 'in place'; readonly command: readonly string[] }

export function formOf(execPath: string, script: string | undefined): Form {
  const folder = path.dirname(path.dirname(execPath))
  if (existsSync(path.join(folder, 'bin/hawser-agent')) && script?.startsWith(`${folder}/`))
    return { kind: 'folder', from: folder }
  return { kind: 'in place', command: [execPath, script ?? ''] }
}

export const ownForm = (): Form =>
  formOf(realpathSync(process.execPath), process.argv[1] && realpathSync(process.argv[1]))

const program = 'bin/hawser-agent'

/** The link on the administrator's PATH. */
const handle = '/usr/local/bin/hawser-agent'

/** Returns the command that starts it, as the device spells it. */
export function installProgram(form: Form, root: string, dir: string): readonly string[] {
  if (form.kind === 'in place') {
    const wrong = form.command.find((word) => !isPlainPath(word))
    if (wrong !== undefined)
      throw new ConfigError(`The agent is in a folder whose name services cannot use: ${wrong}`)
    if (root !== '')
      throw new ConfigError(
        'This agent was installed by npm or runs from a checkout. Use the tarball to install it into another system.',
      )
    return form.command
  }
  const place = root + dir
  const [next, old] = [`${place}.new`, `${place}.old`]
  if (existsSync(place) && !isOurs(place))
    throw new ConfigError(`${place} already exists and is not a Hawser agent: choose another --dir.`)
  if (form.from !== place) {
    for (const folder of [next, old]) rmSync(folder, { recursive: true, force: true })
    mkdirSync(path.dirname(next), { recursive: true })
    cpSync(form.from, next, { recursive: true, verbatimSymlinks: true })
    for (const folder of [next, path.join(next, 'bin')]) chmodSync(folder, 0o755)
    // Where the agent keeps its updates. An agent that is not installed has no such folder, and no updates.
    mkdirSync(path.join(next, 'updates'), { mode: 0o755 })
    // Two moves: there is an old agent, none for an instant, and the new one, but never half of one.
    if (existsSync(place)) renameSync(place, old)
    renameSync(next, place)
    rmSync(old, { recursive: true, force: true })
  }
  const file = path.join(dir, program)
  if (isFree(root + handle, file)) {
    mkdirSync(path.dirname(root + handle), { recursive: true })
    rmSync(root + handle, { force: true })
    symlinkSync(file, root + handle)
  }
  return [file]
}

/** Returns whether there was something to remove. */
export function removeProgram(root: string, dir: string): boolean {
  const place = root + dir
  if (isFree(root + handle, path.join(dir, program)) && isLink(root + handle))
    rmSync(root + handle, { force: true })
  if (!existsSync(place) || !isOurs(place)) return false
  rmSync(place, { recursive: true })
  return true
}

const isOurs = (place: string): boolean =>
  existsSync(path.join(place, program)) || readdirSync(place).length === 0

const isLink = (file: string): boolean =>
  lstatSync(file, { throwIfNoEntry: false })?.isSymbolicLink() === true

/** Whether nothing is there, or a link of ours. */
function isFree(file: string, target: string): boolean {
  const found = lstatSync(file, { throwIfNoEntry: false })
  if (!found) return true
  return found.isSymbolicLink() && readlinkSync(file) === target
}
