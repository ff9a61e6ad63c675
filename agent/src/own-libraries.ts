// The libraries that our Node needs and the system may lack. The launcher (packages/tarball.ts) then names
// the folder `lib` next to our Node in LD_LIBRARY_PATH. Only our own Node is to see that folder: each program
// of ours takes it out of its environment at its start, and gives it to children that run the same Node.
import path from 'node:path'

const variable = 'LD_LIBRARY_PATH'
let libraries: Readonly<Record<string, string>> = {}

export const ownLibraries = (): Readonly<Record<string, string>> => libraries

/**
 * For a child that runs our Node first and another program then: our folder comes before those of the
 * program.
 */
export function withOwn(
  env: Readonly<Record<string, string>>,
  own: Readonly<Record<string, string>> = {},
): Record<string, string> {
  const both = [own[variable], env[variable]].filter((folders) => folders !== undefined)
  return { ...env, ...own, ...(both.length > 0 ? { [variable]: both.join(':') } : {}) }
}

export function hideLibraries(
  env: Record<string, string | undefined> = process.env,
  folder = path.join(path.dirname(process.execPath), '../lib'),
): void {
  const folders = env[variable]?.split(':') ?? []
  const others = folders.filter((each) => path.resolve(each) !== folder)
  if (others.length === folders.length) return
  libraries = { [variable]: folder }
  if (others.length > 0) env[variable] = others.join(':')
  else delete env[variable]
}
