// Packs the agent for devices: its sources as plain JavaScript (a Node that strips types holds 40 MB for it),
// the packages it stands on, and for a tarball a Node to run it. Nothing is compiled; what is packed here
// runs on any Linux of the same processor that has glibc 2.28 or newer.
//   pack.ts folder <folder>      the JavaScript alone, for the Node that is there
//   pack.ts tarball <file> <arch>  everything, below hawser-agent/; the arch as Node names it, x64 or arm64
import { createHash } from 'node:crypto'
import {
  createReadStream,
  createWriteStream,
  existsSync,
  globSync,
  mkdirSync,
  readFileSync,
  renameSync,
  rmSync,
  statSync,
  symlinkSync,
  writeFileSync,
} from 'node:fs'
import { stripTypeScriptTypes } from 'node:module'
import path from 'node:path'
import { Readable } from 'node:stream'
import { pipeline } from 'node:stream/promises'
import { createGzip } from 'node:zlib'
import { leanNode } from './lean-node.ts'

const root = path.join(import.meta.dirname, '..')

/** A file of the package: its bytes, another file, or a link. */
type Content = { readonly bytes: Buffer } | { readonly file: string } | { readonly link: string }

const sources = [
  'agent/src/**/*.ts',
  'mux/src/**/*.ts',
  'ssh/src/**/*.ts',
  'engine/src/**/*.ts',
  'contract/src/{tunnel,environment}.ts',
]

/** What the agent consists of, by its path in the package. */
function contents(arch: string): Map<string, Content> {
  const found = new Map<string, Content>()
  for (const file of sources.flatMap((pattern) => globSync(pattern, { cwd: root })).toSorted()) {
    if (file.endsWith('.test.ts') || file.endsWith('.d.ts')) continue
    found.set(file.replace(/\.ts$/, '.js'), {
      bytes: Buffer.from(plain(readFileSync(path.join(root, file), 'utf8'))),
    })
  }
  for (const name of ['agent', 'mux', 'ssh', 'engine', 'contract']) {
    const text = readFileSync(path.join(root, name, 'package.json'), 'utf8')
    found.set(`${name}/package.json`, { bytes: Buffer.from(text.replaceAll('.ts"', '.js"')) })
    found.set(`node_modules/@hawser/${name}`, { link: `../../${name}` })
  }
  for (const name of ['ws', '@lydell/node-pty', `@lydell/node-pty-linux-${arch}`]) {
    const folder = path.join('node_modules', name)
    for (const file of globSync('**/*.{js,mjs,json,node}', { cwd: path.join(root, folder) }).toSorted())
      found.set(path.join(folder, file), { file: path.join(root, folder, file) })
  }
  return found
}

/** JavaScript on the same lines, and with the names that its files have in the package. */
function plain(source: string): string {
  return stripTypeScriptTypes(source).replaceAll(/'([\w./-]+)\.ts'/g, "'$1.js'")
}

/** Writes the JavaScript unless what is there is of the same sources; gives the program to run. */
export function packFolder(folder: string): string {
  const files = contents(process.arch)
  const mark = createHash('sha256')
  for (const [name, content] of files) if ('bytes' in content) mark.update(`${name}\n`).update(content.bytes)
  const stamp = mark.digest('hex')
  const main = path.join(folder, 'agent/src/main.js')
  const stampFile = path.join(folder, 'stamp')
  if (existsSync(stampFile) && readFileSync(stampFile, 'utf8') === stamp) return main
  const draft = `${folder}.${process.pid}`
  for (const [name, content] of files) {
    const target = path.join(draft, name)
    mkdirSync(path.dirname(target), { recursive: true })
    if ('bytes' in content) writeFileSync(target, content.bytes)
    else if ('link' in content) symlinkSync(content.link, target)
    else writeFileSync(target, readFileSync(content.file))
  }
  writeFileSync(path.join(draft, 'stamp'), stamp)
  rmSync(folder, { recursive: true, force: true })
  renameSync(draft, folder)
  return main
}

