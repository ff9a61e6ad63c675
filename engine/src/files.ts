// The files of a container as an SFTP server shows them, by way of a shell in it: every question is a small
// script, run as the user who logged in, so that the container's own rights decide. A file that is open is
// known by its path; what is written to it goes to a program of its own, which ends when somebody writes
// elsewhere in it or looks. The tools are those that the smallest containers have (busybox): stat, find, dd,
// head, cat, readlink, touch and their like.
import {
  Open,
  SftpFailure,
  Status,
  type Attributes,
  type Entry,
  type FileSystem,
  type OpenFile,
} from '@hawser/ssh'
import { CollectedBytes } from './collected-bytes.ts'
import type { Exec } from './exec.ts'
import { quoted, type ScriptResult, type ContainerShell } from './container-shell.ts'

/** A folder of about a hundred thousand files. */
const largestFolder_bytes = 8 * 1024 * 1024
const longestComplaint = 1_000
/** type and permissions in hex, size, uid, gid, atime, mtime */
const format = '%f %s %u %g %X %Y'

/** Error messages of the tools, and the errno each means. */
const complaints: readonly (readonly [text: string, code: string])[] = [
  ['No such file', 'ENOENT'],
  ['nonexistent directory', 'ENOENT'],
  ['Directory nonexistent', 'ENOENT'],
  ['Not a directory', 'ENOTDIR'],
  ['Permission denied', 'EACCES'],
  ['Operation not permitted', 'EPERM'],
  ['Read-only file system', 'EROFS'],
  ['File exists', 'EEXIST'],
  ['cannot overwrite existing file', 'EEXIST'],
  ['Directory not empty', 'ENOTEMPTY'],
  ['Is a directory', 'EISDIR'],
  ['No space left on device', 'ENOSPC'],
  ['Too many levels of symbolic links', 'ELOOP'],
]

function failed({ complaint }: ScriptResult): Error {
  const code = complaints.find(([text]) => complaint.includes(text))?.[1]
  return code
    ? Object.assign(new Error('The container refused.'), { code })
    : new SftpFailure(Status.failure, 'Failure')
}

/** A path as a word of a script: never an option, and relative to the home where the shell was started. */
function at(file: string): string {
  if (file.includes('\0')) throw new SftpFailure(Status.noSuchFile, 'No such file or directory')
  return quoted(file === '' ? '.' : file.startsWith('/') ? file : `./${file}`)
}

const refuse = (text: string): string => `{ echo ${quoted(text)} >&2; exit 1; }`

type Run = (script: string, options?: Parameters<ContainerShell['run']>[1]) => Promise<Buffer>
type Start = (script: string) => Promise<Exec>

