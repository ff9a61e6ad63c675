// The agents that `npm run build` makes: size, hash, and the file BUILD, with which an archive begins. Each
// is read once, as a stream, and again only when it has changed.
import { createHash } from 'node:crypto'
import { createReadStream } from 'node:fs'
import { stat } from 'node:fs/promises'
import path from 'node:path'
import { constants, gunzip } from 'node:zlib'
import { promisify } from 'node:util'
import { buildPattern, type Release } from '@hawser/contract/releases'

export const architectures = ['x64', 'arm64'] as const
export type AgentArchitecture = (typeof architectures)[number]

export const archiveName = (arch: AgentArchitecture): string => `hawser-agent-linux-${arch}.tar.gz`

export type AgentArchive = Omit<Release, 'released_at'>

export interface AgentArchives {
  list(): Promise<readonly AgentArchive[]>
  /** As of the last list. */
  sha256Of(arch: AgentArchitecture): string | undefined
}

/** BUILD and its header are found in these; the archive is compressed. */
const head_bytes = 64 * 1024
const block_bytes = 512
const longestBuild_bytes = 4096

export function agentArchives(
  folder: string | undefined,
  onUnreadable: (file: string, error: unknown) => void,
): AgentArchives {
  const known = new Map<AgentArchitecture, { readonly mark: string; readonly archive?: AgentArchive }>()

  async function look(arch: AgentArchitecture): Promise<AgentArchive | undefined> {
    const file = path.join(folder ?? '', archiveName(arch))
    const found = folder === undefined ? undefined : await stat(file).catch(() => undefined)
    if (!found) {
      known.delete(arch)
      return undefined
    }
    const mark = `${found.ino} ${found.size} ${found.mtimeMs}`
    const before = known.get(arch)
    if (before?.mark === mark) return before.archive
    try {
      const archive = await readArchive(file, arch)
      known.set(arch, { mark, archive })
      return archive
    } catch (error) {
      known.set(arch, { mark })
      onUnreadable(file, error)
      return undefined
    }
  }

  return {
    async list() {
      const found: AgentArchive[] = []
      for (const arch of architectures) {
        const archive = await look(arch)
        if (archive) found.push(archive)
      }
      return found
    },
    sha256Of: (arch) => known.get(arch)?.archive?.sha256,
  }
}

async function readArchive(file: string, arch: string): Promise<AgentArchive> {
  const hash = createHash('sha256')
  const head: Buffer[] = []
  let size = 0
  for await (const chunk of createReadStream(file)) {
    const part = chunk as Buffer
    hash.update(part)
    if (size < head_bytes) head.push(part)
    size += part.length
  }
  return { ...(await readBuild(Buffer.concat(head))), arch, sha256: hash.digest('hex'), size }
}

async function readBuild(head: Buffer): Promise<Pick<Release, 'format' | 'version' | 'build'>> {
  const bytes = await promisify(gunzip)(head, { finishFlush: constants.Z_SYNC_FLUSH })
  const name = bytes.subarray(0, 100).toString('latin1').split('\0', 1)[0]
  const size = Number.parseInt(bytes.subarray(124, 136).toString('latin1'), 8)
  if (name !== 'hawser-agent/BUILD' || !(size <= longestBuild_bytes))
    throw new Error('the archive does not begin with BUILD')
  const text = bytes.subarray(block_bytes, block_bytes + size).toString('utf8')
  const { format, version, build } = JSON.parse(text) as Pick<Release, 'format' | 'version' | 'build'>
  if (!Number.isSafeInteger(format) || typeof version !== 'string' || !new RegExp(buildPattern).test(build))
    throw new Error('BUILD cannot be read')
  return { format, version, build }
}
