// The package that devices get is whole: whatever a file of it imports is in it, or is Node's own.
import { existsSync, globSync, mkdtempSync, readFileSync, rmSync } from 'node:fs'
import { createRequire, isBuiltin } from 'node:module'
import os from 'node:os'
import path from 'node:path'
import { expect, test } from 'vitest'
import { packFolder } from '../pack.ts'

test('nothing is missing', () => {
  const folder = mkdtempSync(path.join(os.tmpdir(), 'hawser-pack-'))
  try {
    packFolder(path.join(folder, 'agent'))
    const files = globSync('agent/{agent,mux,ssh,engine,contract}/src/**/*.js', { cwd: folder })
    expect(files.length).toBeGreaterThan(100)
    const missing = files.flatMap((file) => {
      const text = readFileSync(path.join(folder, file), 'utf8')
      const names = [...text.matchAll(/(?:^import |\} from |\bimport\()\s*'([^']+)'/gm)].map(
        ([, name]) => name ?? '',
      )
      return names
        .filter((name) => !isThere(path.join(folder, file), name))
        .map((name) => `${file} imports ${name}`)
    })
    expect(missing).toEqual([])
  } finally {
    rmSync(folder, { recursive: true, force: true })
  }
})

function isThere(file: string, name: string): boolean {
  if (isBuiltin(name)) return true
  if (name.startsWith('.')) return existsSync(path.resolve(path.dirname(file), name))
  try {
    return existsSync(createRequire(file).resolve(name))
  } catch {
    return false
  }
}
