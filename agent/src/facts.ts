// The facts of a device: its system, its processor, and its agent.
import { readFileSync } from 'node:fs'
import { version } from '@hawser/contract/version'

export interface Facts {
  readonly id: string
  readonly pretty_name: string
  readonly version: string
  readonly arch: string
  readonly platform: string
}

/** As the original's agents name them. */
const architectures: Readonly<Record<string, string>> = { x64: 'amd64', ia32: '386' }

export function facts(file = '/etc/os-release'): Facts {
  const release = new Map<string, string>()
  try {
    for (const line of readFileSync(file, 'utf8').split('\n')) {
      const [, name, value] = /^([A-Z_]+)=(.*)$/.exec(line) ?? []
      if (name) release.set(name, value!.replace(/^(["'])(.*)\1$/, '$2'))
    }
  } catch {
    // A system without the file has no name to report.
  }
  return {
    id: release.get('ID') ?? '',
    pretty_name: release.get('PRETTY_NAME') ?? '',
    version: `hawser-${version}`,
    arch: architectures[process.arch] ?? process.arch,
    platform: 'native',
  }
}
