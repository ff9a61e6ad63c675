// Small releases of the agent: the real launcher, and the real agent from the sources, but instead of a Node
// of 100 MB a script that starts the one of the test. Packed as `npm run build` packs them. Each can be told
// how it behaves when it runs as a service.
import { execFileSync } from 'node:child_process'
import { chmodSync, mkdirSync, mkdtempSync, renameSync, rmSync, writeFileSync } from 'node:fs'
import path from 'node:path'
import { version } from '@hawser/contract/version'
import { installProgram } from '../../agent/src/install/program.ts'
import { buildText, launcher } from '../../packages/tarball.ts'

const main = path.join(import.meta.dirname, '../../agent/src/main.ts')

/** The service part of a fake agent; its other commands always work. */
const behaviours = {
  well: `await import(${JSON.stringify(main)})`,
  crashes: `if (process.argv.length > 2) await import(${JSON.stringify(main)})\nelse process.exit(1)`,
  hangs: `if (process.argv.length > 2) await import(${JSON.stringify(main)})\nelse while (true);`,
} as const

export interface FakeAgent {
  readonly build: string
  readonly version?: string
  readonly behaves?: keyof typeof behaviours
}

export const buildOf = (letter: string): string => letter.repeat(16)

export function writeFakeAgent(folder: string, agent: FakeAgent): void {
  for (const name of ['bin', 'app']) mkdirSync(path.join(folder, name), { recursive: true })
  const write = (name: string, text: string, mode = 0o644): void => {
    writeFileSync(path.join(folder, name), text)
    chmodSync(path.join(folder, name), mode)
  }
  write('BUILD', buildText(agent.version ?? version, agent.build))
  write('bin/hawser-agent', launcher('hawser-agent'), 0o755)
  write('bin/node', `#!/bin/sh\nexec ${process.execPath} "$@"\n`, 0o755)
  write('app/main.mjs', `${behaviours[agent.behaves ?? 'well']}\n`)
}

/** Packs it where a server looks for it, in one step. */
export function offerFakeAgent(served: string, agent: FakeAgent, arch: string = process.arch): string {
  mkdirSync(served, { recursive: true })
  const work = mkdtempSync(path.join(served, 'work-'))
  writeFakeAgent(path.join(work, 'hawser-agent'), agent)
  const files = ['BUILD', 'app/main.mjs', 'bin/hawser-agent', 'bin/node'].map(
    (name) => `hawser-agent/${name}`,
  )
  const archive = path.join(served, `hawser-agent-linux-${arch}.tar.gz`)
  execFileSync('tar', ['-C', work, '--format=ustar', '-czf', path.join(work, 'archive'), ...files])
  renameSync(path.join(work, 'archive'), archive)
  rmSync(work, { recursive: true })
  return archive
}

/** Installs like `hawser-agent install`; returns the launcher of a service. */
export function installFakeAgent(root: string, agent: FakeAgent): string {
  const from = mkdtempSync(path.join(root, 'fetched-'))
  writeFakeAgent(from, agent)
  const [command = ''] = installProgram({ kind: 'folder', from }, root, '/opt/hawser-agent')
  rmSync(from, { recursive: true })
  return root + command
}

/**
 * Restarts the launcher like a service. In a process namespace of its own, so that killing it ends all its
 * children.
 */
export const supervised = (program: string): [string, ...string[]] => [
  'unshare',
  '--pid',
  '--fork',
  '--kill-child',
  '--mount-proc',
  'sh',
  '-c',
  'while :; do "$0"; sleep 0.2; done',
  program,
]
