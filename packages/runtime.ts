// The Node that a tarball carries for one processor, untouched, and the libatomic.so.1 that Node needs since
// version 25 and that a bare Debian or Ubuntu lacks. Decision 24 describes where the Node comes from.
import { execFile } from 'node:child_process'
import { createHash } from 'node:crypto'
import { existsSync, readFileSync, realpathSync } from 'node:fs'
import path from 'node:path'
import { promisify } from 'node:util'
import { oldestNode } from './bundle.ts'
import { locked, packageFolder, type Architecture } from './registry.ts'

export interface Runtime {
  readonly node: NodeBinary
  /** Undefined: this Node does not need it, or this machine has none for the processor. */
  readonly libatomic: string | undefined
  readonly warnings: readonly string[]
}

export interface NodeBinary {
  readonly file: string
  readonly sha256: string
  /** From the Node itself where it can run on this machine, else from package-lock.json. */
  readonly version: string
}

/** For each processor: its number in an ELF header, and the folders of libraries of Debian and others. */
const machines: Readonly<Record<Architecture, { readonly elf: number; readonly triplet: string }>> = {
  x64: { elf: 62, triplet: 'x86_64-linux-gnu' },
  arm64: { elf: 183, triplet: 'aarch64-linux-gnu' },
}

const library = 'libatomic.so.1'

export async function runtimeFor(arch: Architecture): Promise<Runtime> {
  const chosen = chosenNode(arch, process.env['HAWSER_AGENT_NODE'] ?? '')
  const carrier = `node-linux-${arch}`
  const file = chosen ?? path.join(await packageFolder(carrier), 'bin/node')
  const bytes = readFileSync(file)
  if (elfMachine(bytes) !== machines[arch].elf) throw new Error(`${file} is no Linux program for ${arch}`)
  const needsLibrary = bytes.includes(`${library}\0`)
  const libatomic = needsLibrary ? findLibrary(arch, file) : undefined
  const warnings =
    needsLibrary && libatomic === undefined
      ? [
          `This machine has no ${library} for ${arch}, so devices must bring their own. On Debian, ` +
            `libatomic1 (for this processor) or libatomic1-${arch === 'x64' ? 'amd64' : arch}-cross has it.`,
        ]
      : []
  // Without the library it does not run here either.
  const runsHere = arch === process.arch && warnings.length === 0
  const promised = chosen === undefined ? locked(carrier).version : undefined
  const version = runsHere ? await versionOf(file, libatomic) : promised
  if (promised !== undefined && version !== promised)
    throw new Error(`${file} is Node ${version}, but package-lock.json says ${promised}`)
  return {
    node: { file, sha256: createHash('sha256').update(bytes).digest('hex'), version: version ?? 'unknown' },
    libatomic,
    warnings,
  }
}

/** The packager's own Node for the processor: HAWSER_AGENT_NODE names one file, or one for each processor. */
export function chosenNode(arch: Architecture, setting: string): string | undefined {
  const files = setting.split(':').filter(Boolean)
  for (const file of files) {
    const machine = existsSync(file) ? elfMachine(readFileSync(file)) : undefined
    if (!Object.values(machines).some(({ elf }) => elf === machine))
      throw new Error(`HAWSER_AGENT_NODE: ${file} is no Linux program for x64 or arm64`)
    if (machine === machines[arch].elf) return realpathSync(file)
  }
  return undefined
}

/** From the header of a 64-bit little-endian ELF file. */
function elfMachine(file: Buffer): number | undefined {
  const isElf = file.length >= 64 && file.readUInt32BE(0) === 0x7f454c46 && file.readUInt16BE(4) === 0x0201
  return isElf ? file.readUInt16LE(18) : undefined
}

/** Next to the Node, where its packager may have put it, else where distributions put it. */
function findLibrary(arch: Architecture, node: string): string | undefined {
  const { elf, triplet } = machines[arch]
  return [
    path.join(path.dirname(node), '../lib'),
    `/usr/lib/${triplet}`,
    `/lib/${triplet}`,
    `/usr/${triplet}/lib`,
    '/usr/lib64',
    '/lib64',
    '/usr/lib',
  ]
    .map((folder) => path.join(folder, library))
    .find((file) => existsSync(file) && elfMachine(readFileSync(file)) === elf)
}

/** Throws unless it is a Node that is new enough. */
async function versionOf(file: string, libatomic: string | undefined): Promise<string> {
  const script = '[process.release.name, process.versions.node].join(" ")'
  const env = libatomic === undefined ? {} : { LD_LIBRARY_PATH: path.dirname(libatomic) }
  const { stdout } = await promisify(execFile)(file, ['-p', script], { env })
  const [name, version = ''] = stdout.trim().split(' ')
  if (name !== 'node' || version.localeCompare(oldestNode.agent, 'en', { numeric: true }) < 0)
    throw new Error(`${file} is not Node ${oldestNode.agent} or newer: it says "${stdout.trim()}"`)
  return version
}
