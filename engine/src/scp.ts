// The old protocol of scp, which clients up to OpenSSH 8 and small ones speak: they run `scp -t` or `scp -f`
// at the other end and talk to it. Containers seldom have that program, so this is it, over the files of the
// container.
//   C<mode> <size> <name> LF, the bytes, NUL      a file
//   D<mode> 0 <name> LF … E LF                    a folder and what is in it
//   T<mtime> 0 <atime> 0 LF                       times of the one that comes next
// Each is answered: NUL for well, 01 and a line for a failure that is told, 02 and a line for the end. Names
// that come are names in a folder and nothing else: the sender cannot choose another place.
import path from 'node:path'
import { Open, type Attributes, type Channel, type FileSystem } from '@hawser/ssh'

export interface ScpRequest {
  readonly receives: boolean
  readonly recursive: boolean
  readonly times: boolean
  /** The target has to be a folder. */
  readonly folder: boolean
  /** In the notation of a shell. */
  readonly words: string
}

/** Undefined: the command is not scp's. */
export function readScp(command: string): ScpRequest | undefined {
  const [, options = '', words = ''] = /^scp((?: -[a-zA-Z]+)+)(?: --)? (.+)$/s.exec(command) ?? []
  const has = (letter: string): boolean => options.includes(letter)
  if (has('t') === has('f')) return undefined
  return { receives: has('t'), recursive: has('r'), times: has('p'), folder: has('d'), words }
}

type ScpChannel = Pick<Channel, 'read' | 'write'>

const longestLine = 8_192
const piece_bytes = 128 * 1024
const deepest = 100
const isFolder = ({ mode = 0 }: Attributes): boolean => (mode & 0o170000) === 0o040000
const isFile = ({ mode = 0 }: Attributes): boolean => (mode & 0o170000) === 0o100000

/** The other end is gone, or does not speak scp. */
class Over extends Error {}

/** Resolves with the exit status of scp. */
export async function serveScp(
  channel: ScpChannel,
  files: FileSystem,
  request: ScpRequest,
  paths: readonly string[],
): Promise<number> {
  const line = scpLine(channel)
  try {
    if (!request.receives) return await send(line, files, request, paths)
    const [target] = paths
    if (target === undefined || paths.length > 1) return await refuse(line, 'ambiguous target')
    const there = await files.stat(target).catch(() => undefined)
    if (request.folder && !(there && isFolder(there))) return await refuse(line, `${target}: Not a directory`)
    return (await receive(line, files, request, target, there !== undefined && isFolder(there), 0)) ? 0 : 1
  } catch (error) {
    if (error instanceof Over) return 1
    throw error
  }
}

type Line = ReturnType<typeof scpLine>

async function refuse(line: Line, text: string): Promise<1> {
  await line.fail(text)
  return 1
}

const reasons: Readonly<Record<string, string>> = {
  EACCES: 'Permission denied',
  EISDIR: 'Is a directory',
  ENOENT: 'No such file or directory',
  ENOSPC: 'No space left on device',
  ENOTDIR: 'Not a directory',
  EROFS: 'Read-only file system',
}
const reasonOf = (error: unknown): string =>
  reasons[String((error as NodeJS.ErrnoException).code)] ?? 'Failure'

function scpLine(channel: ScpChannel) {
  let rest: Buffer = Buffer.alloc(0)
  async function more(): Promise<boolean> {
    for (;;) {
      const chunk = await channel.read()
      if (!chunk) return false
      if (chunk.stream !== 0) continue
      rest = rest.length === 0 ? chunk.bytes : Buffer.concat([rest, chunk.bytes])
      return true
    }
  }
  const say = async (text: string): Promise<void> => channel.write(Buffer.from(text))
  const readLine = async (): Promise<string | undefined> => {
    for (;;) {
      const end = rest.indexOf(0x0a)
      if (end >= 0) {
        const text = rest.toString('utf8', 0, end)
        rest = rest.subarray(end + 1)
        return text
      }
      if (rest.length > longestLine) throw new Over('A line is too long.')
      if (!(await more())) return undefined
    }
  }
  return {
    readLine,
    write: async (bytes: Uint8Array): Promise<void> => channel.write(bytes),
    say,
    well: async (): Promise<void> => say('\0'),
    /** Shows a warning to the person; the copy continues. */
    async fail(text: string): Promise<void> {
      await say(`\x01scp: ${text.replaceAll(/[^\x20-\x7e\u0080-\uffff]/g, '?')}\n`)
    },
    async take(most: number): Promise<Buffer> {
      if (rest.length === 0 && !(await more())) throw new Over('The bytes ended too early.')
      const bytes = rest.subarray(0, most)
      rest = rest.subarray(bytes.length)
      return bytes
    },
    /** The other end's answer: false for a failure. */
    async answered(): Promise<boolean> {
      if (rest.length === 0 && !(await more())) throw new Over('There was no answer.')
      const code = rest[0]!
      rest = rest.subarray(1)
      if (code === 0) return true
      await readLine()
      if (code !== 1) throw new Over('The other end gave up.')
      return false
    },
  }
}

