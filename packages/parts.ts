// What an executable is made of beside our own script, for one processor: a Node, made lean, and the native
// part of node-pty. For the processor of this machine npm has brought both; for the other one they are
// fetched from the registry, and taken only if they are, byte for byte, what package-lock.json promises.
import { execFile } from 'node:child_process'
import { createHash } from 'node:crypto'
import { existsSync, mkdirSync, mkdtempSync, readFileSync, renameSync, rmSync, writeFileSync } from 'node:fs'
import path from 'node:path'
import { promisify } from 'node:util'
import { leanNode } from '../agent/lean-node.ts'
import { hashOf, root } from './bundle.ts'

export const architectures = ['x64', 'arm64'] as const
export type Architecture = (typeof architectures)[number]

/** What was made before is kept here; it is no part of what is shipped. */
export const kept = path.join(root, 'node_modules/.hawser-packages')

export interface Parts {
  readonly node: string
  readonly pty: string
}

export async function partsFor(arch: Architecture): Promise<Parts> {
  const [node, pty] = await Promise.all([
    packageFolder(`node-linux-${arch}`),
    packageFolder(`@lydell/node-pty-linux-${arch}`),
  ])
  return { node: lean(path.join(node, 'bin/node'), arch), pty: path.join(pty, 'pty.node') }
}

function lean(node: string, arch: Architecture): string {
  const { integrity } = promised(`node-linux-${arch}`)
  const recipe = readFileSync(path.join(root, 'agent/lean-node.ts'))
  const file = path.join(kept, `node-${arch}-${hashOf(integrity, recipe).slice(0, 16)}`)
  if (!existsSync(file))
    whole(file, (draft) => writeFileSync(draft, leanNode(readFileSync(node)), { mode: 0o755 }))
  return file
}

/** Makes a file beside its place and moves it there: it is whole or not there. */
export function whole(file: string, make: (draft: string) => void): void {
  mkdirSync(path.dirname(file), { recursive: true })
  const draft = `${file}.${process.pid}`
  try {
    make(draft)
    renameSync(draft, file)
  } finally {
    rmSync(draft, { force: true })
  }
}

interface Promised {
  readonly version: string
  readonly integrity: string
}

function promised(name: string): Promised {
  const { packages } = JSON.parse(readFileSync(path.join(root, 'package-lock.json'), 'utf8')) as {
    packages: Record<string, Promised>
  }
  const found = packages[`node_modules/${name}`]
  if (!found?.integrity.startsWith('sha512-'))
    throw new Error(`package-lock.json does not say what ${name} is`)
  return found
}

/** The unpacked package. */
async function packageFolder(name: string): Promise<string> {
  const installed = path.join(root, 'node_modules', name)
  if (existsSync(installed)) return installed
  const { version, integrity } = promised(name)
  const folder = path.join(kept, `${name.replaceAll(/\W+/g, '-')}-${version}`)
  if (existsSync(folder)) return path.join(folder, 'package')
  mkdirSync(kept, { recursive: true })
  const draft = mkdtempSync(path.join(kept, 'fetched-'))
  try {
    const run = promisify(execFile)
    const { stdout } = await run(
      'npm',
      ['pack', '--silent', '--pack-destination', draft, `${name}@${version}`],
      { cwd: root },
    )
    const file = path.join(draft, stdout.trim().split('\n').at(-1)!)
    const found = `sha512-${createHash('sha512').update(readFileSync(file)).digest('base64')}`
    if (found !== integrity)
      throw new Error(`${name} ${version} from the registry is not what package-lock.json promises`)
    await run('tar', ['-xzf', file, '-C', draft])
    rmSync(file)
    renameSync(draft, folder)
  } catch (error) {
    rmSync(draft, { recursive: true, force: true })
    throw error
  }
  return path.join(folder, 'package')
}
