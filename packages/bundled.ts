// The agent and the command line of this checkout, bundled as people run them: made when the sources have changed.
import { existsSync, mkdirSync, readdirSync, rmSync } from 'node:fs'
import path from 'node:path'
import { root, type Product } from './bundle.ts'
import { draft, moveFolder } from './drafts.ts'
import type { Architecture } from './registry.ts'
import { stampOf } from './served.ts'
import { writeAgent, writeScripts } from './tarball.ts'

/** Returns the script to run. */
export async function bundled(product: Product): Promise<string> {
  const all = path.join(root, `node_modules/.hawser-${product}`)
  const folder = path.join(all, stampOf(product))
  const main = path.join(folder, 'main.mjs')
  if (existsSync(folder)) return main
  const making = `${all}.${process.pid}`
  const made = draft(making)
  try {
    if (product === 'agent') await writeAgent(making, process.arch as Architecture)
    else await writeScripts(product, making)
    mkdirSync(all, { recursive: true })
    moveFolder(making, folder)
    for (const name of readdirSync(all))
      if (name !== path.basename(folder)) rmSync(path.join(all, name), { recursive: true, force: true })
  } finally {
    made[Symbol.dispose]()
  }
  return main
}
