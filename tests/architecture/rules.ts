// Holds source files against the plan and says, in one sentence each, what is wrong and why. Pure: it is given paths
// and texts, so its own tests can hand it small houses that do not exist. Tests, benches, docs and the configuration
// of tools may import anything; everything that is shipped may not.
import { builtinModules } from 'node:module'
import path from 'node:path'
import { read, type Import, type Reading } from './imports.ts'
import * as plan from './plan.ts'

export interface SourceFile {
  /** From the root of the project, with slashes. */
  readonly path: string
  readonly text: string
}

export function violations(files: readonly SourceFile[]): string[] {
  return [...files.flatMap((file) => [...shapeOf(file), ...(isFree(file.path) ? [] : contentOf(file))]), ...wholeOf(files)]
}

function shapeOf({ path: file, text }: SourceFile): string[] {
  const found: string[] = []
  if (!/^[a-z0-9]+(-[a-z0-9]+)*(\.(test|long\.test|config|d))?\.tsx?$/.test(path.basename(file)))
    found.push(`${file}: file names are kebab-case`)
  const lines = linesOf(text)
  if (lines > plan.mostLines && !(file in plan.longFiles)) {
    found.push(`${file} has ${lines} lines; more than ${plan.mostLines} needs a reason in tests/architecture/plan.ts`)
  }
  return found
}

function contentOf({ path: file, text }: SourceFile): string[] {
  let reading: Reading
  try {
    reading = read(text, file.endsWith('.tsx'))
  } catch (error) {
    return [`${file} cannot be read: ${error instanceof Error ? error.message : String(error)}`]
  }
  const found = reading.imports.flatMap((one) => {
    const wrong = isOurs(one.specifier) ? wrongArrow(file, one) : wrongPackage(file, one.specifier)
    return wrong ? [`${file}:${one.line} ${wrong}`] : []
  })
  if (file.startsWith('server/src/') && !plan.environmentReaders.includes(file)) {
    for (const line of reading.environment) {
      found.push(
        `${file}:${line} reads process.env: only ${plan.environmentReaders.join(', ')} does, so that all settings are known and checked`,
      )
    }
  }
  const place = placeOf(file)
  if (place.startsWith('server/') && !(place in plan.rooms)) found.push(`${file} is in a room that is not in tests/architecture/plan.ts`)
  return found
}

function wholeOf(files: readonly SourceFile[]): string[] {
  const kit = files.filter((file) => placeOf(file.path) === 'server/kit' && !isFree(file.path))
  const long = new Set(files.filter((file) => linesOf(file.text) > plan.mostLines).map((file) => file.path))
  return [
    ...(kit.length > plan.mostFilesInKit
      ? [`server/src/kit has ${kit.length} files; more than ${plan.mostFilesInKit} and it is a heap: what has a noun belongs to a room`]
      : []),
    ...Object.keys(plan.longFiles)
      .filter((file) => !long.has(file))
      .map((file) => `${file} is listed as a long file and is not: strike it from tests/architecture/plan.ts`),
  ]
}

function linesOf(text: string): number {
  return text.trimEnd().split('\n').length
}

function isFree(file: string): boolean {
  return /^(tests|bench|docs|[a-z]+\/test)\//.test(file) || /\.(test|config)\.tsx?$/.test(file)
}

/** The package or room a file is in; `server` for the files that put the rooms together, `` for what is in neither. */
function placeOf(file: string): string {
  const [first = '', second, third, ...deeper] = file.split('/')
  if (!(first in plan.packages)) return ''
  return first === 'server' && second === 'src' && third && deeper.length > 0 ? `server/${third}` : first
}

function isOurs(specifier: string): boolean {
  return specifier.startsWith('.') || specifier.startsWith('@hawser/')
}

/** The file that is meant by an import of ours. */
function targetOf(file: string, specifier: string): string {
  const [, name, ...rest] = specifier.split('/')
  return specifier.startsWith('.')
    ? path.posix.join(path.posix.dirname(file), specifier)
    : path.posix.join(name ?? '', 'src', `${rest.join('/') || 'index'}.ts`)
}

function wrongArrow(file: string, { specifier, kind }: Import): string | undefined {
  const from = placeOf(file)
  // The programs at the root start everything, so they may know everyone, as may the composition of the server.
  if (from === '') return undefined
  const target = targetOf(file, specifier)
  const to = placeOf(target)
  if (to === '' || isFree(target)) return `imports ${specifier}: what is shipped does not know tests, benches, docs or starters`
  if (from === to || (from === 'server' && to.startsWith('server/'))) return undefined
  if (to === 'server' && from.startsWith('server/')) return `imports ${specifier}: a room is handed what it needs; composition is above it`

  const place = plan.rooms[from] ?? plan.packages[from]
  if (!place) return undefined // a room that is not in the plan is reported as such
  // Other packages see the server as a whole, only its own rooms see rooms.
  const wanted = from.startsWith('server') ? to : to.replace(/\/.*/, '')
  if (place.values.includes(wanted)) return undefined
  if (place.types.includes(wanted) || plan.fileTypes[file]?.includes(wanted)) {
    return kind === 'type' ? undefined : `imports values from ${wanted}, where \`import type\` is all that is allowed: ${place.because}`
  }
  return `imports ${wanted}: ${from} may not, because ${place.because}`
}

function wrongPackage(file: string, specifier: string): string | undefined {
  const builtin = specifier.startsWith('node:') || builtinModules.includes(specifier)
  const anywhere = plan.runsAnywhere.find((name) => file.startsWith(`${name}/`))
  if (builtin && anywhere) return `imports ${specifier}: ${anywhere} also runs where there is no Node`

  const words = specifier.split('/')
  const name = specifier.startsWith('@') ? words.slice(0, 2).join('/') : (words[0] ?? '')
  const homes = plan.thirdParty[name] ?? plan.thirdParty[`${words[0]}/`]
  if (homes?.some((home) => file.startsWith(`${home}/`))) return undefined
  if (homes) return `imports ${name}: only ${homes.join(', ') || 'nobody, so far,'} may, so that it can be replaced in one place`
  if (builtin) return undefined
  return `imports ${name}, which has no place yet: add it to the table in tests/architecture/plan.ts and write a decision in docs/decisions`
}
