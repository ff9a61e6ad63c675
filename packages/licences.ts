// The licences of what others wrote and we hand on, which ask to be handed on with it.
import { globSync, readFileSync } from 'node:fs'
import path from 'node:path'
import { root, type Product } from './bundle.ts'
import type { Runtime } from './runtime.ts'

const within: Readonly<Record<Product, readonly string[]>> = {
  agent: ['ws', '@lydell/node-pty'],
  cli: [],
}

const libatomic = `==== libatomic.so.1

A part of GCC: GNU General Public License, version 3, with the GCC Runtime Library Exception, version 3.1.
Its source is at https://gcc.gnu.org, and that of Debian's build at https://sources.debian.org.
`

/** With a runtime, also those of Node and its libraries. */
export function licences(products: readonly Product[], runtime?: Runtime): string {
  const folder = (name: string): string => path.join(root, 'node_modules', name)
  const texts = products
    .flatMap((product) => within[product])
    .map((name) => `==== ${name}\n\n${licenceIn(folder(name)) ?? missing(name)}\n`)
  if (runtime) {
    const node = licenceIn(path.join(path.dirname(runtime.node.file), '..')) ?? 'See https://nodejs.org.'
    texts.push(`==== Node.js\n\n${node}\n`)
    if (runtime.libatomic !== undefined) texts.push(libatomic)
  }
  return texts.join('\n')
}

function licenceIn(folder: string): string | undefined {
  const [file] = globSync('{LICENSE,license}{,.md,.txt}', { cwd: folder })
  return file === undefined ? undefined : readFileSync(path.join(folder, file), 'utf8').trim()
}

function missing(name: string): never {
  throw new Error(`${name} has no licence to hand on`)
}
