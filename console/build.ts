// Builds the console when its build is missing or out of date. A stamp in the build holds the hash of its
// sources. Vite runs in a process of its own and writes to a new folder, which then replaces the old one, so
// that a running server never serves half of a build. Assets are also stored compressed.
import { spawn } from 'node:child_process'
import { createHash, randomUUID } from 'node:crypto'
import { globSync, readdirSync, readFileSync, renameSync, rmSync, writeFileSync } from 'node:fs'
import path from 'node:path'
import { brotliCompressSync, constants, gzipSync } from 'node:zlib'

const folder = import.meta.dirname
const root = path.join(folder, '..')
/** The folder that the server serves. */
export const built = path.join(folder, 'dist')
const stamp = path.join(built, '.stamp')

function sourcesHash(): string {
  const hash = createHash('sha256')
  const ours = [
    'console/index.html',
    'console/build.ts',
    'console/vite.config.ts',
    'console/package.json',
    'package-lock.json',
  ]
  const files = [
    ...ours,
    ...globSync('{console,contract}/src/**/*.*', { cwd: root }).filter((file) => !file.includes('.test.')),
  ]
  for (const file of files.toSorted())
    hash
      .update(`${file}\0`)
      .update(readFileSync(path.join(root, file)))
      .update('\0')
  return hash.digest('hex')
}

function stampOf(): string {
  try {
    return readFileSync(stamp, 'utf8')
  } catch {
    // Never built.
    return ''
  }
}

/** Returns whether there was something to build; throws the output of the build when it fails. */
export async function buildConsole(): Promise<boolean> {
  const hash = sourcesHash()
  if (stampOf() === hash) return false
  const fresh = `${built}-${randomUUID()}`
  try {
    await runVite(fresh)
    compress(path.join(fresh, 'assets'))
    writeFileSync(path.join(fresh, '.stamp'), hash)
    rmSync(built, { recursive: true, force: true })
    renameSync(fresh, built)
  } finally {
    rmSync(fresh, { recursive: true, force: true })
  }
  return true
}

async function runVite(outDir: string): Promise<void> {
  const child = spawn(
    process.execPath,
    [path.join(root, 'node_modules/vite/bin/vite.js'), 'build', folder, '--logLevel', 'warn'],
    {
      cwd: root,
      env: { ...process.env, NODE_ENV: 'production', HAWSER_CONSOLE_OUT: outDir },
      stdio: ['ignore', 'pipe', 'pipe'],
    },
  )
  let printed = ''
  for (const stream of [child.stdout, child.stderr])
    stream.setEncoding('utf8').on('data', (chunk: string) => (printed += chunk))
  const code = await new Promise<number | null>((resolve, reject) =>
    child.on('error', reject).on('close', resolve),
  )
  if (code !== 0) throw new Error(`the console could not be built:\n${printed.trim()}`)
}

function compress(assets: string): void {
  for (const name of readdirSync(assets).filter((file) => /\.(js|css|svg)$/.test(file))) {
    const file = path.join(assets, name)
    const content = readFileSync(file)
    writeFileSync(`${file}.gz`, gzipSync(content, { level: 9 }))
    writeFileSync(
      `${file}.br`,
      brotliCompressSync(content, { params: { [constants.BROTLI_PARAM_QUALITY]: 9 } }),
    )
  }
}