export function containerFiles(shell: ContainerShell, mark: string, start: Start): FileSystem {
  const run: Run = async (script, options) => {
    const done = await shell.run(script, options)
    if (done.status !== 0) throw failed(done)
    return done.output
  }
  const text = async (script: string): Promise<string> =>
    (await run(script)).toString('utf8').replace(/\n$/, '')
  const stat = async (file: string, followLink: boolean): Promise<Attributes> =>
    readStat(await text(`stat ${followLink ? '-L ' : ''}-c '${format}' -- ${at(file)}`))

  async function change(file: string, attributes: Attributes, followLink: boolean): Promise<void> {
    const steps = changingSteps(file, attributes, followLink)
    if (steps.length > 0) await run(`set -e; ${steps.join('; ')}`)
  }

  return {
    async open(file, flags, mode) {
      await run(`set -e; ${openingSteps(file, flags, mode).join('; ')}`)
      return openFile(file, (flags & Open.append) !== 0, { run, start, stat, change })
    },
    stat: async (file) => stat(file, true),
    lstat: async (file) => stat(file, false),
    change,
    list: (folder) => listed(run, mark, folder),
    remove: async (file) =>
      void (await run(
        `[ ! -d ${at(file)} ] || [ -L ${at(file)} ] || ${refuse('Is a directory')}; rm -- ${at(file)} </dev/null`,
      )),
    makeFolder: async (folder, mode) =>
      void (await run(`mkdir -m ${(mode & 0o7777 & ~0o022).toString(8)} -- ${at(folder)}`)),
    removeFolder: async (folder) => void (await run(`rmdir -- ${at(folder)}`)),
    resolve: async (file) => text(`readlink -f -- ${at(file)}`),
    async rename(from, to, overwrite) {
      const [source, target] = [at(from), at(to)]
      const isFolder = (file: string): string => `[ -d ${file} ] && [ ! -L ${file} ]`
      // mv would move into an existing folder.
      const onto = overwrite
        ? `if ${isFolder(target)}; then ${isFolder(source)} || ${refuse('Is a directory')}; rmdir -- ${target}; fi`
        : `if [ -e ${target} ] || [ -L ${target} ]; then ${refuse('File exists')}; fi`
      const linked = `if [ -L ${target} ]; then rm -- ${target} </dev/null; fi`
      await run(
        `set -e; [ -e ${source} ] || [ -L ${source} ] || ${refuse('No such file or directory')}; ${onto}; ${linked}; mv -f -- ${source} ${target} </dev/null`,
      )
    },
    readLink: async (file) => text(`readlink -- ${at(file)}`),
    async link(target, file, symbolic) {
      const where = at(file)
      const taken = `if [ -e ${where} ] || [ -L ${where} ]; then ${refuse('File exists')}; fi`
      if (target.includes('\0')) throw new SftpFailure(Status.failure, 'Failure')
      await run(`${taken}; ln ${symbolic ? `-s -- ${quoted(target)}` : `-- ${at(target)}`} ${where}`)
    },
    async space(file) {
      const [block_bytes, blocks, free, available, files, filesFree] = numbers(
        await text(`stat -f -c '%S %b %f %a %c %d' -- ${at(file)}`),
        6,
      )
      return {
        block_bytes: block_bytes!,
        blocks: blocks!,
        free: free!,
        available: available!,
        files: files!,
        filesFree: filesFree!,
      }
    },
  }
}

function openingSteps(file: string, flags: number, mode: number): string[] {
  const where = at(file)
  // Opening a pipe would wait for its other end.
  const steps = [`[ ! -p ${where} ] || ${refuse('Permission denied')}`]
  if (!(flags & Open.write)) steps.push(`: < ${where}`)
  else {
    const make = `umask ${((~mode & 0o777) | 0o022).toString(8)}; set -C; : > ${where}; chmod ${(mode & 0o777 & ~0o022).toString(8)} ${where}`
    const there = `[ ! -d ${where} ] || ${refuse('Is a directory')}; ${flags & Open.truncate ? `: > ${where}` : `: 1<> ${where}`}`
    if (flags & Open.create && flags & Open.exclusive)
      steps.push(`[ ! -e ${where} ] && [ ! -L ${where} ] || ${refuse('File exists')}`, make)
    else if (flags & Open.create) steps.push(`if [ -e ${where} ]; then ${there}; else ( ${make} ); fi`)
    else steps.push(`[ -e ${where} ] || ${refuse('No such file or directory')}`, there)
  }
  return steps
}

function changingSteps(
  file: string,
  { size, uid, gid, mode, atime, mtime }: Attributes,
  followLink: boolean,
): string[] {
  const where = at(file)
  const steps: string[] = []
  // dd cuts its output where it begins to write, and writes nothing.
  if (size !== undefined)
    steps.push(
      `[ -f ${where} ] || ${refuse('No such file or directory')}`,
      `dd bs=1 seek=${size} count=0 of=${where} 2>/dev/null`,
    )
  if (mode !== undefined && followLink) steps.push(`chmod ${(mode & 0o7777).toString(8)} ${where}`)
  if (atime !== undefined && mtime !== undefined) {
    const touch = (which: string, seconds: number): string =>
      `touch -c ${followLink ? '' : '-h '}${which} -d @${seconds} ${where}`
    // Some versions of touch set both times at once only.
    steps.push(`{ ${touch('-a', atime)} && ${touch('-m', mtime)}; } 2>/dev/null || ${touch('', mtime)}`)
  }
  if (uid !== undefined && gid !== undefined)
    steps.push(`chown ${followLink ? '' : '-h '}${uid}:${gid} ${where}`)
  return steps
}

interface OpenParts {
  readonly run: Run
  readonly start: Start
  stat(file: string, followLink: boolean): Promise<Attributes>
  change(file: string, attributes: Attributes, followLink: boolean): Promise<void>
}

