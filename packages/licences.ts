// The licences of what others wrote and we hand on, which ask to be handed on with it.
import { globSync, readFileSync } from 'node:fs'
import path from 'node:path'
import { root, type Form, type Product } from './bundle.ts'

const within: Readonly<Record<Product, readonly string[]>> = {
  agent: ['ws', '@lydell/node-pty'],
  cli: [],
}

export function licences(products: readonly Product[], form: Form): string {
  const names = [
    ...new Set([
      ...products.flatMap((product) => within[product]),
      ...(form === 'executable' ? [`node-linux-${process.arch}`] : []),
    ]),
  ]
  const texts = names.map((name) => {
    const [file] = globSync('{LICENSE,license}{,.md,.txt}', { cwd: path.join(root, 'node_modules', name) })
    if (file === undefined) throw new Error(`${name} has no licence to hand on`)
    return `==== ${name}\n\n${readFileSync(path.join(root, 'node_modules', name, file), 'utf8').trim()}\n`
  })
  return texts.join('\n')
}
