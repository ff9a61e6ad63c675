// An executable is a Node with our script in it, which Node itself puts together (`--build-sea`). For the
// processor of this machine it also carries what V8 compiled of the script, so that it starts faster; for
// another one nobody here can compile. Nothing from outside changes how its Node runs: neither NODE_OPTIONS
// nor words on its command line.
import { execFile } from 'node:child_process'
import {
  existsSync,
  globSync,
  mkdirSync,
  mkdtempSync,
  readFileSync,
  renameSync,
  rmSync,
  writeFileSync,
} from 'node:fs'
import path from 'node:path'
import { promisify } from 'node:util'
import { bundle, hashOf, programs, type Product } from './bundle.ts'
import { kept, partsFor, type Architecture } from './parts.ts'

const building_ms = 120_000

/** Gives the file, which is made only if there is none of the same sources. */
export async function executable(product: Product, arch: Architecture): Promise<string> {
  const [script, { node, pty }] = await Promise.all([bundle(product, 'executable'), partsFor(arch)])
  const settings = {
    mainFormat: 'module',
    disableExperimentalSEAWarning: true,
    useCodeCache: arch === process.arch,
    execArgv: ['--disable-warning=ExperimentalWarning'],
    execArgvExtension: 'none',
    executable: node,
    assets: product === 'agent' ? { 'pty.node': pty } : {},
  }
  const hash = hashOf(script, JSON.stringify(settings), process.version, readFileSync(pty))
  const file = path.join(kept, `${programs[product]}-linux-${arch}-${hash.slice(0, 16)}`)
  if (existsSync(file)) return file
  mkdirSync(kept, { recursive: true })
  const draft = mkdtempSync(path.join(kept, 'building-'))
  try {
    const [main, output, recipe] = ['main.mjs', 'output', 'recipe.json'].map((name) =>
      path.join(draft, name),
    ) as [string, string, string]
    writeFileSync(main, script)
    writeFileSync(recipe, JSON.stringify({ ...settings, main, output }))
    await promisify(execFile)(process.execPath, ['--build-sea', recipe], { cwd: draft, timeout: building_ms })
    // Those of older sources, a hundred megabytes each.
    for (const old of globSync(`${programs[product]}-linux-${arch}-*`, { cwd: kept }))
      rmSync(path.join(kept, old), { force: true })
    renameSync(output, file)
  } finally {
    rmSync(draft, { recursive: true, force: true })
  }
  return file
}
