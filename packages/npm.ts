// The npm packages: the same scripts as in the tarballs, for the Node that is there. The command line needs
// nothing else. The agent needs node-pty's addon and a newer Node than most systems have, so its package
// names both as optional dependencies, for the processor of the device.
import { copyFileSync, mkdirSync, mkdtempSync, rmSync, writeFileSync } from 'node:fs'
import path from 'node:path'
import { oldestNode, programs, root, version, type Product } from './bundle.ts'
import { licences } from './licences.ts'
import { architectures, locked, runNpm } from './registry.ts'
import { writeScripts } from './tarball.ts'

const about: Readonly<Record<Product, { readonly description: string; readonly readme: string }>> = {
  agent: {
    description: 'The Hawser agent: makes this Linux machine reachable by SSH through a Hawser server.',
    readme:
      'As root: `hawser-agent install --server https://hawser.example.com --tenant <id of your namespace>`.',
  },
  cli: {
    description: 'The command line of Hawser: reach your devices by SSH through a Hawser server.',
    readme: 'Begin with `hawser login https://hawser.example.com`; `hawser --help` shows the rest.',
  },
}

/** Returns the name of the package's file. */
export async function npmPackage(product: Product, folder: string): Promise<string> {
  const name = programs[product]
  mkdirSync(folder, { recursive: true })
  const draft = mkdtempSync(path.join(folder, `${name}-`))
  try {
    mkdirSync(path.join(draft, 'bin'))
    await writeScripts(product, path.join(draft, 'app'))
    copyFileSync(path.join(import.meta.dirname, 'starter.mjs'), path.join(draft, `bin/${name}.mjs`))
    copyFileSync(path.join(root, 'LICENSE'), path.join(draft, 'LICENSE'))
    writeFileSync(path.join(draft, 'LICENSES.txt'), licences([product]))
    writeFileSync(
      path.join(draft, 'README.md'),
      `# ${name}\n\n${about[product].description}\n\n${about[product].readme}\n`,
    )
    writeFileSync(path.join(draft, 'package.json'), `${JSON.stringify(manifest(product), null, 2)}\n`)
    await runNpm(['pack', '--silent', '--pack-destination', folder], draft)
  } finally {
    rmSync(draft, { recursive: true, force: true })
  }
  return `${name}-${version}.tgz`
}

function manifest(product: Product): object {
  const name = programs[product]
  const brought = architectures.flatMap((arch) => [`node-linux-${arch}`, `@lydell/node-pty-linux-${arch}`])
  return {
    name,
    version,
    description: about[product].description,
    license: 'Apache-2.0',
    type: 'module',
    bin: { [name]: `bin/${name}.mjs` },
    files: ['bin', 'app', 'LICENSES.txt'],
    engines: { node: `>=${oldestNode[product]}` },
    ...(product === 'agent'
      ? {
          os: ['linux'],
          optionalDependencies: Object.fromEntries(brought.map((each) => [each, locked(each).version])),
        }
      : {}),
  }
}