/** The Node that goes into a tarball: the one that npm brought for that processor, or the running one. */
function nodeFor(arch: string): string | undefined {
  const brought = path.join(root, 'node_modules', `node-linux-${arch}`, 'bin/node')
  if (existsSync(brought)) return brought
  return arch === process.arch ? process.execPath : undefined
}

/** As it is, if it is not one that can be made lean. */
function lean(node: string): Content {
  try {
    return { bytes: leanNode(readFileSync(node)) }
  } catch {
    return { file: node }
  }
}

function tarballContents(arch: string): [string, Content, number][] {
  const node = nodeFor(arch)
  if (node !== undefined) {
    const launcher =
      '#!/bin/sh\nexec "$(dirname "$(readlink -f "$0")")/node" --disable-warning=ExperimentalWarning "$(dirname "$(readlink -f "$0")")/../agent/src/main.js" "$@"\n'
    return [
      ...[...contents(arch)].map(([name, content]): [string, Content, number] => [name, content, 0o644]),
      ['bin/node', lean(node), 0o755],
      ['bin/hawser-agent', { bytes: Buffer.from(launcher) }, 0o755],
    ]
  }
  // For another processor there may be an executable that `npm run package` has made.
  const made = path.join(root, 'dist', `hawser-agent-linux-${arch}`)
  if (!existsSync(made)) throw new Error(`there is no Node for ${arch} here, and no executable in dist/`)
  return [['bin/hawser-agent', { file: made }, 0o755]]
}

export async function packTarball(file: string, arch: string): Promise<void> {
  const files = tarballContents(arch)
  const draft = `${file}.${process.pid}`
  await pipeline(Readable.from(tar(files)), createGzip({ level: 6 }), createWriteStream(draft))
  renameSync(draft, file)
}

/**
 * POSIX ustar: for each file a block of 512 bytes (name 100, mode 8, uid 8, gid 8, size 12, mtime 12,
 * checksum 8, type 1, link 100, magic "ustar" NUL "00", owner 32, group 32, device 16, prefix 155), then its
 * bytes up to the next block; at the end two empty blocks. Numbers are octal. Times are zero, so that the
 * same sources give the same tarball.
 */
async function* tar(files: readonly [string, Content, number][]): AsyncGenerator<Buffer> {
  for (const [name, content, mode] of files) {
    const size =
      'bytes' in content ? content.bytes.length : 'file' in content ? statSync(content.file).size : 0
    yield header(`hawser-agent/${name}`, mode, size, 'link' in content ? content.link : undefined)
    if ('bytes' in content) yield content.bytes
    else if ('file' in content) yield* createReadStream(content.file) as AsyncIterable<Buffer>
    if (size % 512 > 0) yield Buffer.alloc(512 - (size % 512))
  }
  yield Buffer.alloc(1024)
}

function header(name: string, mode: number, size: number, link: string | undefined): Buffer {
  const block = Buffer.alloc(512)
  const cut = name.length <= 100 ? 0 : name.indexOf('/', name.length - 101)
  if (cut < 0 || cut > 155) throw new Error(`a name is too long for a tarball: ${name}`)
  const octal = (value: number, digits: number): string => value.toString(8).padStart(digits, '0')
  block.write(cut === 0 ? name : name.slice(cut + 1), 0)
  block.write(`${octal(mode, 7)}\0${octal(0, 7)}\0${octal(0, 7)}\0${octal(size, 11)}\0${octal(0, 11)}\0`, 100)
  block.write('        ', 148)
  block.write(link === undefined ? '0' : '2', 156)
  if (link !== undefined) block.write(link, 157)
  block.write('ustar\x0000', 257)
  if (cut > 0) block.write(name.slice(0, cut), 345)
  block.write(
    `${octal(
      block.reduce((sum, byte) => sum + byte, 0),
      6,
    )}\0 `,
    148,
  )
  return block
}

if (import.meta.main) {
  const [what, where = '', arch = process.arch] = process.argv.slice(2)
  if (what === 'folder' && where) packFolder(where)
  else if (what === 'tarball' && where) await packTarball(where, arch)
  else {
    process.stderr.write('pack.ts folder <folder> | pack.ts tarball <file> <arch>\n')
    process.exitCode = 2
  }
}
