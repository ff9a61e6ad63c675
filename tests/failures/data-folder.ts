// For tests of data folders that cannot be used: installations to damage, and the sentence about each.
import { chmodSync, cpSync } from 'node:fs'
import path from 'node:path'
import { afterAll, beforeAll, expect } from 'vitest'
import { admin, environmentFor, hawser, run, temporaryFolder } from './program.ts'

/** Opened before the tests of a file, and removed after them. */
export function installations() {
  const place = temporaryFolder()
  const at = (name: string): string => path.join(place.path, name)
  afterAll(() => place[Symbol.dispose]())
  // An installation with somebody in it, to be copied.
  beforeAll(async () => {
    chmodSync(place.path, 0o755)
    for (const words of [['migrate'], ['user', 'create', 'ann', 'secret-1', 'ann@example.com']]) {
      const { code, stderr } = await admin(at('sound'), words)
      if (code !== 0) throw new Error(stderr)
    }
  })
  return {
    at,
    installation(name: string): string {
      cpSync(at('sound'), at(name), { recursive: true })
      return at(name)
    },
  }
}

const commands = [['serve'], ['admin', 'user', 'list']] as const

/**
 * The sentence with which every command fails. `before` is put before the program's own words.
 */
export async function sentence(
  folder: string,
  before: readonly string[] = [],
  program: readonly string[] = [process.execPath, hawser],
): Promise<string> {
  const said = await Promise.all(
    commands.map(async (words) => {
      const [first = '', ...rest] = [...before, ...program, ...words]
      const outcome = await run([first, ...rest], { env: environmentFor(folder) })
      expect(outcome, words.join(' ')).toMatchObject({ code: 1, signal: null, stdout: '' })
      return outcome.stderr
    }),
  )
  expect(new Set(said).size, said.join('')).toBe(1)
  expect(said[0]).toMatch(/^[^\n]+\n$/)
  return (said[0] ?? '').trim()
}
