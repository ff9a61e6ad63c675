// `npm run build`: makes what the server serves and cannot make while it runs: the web console, and the
// agents for devices with each kind of processor. `npm start` runs it with `--missing-agents` when one is
// missing.
import { statSync } from 'node:fs'
import os from 'node:os'
import path from 'node:path'
import { ensureConsole } from './console.ts'
import { exitOnSignals } from './drafts.ts'
import { architectures } from './registry.ts'
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

/** Makes what it can. An agent that cannot be made is reported and leaves the others alone. */
export async function buildAgents({ onlyMissing }: { readonly onlyMissing: boolean }): Promise<boolean> {
  const folder = agentsFolder()
  let complete = true
  for (const arch of architectures) {
    const name = tarballName('agent', arch)
    const file = path.join(folder, name)
    if (onlyMissing && isBuilt(file)) continue
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
  const onlyMissing = process.argv[2] === '--missing-agents'
  // A server that starts meanwhile comes first.
  if (onlyMissing) os.setPriority(5)
  else if (!(await buildConsole())) process.exitCode = 1
  if (!(await buildAgents({ onlyMissing }))) process.exitCode = 1
}
