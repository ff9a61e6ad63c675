// `npm run build`: makes what the server serves and cannot make while it runs: the web console, and the
// agents for devices with each kind of processor. What was made from these very sources is kept, unless
// `--force` is given. `npm start` runs it with `--agents` when an agent is missing.
import { statSync } from 'node:fs'
import os from 'node:os'
import path from 'node:path'
import { parseArgs } from 'node:util'
import { ensureConsole } from './console.ts'
import { exitOnSignals } from './drafts.ts'
import { architectures, type Architecture } from './registry.ts'
import { agentsFolder, isBuilt, noteNodes, removeOtherBuilds } from './served.ts'
import { makeTarball, tarballName } from './tarball.ts'

/** On standard error: `npm start` shares it, and standard output belongs to the server's log. */
const say = (line: string): void => void process.stderr.write(`hawser: ${line}\n`)

async function buildConsole(): Promise<boolean> {
  try {
    say((await ensureConsole()) ? 'built the web console' : 'the web console is up to date')
    return true
  } catch (error) {
    say(error instanceof Error ? error.message : String(error))
    return false
  }
}

/** The processors whose agents are missing in the folder, or all. */
export const agentsToMake = (folder: string, force: boolean): Architecture[] =>
  architectures.filter((arch) => force || !isBuilt(path.join(folder, tarballName('agent', arch))))

/** Reports an agent that cannot be made, and makes the others. */
async function buildAgents(force: boolean): Promise<boolean> {
  const folder = agentsFolder()
  const wanted = agentsToMake(folder, force)
  if (wanted.length === 0) say('the agents are up to date (--force makes them again)')
  let complete = true
  for (const arch of wanted) {
    const name = tarballName('agent', arch)
    const file = path.join(folder, name)
    say(`making ${name} for devices (once) …`)
    try {
      const { node, libatomic, warnings } = await makeTarball('agent', arch, file)
      noteNodes(file)
      const size = `${(statSync(file).size / 1e6).toFixed(1)} MB`
      say(`made ${name}: ${size}, Node ${node.version} (SHA-256 ${node.sha256})`)
      if (libatomic !== undefined) say(`  it carries ${libatomic}`)
      for (const warning of warnings) say(`  ${warning}`)
    } catch (error) {
      complete = false
      say(`${name} cannot be made: ${error instanceof Error ? error.message : String(error)}`)
    }
  }
  removeOtherBuilds('agent', folder)
  return complete
}

if (import.meta.main) {
  exitOnSignals()
  const { agents, force } = parseArgs({
    options: {
      agents: { type: 'boolean', default: false },
      force: { type: 'boolean', default: false },
    },
  }).values
  // A server that starts at the same time comes first.
  if (agents) os.setPriority(5)
  else if (!(await buildConsole())) process.exitCode = 1
  if (!(await buildAgents(force))) process.exitCode = 1
}
