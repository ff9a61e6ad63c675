// Where an installed agent keeps its updates, and the steps that put one in charge. The files and what the
// launcher does with them are described in packages/update-launcher.ts. Every step is one rename: a power cut
// leaves the former agent or the new one, never half of one.
import {
  accessSync,
  constants,
  existsSync,
  linkSync,
  lstatSync,
  mkdirSync,
  readdirSync,
  readFileSync,
  renameSync,
  rmSync,
  statfsSync,
  unlinkSync,
} from 'node:fs'
import { open } from 'node:fs/promises'
import path from 'node:path'
import type { UpdateAbility } from '@hawser/contract/agents'
import { buildPattern } from '@hawser/contract/releases'
import { isOwnFolder } from '../folders.ts'
import { syncFolder, writeWhole } from '../whole-file.ts'

export interface Build {
  readonly format: number
  readonly version: string
  readonly build: string
}

export interface Place {
  /** The build of the running agent; undefined: it was not unpacked from a tarball. */
  readonly own: Build | undefined
  /** Made by `hawser-agent install`; updates never change it. */
  readonly launcher: string
  readonly updates: string
  ability(): Exclude<UpdateAbility, 'other-key'>
  /** The build on trial, which has not connected yet. */
  trying(): string | undefined
  /** Makes the build on trial the one to start, and removes the former update. */
  confirm(): void
  /** The build that failed and was replaced by the former one. */
  failed(): { readonly build: string; readonly reason: string } | undefined
  /** Called once the failure is noted elsewhere. */
  forgetFailed(): void
  free_bytes(): number
  folderOf(build: string): string
  /** Whether the whole build is there. */
  has(build: string): boolean
  /** Empty, to unpack into. */
  draft(): string
  /** Names the draft; the build is then complete. */
  keep(build: string): void
  /** The next start of the launcher tries this build. */
  stage(build: string): void
}

const buildShape = new RegExp(buildPattern)
const longestReason = 200

export function placeOf(script: string): Place {
  const folder = path.dirname(path.dirname(script))
  const isUpdate =
    path.basename(path.dirname(folder)) === 'updates' &&
    existsSync(path.join(folder, '../../bin/hawser-agent'))
  const base = isUpdate ? path.dirname(path.dirname(folder)) : folder
  const updates = path.join(base, 'updates')
  const at = (name: string): string => path.join(updates, name)
  const draft = at('unpacking')

  const buildIn = (name: string): string | undefined => {
    const text = existsSync(at(name)) ? readFileSync(at(name), 'utf8').trim() : ''
    return buildShape.test(text) ? text : undefined
  }
  const remove = (...names: readonly string[]): void => {
    for (const name of names) rmSync(at(name), { recursive: true, force: true })
  }
  const removeOthers = (...kept: readonly (string | undefined)[]): void => {
    for (const name of readdirSync(updates)) if (buildShape.test(name) && !kept.includes(name)) remove(name)
  }

  return {
    own: readBuild(folder),
    launcher: path.join(base, 'bin/hawser-agent'),
    updates,
    ability() {
      if (!readBuild(folder)) return 'package'
      if (process.getuid?.() !== 0) return 'not-root'
      if (!existsSync(updates) || !isOwnFolder(updates)) return 'not-installed'
      try {
        accessSync(updates, constants.W_OK)
        return 'self'
      } catch {
        return 'read-only'
      }
    },
    trying: () => (buildIn('next') === path.basename(folder) ? buildIn('next') : undefined),
    confirm() {
      renameSync(at('next'), at('current'))
      syncFolder(updates)
      remove('tries', 'why', 'failed')
      removeOthers(buildIn('current'))
    },
    failed() {
      const build = buildIn('failed')
      if (build === undefined) return undefined
      const said = existsSync(at('why')) ? readFileSync(at('why'), 'utf8').trim() : ''
      return { build, reason: (said || 'it did not start').slice(0, longestReason) }
    },
    forgetFailed() {
      const build = buildIn('failed')
      if (build !== undefined && build !== path.basename(folder)) remove(build)
      remove('failed', 'why', 'tries')
    },
    free_bytes() {
      const { bavail, bsize } = statfsSync(updates)
      return bavail * bsize
    },
    folderOf: at,
    has: (build) => readBuild(at(build))?.build === build,
    draft() {
      remove('unpacking')
      mkdirSync(draft, { mode: 0o755 })
      return draft
    },
    keep(build) {
      remove(build)
      syncFolder(draft)
      renameSync(draft, at(build))
      syncFolder(updates)
      removeOthers(build, buildIn('current'), path.basename(folder))
    },
    stage(build) {
      remove('tries', 'why', 'failed')
      writeWhole(at('next'), `${build}\n`, 0o644)
    },
  }
}

export function readBuild(folder: string): Build | undefined {
  try {
    const { format, version, build } = JSON.parse(readFileSync(path.join(folder, 'BUILD'), 'utf8')) as Build
    return buildShape.test(build) ? { format, version, build } : undefined
  } catch {
    return undefined
  }
}

/** Most updates carry the same Node, nine tenths of an agent: the disk then holds it once. */
export async function shareFile(known: string, copy: string): Promise<boolean> {
  if (!isPlainFile(known) || !(await isSame(known, copy))) return false
  const draft = `${copy}.link`
  try {
    linkSync(known, draft)
    renameSync(draft, copy)
    return true
  } catch {
    // Another file system, or one without links.
    if (existsSync(draft)) unlinkSync(draft)
    return false
  }
}

const isPlainFile = (file: string): boolean => lstatSync(file, { throwIfNoEntry: false })?.isFile() === true

async function isSame(a: string, b: string): Promise<boolean> {
  await using left = await open(a)
  await using right = await open(b)
  if ((await left.stat()).size !== (await right.stat()).size) return false
  const [one, other] = [Buffer.alloc(256 * 1024), Buffer.alloc(256 * 1024)]
  while (true) {
    const { bytesRead } = await left.read(one, 0, one.length, null)
    if (bytesRead === 0) return true
    for (let got = 0; got < bytesRead;) {
      const more = await right.read(other, got, bytesRead - got, null)
      if (more.bytesRead === 0) return false
      got += more.bytesRead
    }
    if (!one.subarray(0, bytesRead).equals(other.subarray(0, bytesRead))) return false
  }
}