/** False if something failed. */
async function receive(
  line: Line,
  files: FileSystem,
  request: ScpRequest,
  target: string,
  into: boolean,
  depth: number,
): Promise<boolean> {
  let good = true
  let times: Pick<Attributes, 'atime' | 'mtime'> | undefined
  await line.well()
  for (let text = await line.readLine(); text !== undefined; text = await line.readLine()) {
    if (text.startsWith('\x01')) {
      good = false
      continue
    }
    if (text === 'E' && depth > 0) {
      await line.well()
      return good
    }
    const [, mtime, atime] = /^T(\d{1,12}) \d+ (\d{1,12}) \d+$/.exec(text) ?? []
    if (mtime !== undefined) {
      times = { mtime: Number(mtime), atime: Number(atime) }
      await line.well()
      continue
    }
    const [, kind, octal = '', length = '', name = ''] =
      /^([CD])([0-7]{4,6}) (\d{1,15}) (.+)$/s.exec(text) ?? []
    if (
      kind === undefined ||
      name.includes('/') ||
      name === '.' ||
      name === '..' ||
      (kind === 'D' && (!request.recursive || depth >= deepest))
    ) {
      await line.say('\x02scp: protocol error\n')
      throw new Over('Nonsense came.')
    }
    const where = into ? path.posix.join(target, name) : target
    const mode = Number.parseInt(octal, 8) & 0o777
    const came = times
    times = undefined
    const done =
      kind === 'C'
        ? receiveFile(
            line,
            files,
            where,
            mode,
            Number(length),
            async () => request.times && files.change(where, { mode, ...came }, true),
          )
        : receiveFolder(
            line,
            files,
            request,
            where,
            mode,
            depth,
            async () => request.times && files.change(where, { mode, ...came }, true),
          )
    if (!(await done)) good = false
  }
  return good
}

type Finish = () => Promise<unknown>

async function receiveFolder(
  line: Line,
  files: FileSystem,
  request: ScpRequest,
  where: string,
  mode: number,
  depth: number,
  finish: Finish,
): Promise<boolean> {
  const there = await files.stat(where).catch(() => undefined)
  try {
    // Without the right to enter it nothing could be put there.
    if (!there) await files.makeFolder(where, mode | 0o700)
  } catch (error) {
    await line.fail(`${where}: ${reasonOf(error)}`)
    return false
  }
  const good = await receive(line, files, request, where, true, depth + 1)
  // The file's end was already answered, so a failure can only be counted.
  return finish().then(
    () => good,
    () => false,
  )
}

async function receiveFile(
  line: Line,
  files: FileSystem,
  where: string,
  mode: number,
  size: number,
  finish: Finish,
): Promise<boolean> {
  let failure: unknown
  const note = (error: unknown): void => void (failure ??= error)
  const file = await files.open(where, Open.write | Open.create | Open.truncate, mode).catch(note)
  if (!file) {
    await line.fail(`${where}: ${reasonOf(failure)}`)
    return false
  }
  let whole: boolean
  try {
    await line.well()
    for (let position = 0; position < size;) {
      const bytes = await line.take(Math.min(size - position, piece_bytes))
      if (!failure) await file.write(bytes, position).catch(note)
      position += bytes.length
    }
    whole = await line.answered()
  } finally {
    // Also when the client stops in the middle: a file that nobody closes would end the process later.
    await file.close().catch(note)
  }
  if (!failure) await finish().catch(note)
  await (failure ? line.fail(`${where}: ${reasonOf(failure)}`) : line.well())
  return whole && !failure
}

async function send(
  line: Line,
  files: FileSystem,
  request: ScpRequest,
  paths: readonly string[],
): Promise<number> {
  await line.answered()
  let status = 0
  for (const each of paths) if (!(await sendOne(line, files, request, each, 0))) status = 1
  return status
}

async function told(line: Line, text: string): Promise<false> {
  await line.fail(text)
  return false
}

async function sendOne(
  line: Line,
  files: FileSystem,
  request: ScpRequest,
  from: string,
  depth: number,
): Promise<boolean> {
  const about = await files.stat(from).catch(() => undefined)
  if (!about || depth > deepest) return told(line, `${from}: No such file or directory`)
  const folder = isFolder(about)
  if (folder ? !request.recursive : !isFile(about)) return told(line, `${from}: not a regular file`)
  const file = folder ? undefined : await files.open(from, Open.read, 0).catch(() => undefined)
  if (!folder && !file) return told(line, `${from}: Permission denied`)
  try {
    if (request.times) {
      await line.say(`T${about.mtime ?? 0} 0 ${about.atime ?? 0} 0\n`)
      if (!(await line.answered())) return false
    }
    const mode = ((about.mode ?? 0) & 0o7777).toString(8).padStart(4, '0')
    const size = folder ? 0 : (about.size ?? 0)
    // A line end in a name cannot be said in this protocol.
    const name = (path.posix.basename(path.posix.resolve('/', from)) || '.').replaceAll('\n', '?')
    await line.say(`${folder ? 'D' : 'C'}${mode} ${size} ${name}\n`)
    if (!(await line.answered())) return false
    if (file) return await sendBytes(line, file, size)
  } finally {
    await file?.close().catch(() => undefined)
  }
  let good = true
  for await (const entry of files.list(from)) {
    if (entry.name === '.' || entry.name === '..') continue
    if (!(await sendOne(line, files, request, `${from}/${entry.name}`, depth + 1))) good = false
  }
  await line.say('E\n')
  return (await line.answered()) && good
}

async function sendBytes(
  line: Line,
  file: Awaited<ReturnType<FileSystem['open']>>,
  size: number,
): Promise<boolean> {
  let good = true
  for (let position = 0; position < size;) {
    const room = Buffer.alloc(Math.min(size - position, piece_bytes))
    const got = good ? await file.read(room, position).catch(() => 0) : 0
    // The promised bytes are sent, whatever became of the file.
    if (got === 0) good = false
    await line.write(got === 0 ? room : room.subarray(0, got))
    position += got === 0 ? room.length : got
  }
  await (good ? line.well() : line.fail('the file became shorter'))
  return (await line.answered()) && good
}
