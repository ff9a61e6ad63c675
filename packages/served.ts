// Where the server finds the agents that it offers to devices. The name of the folder carries the version and
// a hash of everything that goes into an agent. A server of another version, or of other sources, looks into
// another folder, so that it never serves stale agents. Needs no package that only a build needs.
import { createHash } from 'node:crypto'
import { existsSync, globSync, readFileSync } from 'node:fs'
import path from 'node:path'

const root = path.join(import.meta.dirname, '..')
/** One folder below it is in use; a build removes the others. */
export const builds = path.join(root, 'dist/agent')

export function agentsFolder(): string {
  const hash = createHash('sha256')
  const files = globSync(['{agent,contract,engine,mux,ssh}/src/**/*.ts', 'packages/*.ts'], { cwd: root })
  for (const file of [...files.filter((name) => !name.includes('.test.')), 'package-lock.json'].toSorted())
    hash
      .update(`${file}\0`)
      .update(readFileSync(path.join(root, file)))
      .update('\0')
  const { version } = JSON.parse(readFileSync(path.join(root, 'package.json'), 'utf8')) as { version: string }
  return path.join(builds, `${version}-${hash.digest('hex').slice(0, 16)}`)
}

export const servedAgents = ['x64', 'arm64'].map((arch) => `hawser-agent-linux-${arch}.tar.gz`)

/** Whether a server could offer every agent. */
export function hasAgents(): boolean {
  const folder = agentsFolder()
  return servedAgents.every((name) => existsSync(path.join(folder, name)))
}
