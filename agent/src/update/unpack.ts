// Unpacks an agent's tarball into a folder. It reads only what our own build writes: plain files below
// `hawser-agent/`. Links, devices, absolute paths, `..`, a second file of the same name, and more than the
// bounds below are refused. Every file is on the disk before the folder gets its name.
import { createReadStream, mkdirSync } from 'node:fs'
import { open, type FileHandle } from 'node:fs/promises'
import path from 'node:path'
import { createGunzip } from 'node:zlib'

export interface UnpackLimits {
  readonly most_bytes: number
  readonly mostFiles: number
}

const usualLimits: UnpackLimits = { most_bytes: 1024 ** 3, mostFiles: 10_000 }
const block_bytes = 512
const top = 'hawser-agent/'

export class BadArchive extends Error {
  override readonly name = 'BadArchive'
}

interface Entry {
  readonly name: string
  readonly size: number
  readonly isFolder: boolean
  readonly isExecutable: boolean
}

export async function unpack(archive: string, folder: string, limits = usualLimits): Promise<void> {
  using reader = blocks(archive)
  await unpackAll(reader, folder, limits)
}

async function unpackAll(reader: Reader, folder: string, limits: UnpackLimits): Promise<void> {
  let files = 0
  let bytes = 0
  while (true) {
    const header = await reader.read(block_bytes)
    if (!header) throw new BadArchive('the archive is not complete')
    // Two empty blocks end an archive.
    if (header.every((byte) => byte === 0)) break
    const entry = readHeader(header)
    files += 1
    bytes += entry.size
    if (files > limits.mostFiles || bytes > limits.most_bytes)
      throw new BadArchive('the archive holds more than an agent has')
    const place = path.join(folder, entry.name)
    if (entry.isFolder) {
      mkdirSync(place, { recursive: true, mode: 0o755 })
      continue
    }
    mkdirSync(path.dirname(place), { recursive: true, mode: 0o755 })
    // `wx` follows no link and replaces nothing.
    const file = await open(place, 'wx', entry.isExecutable ? 0o755 : 0o644)
    try {
      await copy(reader, file, entry.size)
      await file.chmod(entry.isExecutable ? 0o755 : 0o644)
      await file.sync()
    } finally {
      await file.close()
    }
  }
  if (files === 0) throw new BadArchive('the archive is empty')
}

async function copy(reader: Reader, file: FileHandle, size: number): Promise<void> {
  for (let left = size; left > 0;) {
    const part = await reader.read(Math.min(left, 64 * 1024))
    if (!part) throw new BadArchive('the archive is not complete')
    await file.writeFile(part)
    left -= part.length
  }
  const padding = (block_bytes - (size % block_bytes)) % block_bytes
  if (padding > 0 && !(await reader.read(padding))) throw new BadArchive('the archive is not complete')
}

function readHeader(header: Buffer): Entry {
  const text = (start: number, length: number): string => {
    const field = header.subarray(start, start + length)
    const end = field.indexOf(0)
    return field.subarray(0, end < 0 ? length : end).toString('utf8')
  }
  const octal = (start: number, length: number): number => {
    const digits = text(start, length).trim()
    if (!/^[0-7]+$/.test(digits)) throw new BadArchive('the archive cannot be read')
    return Number.parseInt(digits, 8)
  }
  const sum = header.reduce((total, byte, at) => total + (at >= 148 && at < 156 ? 32 : byte), 0)
  if (octal(148, 8) !== sum) throw new BadArchive('the archive cannot be read')
  const kind = text(156, 1)
  if (kind !== '0' && kind !== '' && kind !== '5')
    throw new BadArchive('the archive holds something that is neither a file nor a folder')
  const prefix = text(257, 5) === 'ustar' ? text(345, 155) : ''
  const whole = prefix === '' ? text(0, 100) : `${prefix}/${text(0, 100)}`
  const isFolder = kind === '5'
  return {
    name: innerName(whole, isFolder),
    size: isFolder ? 0 : octal(124, 12),
    isFolder,
    isExecutable: (octal(100, 8) & 0o100) !== 0,
  }
}

/** Below the folder at the archive's top. */
function innerName(whole: string, isFolder: boolean): string {
  const name = isFolder ? `${whole.replace(/\/$/, '')}/` : whole
  const inner = name.startsWith(top) ? name.slice(top.length, isFolder ? -1 : undefined) : undefined
  const parts = inner?.split('/') ?? []
  const isPlain = parts.every((part) => /^[\w+@.-]+$/.test(part) && part !== '.' && part !== '..')
  if (inner === undefined || (inner === '' ? !isFolder : !isPlain))
    throw new BadArchive('the archive holds a path that an agent does not have')
  return inner
}

interface Reader extends Disposable {
  /** Undefined: the archive ends before. */
  read(bytes: number): Promise<Buffer | undefined>
}

function blocks(archive: string): Reader {
  const source = createReadStream(archive)
  const gunzip = createGunzip()
  source.on('error', (error) => gunzip.destroy(error))
  // A reader that stopped early does not need the rest.
  gunzip.on('error', () => undefined)
  const chunks = source.pipe(gunzip)[Symbol.asyncIterator]() as AsyncIterator<Buffer, undefined>
  let held: Buffer = Buffer.alloc(0)
  return {
    async read(bytes) {
      while (held.length < bytes) {
        const next = await chunks.next()
        if (next.done === true) return undefined
        held = held.length === 0 ? next.value : Buffer.concat([held, next.value])
      }
      const part = held.subarray(0, bytes)
      held = held.subarray(bytes)
      return part
    },
    [Symbol.dispose]() {
      source.destroy()
      gunzip.destroy()
    },
  }
}
