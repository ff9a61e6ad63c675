// The native part of node-pty in an executable, in place of the module that looks for it in a folder of
// packages. It lies in the executable, but the system loads code from files only, so it is one for a moment:
// in a new folder that only we may enter, removed at once. The places where nobody else can write come first;
// some devices forbid to run code from some places.
import { mkdtempSync, rmSync, writeFileSync } from 'node:fs'
import { tmpdir } from 'node:os'
import path from 'node:path'
import { getAsset } from 'node:sea'

export function requireBinary(name: string): unknown {
  const why: string[] = []
  for (const place of new Set(['/run', path.dirname(process.execPath), tmpdir(), '/var/tmp', '/dev/shm'])) {
    try {
      return load(mkdtempSync(path.join(place, '.hawser-')), name)
    } catch (error) {
      why.push(error instanceof Error ? error.message : String(error))
    }
  }
  throw new Error(`No folder was found from which code can be loaded: ${why.join('; ')}`)
}

function load(folder: string, name: string): unknown {
  try {
    const file = path.join(folder, name)
    writeFileSync(file, Buffer.from(getAsset(name)), { mode: 0o500, flag: 'wx' })
    const module = { exports: {} }
    process.dlopen(module, file)
    return module.exports
  } finally {
    rmSync(folder, { recursive: true, force: true })
  }
}
