// Where the server finds what is built for it: the web console, and the agents that it offers to devices. The
// name of each folder carries the version and a hash of all sources of the build. A server of another
// version, or of other sources, looks into another folder, so that it never serves a stale build. Needs no
// package that only a build needs.
import { createHash } from 'node:crypto'
import { existsSync, globSync, readFileSync, readdirSync, rmSync, statSync, writeFileSync } from 'node:fs'
import path from 'node:path'

const root = path.join(import.meta.dirname, '..')

/** The sources of each build, without tests. */
const sources = {
  agent: ['{agent,contract,engine,mux,ssh}/src/**/*.ts', 'packages/*.ts'],
  cli: ['{agent,cli,contract}/src/**/*.ts', 'packages/*.ts'],
  console: ['{console,contract}/src/**/*.*', 'console/{index.html,package.json,*.ts}'],
} as const
type Build = keyof typeof sources

const buildsOf = (build: Build): string => path.join(root, 'dist', build)

function stampedFolder(build: Build): string {
  const hash = createHash('sha256')
  const files = globSync(sources[build], { cwd: root }).filter((name) => !name.includes('.test.'))
  for (const file of [...files, 'package-lock.json'].toSorted())
    hash
      .update(`${file}\0`)
      .update(readFileSync(path.join(root, file)))
      .update('\0')
  const { version } = JSON.parse(readFileSync(path.join(root, 'package.json'), 'utf8')) as { version: string }
  return path.join(buildsOf(build), `${version}-${hash.digest('hex').slice(0, 16)}`)
}

/** Changes with the sources. */
export const stampOf = (build: Build): string => path.basename(stampedFolder(build))

export const agentsFolder = (): string => stampedFolder('agent')
export const consoleFolder = (): string => stampedFolder('console')

/**
 * Removes the builds of other sources, except this many of the newest. Does nothing when the sources have
 * just changed: then another build may be in use. Builds that this user may not remove stay.
 */
export function removeOtherBuilds(build: Build, current: string, kept = 0): void {
  const all = buildsOf(build)
  if (stampedFolder(build) !== current) return
  const builtAt = (name: string): number => statSync(path.join(all, name)).mtimeMs
  try {
    const others = readdirSync(all)
      .filter((name) => name !== path.basename(current))
      .toSorted((one, other) => builtAt(other) - builtAt(one))
    for (const name of others.slice(kept)) rmSync(path.join(all, name), { recursive: true, force: true })
  } catch {}
}

export const servedAgents = ['x64', 'arm64'].map((arch) => `hawser-agent-linux-${arch}.tar.gz`)

export function hasAgents(): boolean {
  const folder = agentsFolder()
  return servedAgents.every((name) => isBuilt(path.join(folder, name)))
}

/**
 * Whether the tarball exists, with the Node of HAWSER_AGENT_NODE. A server does not have that setting: where
 * it is empty, the choice of the last build stands.
 */
export function isBuilt(tarball: string): boolean {
  if (!existsSync(tarball)) return false
  const chosen = chosenNodes()
  const note = nodesNote(tarball)
  return chosen === '' || (existsSync(note) && readFileSync(note, 'utf8') === chosen)
}

export const noteNodes = (tarball: string): void => writeFileSync(nodesNote(tarball), chosenNodes())

const nodesNote = (tarball: string): string => `${tarball}.node`

/** Each file with its size and time, which change when it is replaced. */
function chosenNodes(): string {
  const files = (process.env['HAWSER_AGENT_NODE'] ?? '').split(':').filter(Boolean)
  return files
    .map((file) => {
      const { size, mtimeMs } = statSync(file, { throwIfNoEntry: false }) ?? { size: 0, mtimeMs: 0 }
      return `${file} ${size} ${mtimeMs}\n`
    })
    .join('')
}
