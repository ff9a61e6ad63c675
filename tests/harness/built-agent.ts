// The agent for this machine as `npm run build` makes it, made once and then kept until its sources change.
import { existsSync } from 'node:fs'
import path from 'node:path'
import type { Architecture } from '../../packages/registry.ts'
import { agentsFolder } from '../../packages/served.ts'
import { makeTarball, tarballName } from '../../packages/tarball.ts'

/** The folder of a server. */
export async function builtAgents(): Promise<string> {
  const folder = agentsFolder()
  const file = builtAgent()
  if (!existsSync(file)) await makeTarball('agent', process.arch as Architecture, file)
  return folder
}

export function builtAgent(): string {
  return path.join(agentsFolder(), tarballName('agent', process.arch as Architecture))
}
