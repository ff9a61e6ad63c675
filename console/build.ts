// Builds the console into a folder, with Vite in a process of its own. Assets are also stored compressed.
// packages/console.ts says when and where.
import { spawn } from 'node:child_process'
import { readdirSync, readFileSync, statSync, writeFileSync } from 'node:fs'
import path from 'node:path'
import { brotliCompressSync, constants, gzipSync } from 'node:zlib'

const folder = import.meta.dirname
const root = path.join(folder, '..')

/** Throws the output of Vite when it fails. `design`: with the page that shows all components, for tests. */
export async function buildConsole(outDir: string, { design = false } = {}): Promise<void> {
  await runVite(outDir, design)
  writeInside(outDir)
  compress(path.join(outDir, 'assets'))
}

/**
 * The page for addresses behind the sign-in: the same, with a word to the browser that it will need the file
 * that all those pages share. Otherwise it would learn that only when the first script runs.
 */
function writeInside(outDir: string): void {
  const page = readFileSync(path.join(outDir, 'index.html'), 'utf8')
  const assets = path.join(outDir, 'assets')
  // One more of that name only refers to it.
  const [shared] = readdirSync(assets)
    .filter((file) => /^app-[\w-]+\.js$/.test(file))
    .toSorted((a, b) => statSync(path.join(assets, b)).size - statSync(path.join(assets, a)).size)
  if (!shared) throw new Error('the build has no file that all pages share')
  const link = `<link rel="modulepreload" crossorigin href="/assets/${shared}">`
  writeFileSync(path.join(outDir, 'inside.html'), page.replace('</head>', `  ${link}\n  </head>`))
}

async function runVite(outDir: string, design: boolean): Promise<void> {
  const child = spawn(
    process.execPath,
    [path.join(root, 'node_modules/vite/bin/vite.js'), 'build', folder, '--logLevel', 'warn'],
    {
      cwd: root,
      env: {
        ...process.env,
        NODE_ENV: 'production',
        HAWSER_CONSOLE_OUT: outDir,
        HAWSER_CONSOLE_DESIGN: design ? '1' : '',
      },
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
      brotliCompressSync(content, { params: { [constants.BROTLI_PARAM_QUALITY]: 11 } }),
    )
  }
}
