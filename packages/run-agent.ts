// `npm run agent`: the agent from this checkout, bundled as devices run it. The process becomes the agent, so
// that signals and exit codes are its own.
import { existsSync, mkdirSync, readdirSync, rmSync } from 'node:fs'
import path from 'node:path'
import { root } from './bundle.ts'
import { draft, exitOnSignals, moveFolder } from './drafts.ts'
import type { Architecture } from './registry.ts'
import { agentsFolder } from './served.ts'
import { writeAgent } from './tarball.ts'

const all = path.join(root, 'node_modules/.hawser-agent')
/** Named as the folder of the served agents is: other sources have another. */
const folder = path.join(all, path.basename(agentsFolder()))
if (!existsSync(folder)) {
  exitOnSignals()
  const making = `${all}.${process.pid}`
  const made = draft(making)
  try {
    await writeAgent(making, process.arch as Architecture)
    mkdirSync(all, { recursive: true })
    moveFolder(making, folder)
    for (const name of readdirSync(all))
      if (name !== path.basename(folder)) rmSync(path.join(all, name), { recursive: true, force: true })
  } finally {
    made[Symbol.dispose]()
  }
}
const args = [
  '--disable-warning=ExperimentalWarning',
  path.join(folder, 'main.mjs'),
  ...process.argv.slice(2),
]
process.execve?.(process.execPath, [process.execPath, ...args], { ...process.env })
