// `npm run package`: writes everything that people download into dist/release, with a file of SHA-256 sums, and
// prints the sizes. The Node that npm carries must be the one that nodejs.org publishes. `npm run package -- x64`
// makes the tarballs for one processor only.
import { createHash } from 'node:crypto'
import { mkdirSync, readFileSync, rmSync, writeFileSync } from 'node:fs'
import path from 'node:path'
import { products, root } from './bundle.ts'
import { exitOnSignals } from './drafts.ts'
import { checkOrigin } from './node-origin.ts'
import { npmPackage } from './npm.ts'
import { architectures } from './registry.ts'
import { chosenNode, runtimeFor } from './runtime.ts'
import { makeTarball, tarballName } from './tarball.ts'

const release = path.join(root, 'dist/release')

async function main(asked: readonly string[]): Promise<void> {
  const unknown = asked.filter((word) => !architectures.some((arch) => arch === word))
  if (unknown.length > 0)
    throw new Error(`unknown processor ${unknown.join(' ')}; use ${architectures.join(' or ')}, or none`)
  const wanted = architectures.filter((each) => asked.length === 0 || asked.includes(each))
  for (const arch of wanted)
    if (chosenNode(arch, process.env['HAWSER_AGENT_NODE'] ?? '') === undefined)
      await checkOrigin(arch, (await runtimeFor(arch)).node)
  rmSync(release, { recursive: true, force: true })
  mkdirSync(path.join(release, 'npm'), { recursive: true })
  const sums: string[] = []
  const add = (name: string, warnings: readonly string[]): void => {
    const bytes = readFileSync(path.join(release, name))
    sums.push(`${createHash('sha256').update(bytes).digest('hex')}  ${name}\n`)
    process.stdout.write(`${name.padEnd(36)}${(bytes.length / 1e6).toFixed(1).padStart(6)} MB\n`)
    for (const warning of warnings) process.stdout.write(`  ${warning}\n`)
  }
  for (const product of products) {
    for (const arch of wanted) {
      const name = tarballName(product, arch)
      const { warnings } = await makeTarball(product, arch, path.join(release, name))
      add(name, warnings)
    }
    add(`npm/${await npmPackage(product, path.join(release, 'npm'))}`, [])
  }
  writeFileSync(path.join(release, 'SHA256SUMS'), sums.join(''))
}

exitOnSignals()
try {
  await main(process.argv.slice(2))
} catch (error) {
  process.stderr.write(`package: ${error instanceof Error ? error.message : String(error)}\n`)
  process.exitCode = 1
}