function openFile(file: string, appends: boolean, { run, start, stat, change }: OpenParts): OpenFile {
  const where = at(file)
  let pouring: { readonly exec: Exec; next: number; readonly done: Promise<ScriptResult> } | undefined
  const pour = async (position: number) => {
    const seek = `dd bs=1 seek=${position} count=0 conv=notrunc </dev/null 2>/dev/null`
    const exec = await start(appends ? `exec cat >> ${where}` : `{ ${seek}; exec cat; } 1<> ${where}`)
    return { exec, next: position, done: outcome(exec) }
  }
  const settle = async (): Promise<void> => {
    if (!pouring) return
    const { exec, done } = pouring
    pouring = undefined
    exec.endInput()
    const ended = await done
    if (ended.status !== 0) throw failed(ended)
  }
  return {
    async read(into, position) {
      await settle()
      const got = await run(
        `{ dd bs=1 skip=${position} count=0 >/dev/null 2>&1; head -c ${into.length}; } < ${where}`,
        { most_bytes: into.length },
      )
      return got.copy(into)
    },
    async write(bytes, position) {
      if (pouring && !appends && pouring.next !== position) await settle()
      pouring ??= await pour(position)
      pouring.next += bytes.length
      // The program ended too early; its output explains why.
      if (!(await pouring.exec.write(bytes))) await settle()
    },
    async stat() {
      await settle()
      return stat(file, true)
    },
    async change(attributes) {
      await settle()
      await change(file, attributes, true)
    },
    async sync() {
      await settle()
      await run('sync')
    },
    close: settle,
  }
}

async function* listed(run: Run, mark: string, folder: string): AsyncGenerator<Entry> {
  const entry = `stat -c '${mark} ${format} %n' --`
  const where = at(folder)
  // Not every shell explains why cd failed.
  const go = [
    `[ -e ${where} ] || ${refuse('No such file or directory')}`,
    `[ -d ${where} ] || ${refuse('Not a directory')}`,
    `cd ${where} || ${refuse('Permission denied')}`,
  ].join('; ')
  // The memory counts until the client has read or closed the list.
  using held = new CollectedBytes(
    largestFolder_bytes,
    () => new SftpFailure(Status.failure, 'There is no memory for this folder right now.'),
  )
  held.add(
    await run(`${go}; ${entry} . .. && find . ! -name . -prune -exec ${entry} {} +`, {
      most_bytes: largestFolder_bytes,
    }),
  )
  // Names may contain line ends, so a mark shows where each row begins.
  const [listed, start] = [held.bytes(), Buffer.from(`${mark} `)]
  for (let from = listed.indexOf(start); from >= 0;) {
    const next = listed.indexOf(start, from + start.length)
    const row = listed.toString('utf8', from + start.length, next < 0 ? listed.length : next)
    held.requireMemory()
    yield* readEntry(row.replace(/\n$/, ''))
    from = next
  }
}

async function outcome(exec: Exec): Promise<ScriptResult> {
  let complaint = ''
  for await (const { bytes } of exec.output)
    if (complaint.length < longestComplaint) complaint += bytes.toString('utf8')
  try {
    return {
      status: await exec.exit(),
      output: Buffer.alloc(0),
      complaint: complaint.slice(0, longestComplaint),
    }
  } finally {
    exec.close()
  }
}

function numbers(words: string, count: number): number[] {
  const read = words.split(' ').slice(0, count).map(Number)
  if (read.length < count || read.some((number) => !Number.isFinite(number)))
    throw new SftpFailure(Status.failure, 'Failure')
  return read
}

function readStat(words: string): Attributes {
  const [mode = '', ...rest] = words.split(' ')
  const [size, uid, gid, atime, mtime] = numbers(rest.join(' '), 5)
  const seconds = (time: number): number => Math.max(0, Math.floor(time))
  return {
    mode: Number.parseInt(mode, 16) || 0,
    size: size!,
    uid: uid!,
    gid: gid!,
    atime: seconds(atime!),
    mtime: seconds(mtime!),
  }
}

function* readEntry(row: string): Generator<Entry> {
  const [, words = '', name = ''] = /^((?:\S+ ){6})(.*)$/s.exec(row) ?? []
  if (name !== '') yield { name: name.replace(/^\.\/(?=.)/s, ''), attributes: readStat(words.trimEnd()) }
}
