// Builds the console into a folder, with Vite in a process of its own. Assets are also stored compressed.
// packages/console.ts says when and where.
import { spawn } from 'node:child_process'
import { readdirSync, readFileSync, writeFileSync } from 'node:fs'
import path from 'node:path'
import { brotliCompressSync, constants, gzipSync } from 'node:zlib'

const folder = import.meta.dirname
const root = path.join(folder, '..')

/** Throws the output of Vite when it fails. */
export async function buildConsole(outDir: string): Promise<void> {
  await runVite(outDir)
  compress(path.join(outDir, 'assets'))
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
  const stop = (): void => void child.kill()
  process.once('exit', stop)
  let printed = ''
  for (const stream of [child.stdout, child.stderr])
    stream.setEncoding('utf8').on('data', (chunk: string) => (printed += chunk))
  const code = await new Promise<number | null>((resolve, reject) =>
    child.on('error', reject).on('close', resolve),
  ).finally(() => process.off('exit', stop))
  if (code !== 0) throw new Error(printed.trim())
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
