// `npm run build`: makes what the server serves and cannot make while it runs: the web console, and the
// agents for devices with each kind of processor. `npm start` runs it with `--missing-agents` when one is
// missing.
import { existsSync, readdirSync, rmSync, statSync } from 'node:fs'
import os from 'node:os'
import path from 'node:path'
import { buildConsole } from '../console/build.ts'
import { exitOnSignals } from './drafts.ts'
import { architectures } from './registry.ts'
import { agentsFolder, builds } from './served.ts'
import { makeTarball, tarballName } from './tarball.ts'

/** On standard error: `npm start` shares it, and standard output belongs to the server's log. */
const say = (line: string): void => void process.stderr.write(`hawser: ${line}\n`)

/** Makes what it can. An agent that cannot be made is reported and leaves the others alone. */
export async function buildAgents({ onlyMissing }: { readonly onlyMissing: boolean }): Promise<boolean> {
  const folder = agentsFolder()
  let complete = true
  for (const arch of architectures) {
    const name = tarballName('agent', arch)
    const file = path.join(folder, name)
    if (onlyMissing && existsSync(file)) continue
    say(`making ${name} for devices (once) …`)
    try {
      const { node, libatomic, warnings } = await makeTarball('agent', arch, file)
      const size = `${(statSync(file).size / 1e6).toFixed(1)} MB`
      say(`made ${name}: ${size}, Node ${node.version} (SHA-256 ${node.sha256})`)
      if (libatomic !== undefined) say(`  it carries ${libatomic}`)
      for (const warning of warnings) say(`  ${warning}`)
    } catch (error) {
      complete = false
      say(`${name} cannot be made: ${error instanceof Error ? error.message : String(error)}`)
    }
  }
  // Unless the sources have changed meanwhile: then another build may be the one in use.
  if (agentsFolder() === folder) removeOtherBuilds(folder)
  return complete
}

function removeOtherBuilds(folder: string): void {
  try {
    for (const name of existsSync(builds) ? readdirSync(builds) : [])
      if (name !== path.basename(folder)) rmSync(path.join(builds, name), { recursive: true, force: true })
  } catch (error) {
    // On a read-only tree they stay; they are in nobody's way.
    say(`old agents cannot be removed: ${error instanceof Error ? error.message : String(error)}`)
  }
}

if (import.meta.main) {
  exitOnSignals()
  const onlyMissing = process.argv[2] === '--missing-agents'
  // A server that starts meanwhile comes first.
  if (onlyMissing) os.setPriority(5)
  else say((await buildConsole()) ? 'built the web console' : 'the web console is up to date')
  if (!(await buildAgents({ onlyMissing }))) process.exitCode = 1
}
