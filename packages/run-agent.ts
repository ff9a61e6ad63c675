// `npm run agent`: the agent from this checkout, bundled as devices run it. The process becomes the agent, so
// that signals and exit codes are its own.
import { existsSync, renameSync, rmSync } from 'node:fs'
import path from 'node:path'
import { root } from './bundle.ts'
import type { Architecture } from './registry.ts'
import { agentsFolder } from './served.ts'
import { writeAgent } from './tarball.ts'

const all = path.join(root, 'node_modules/.hawser-agent')
/** Named as the folder of the served agents is: other sources have another. */
const folder = path.join(all, path.basename(agentsFolder()))
if (!existsSync(folder)) {
  const draft = `${all}.${process.pid}`
  await writeAgent(path.join(draft, path.basename(folder)), process.arch as Architecture)
  rmSync(all, { recursive: true, force: true })
  renameSync(draft, all)
}
const args = [
  '--disable-warning=ExperimentalWarning',
  path.join(folder, 'main.mjs'),
  ...process.argv.slice(2),
]
process.execve?.(process.execPath, [process.execPath, ...args], { ...process.env })
