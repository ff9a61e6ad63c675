// Holds source files against the plan and says, in one sentence each, what is wrong and why. Pure: it is
// given paths and texts, so its own tests can hand it small houses that do not exist. Tests, benches, docs
// and the configuration of tools may import anything; everything that is shipped may not.
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
  return [
    ...files.flatMap((file) => [...shapeOf(file), ...(isFree(file.path) ? [] : contentOf(file))]),
    ...wholeOf(files),
  ]
}

function shapeOf({ path: file, text }: SourceFile): string[] {
  const found: string[] = []
  if (!/^[a-z0-9]+(-[a-z0-9]+)*(\.(test|long\.test|config|d))?\.tsx?$/.test(path.basename(file)))
    found.push(`${file}: file names are kebab-case`)
  const lines = linesOf(text)
  if (lines > plan.mostLines && !(file in plan.longFiles)) {
    found.push(
      `${file} has ${lines} lines; more than ${plan.mostLines} needs a reason in tests/architecture/plan.ts`,
    )
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
  if (place.startsWith('server/') && !(place in plan.rooms) && !plan.composition.includes(place))
    found.push(`${file} is in a room that is not in tests/architecture/plan.ts`)
  return found
}

function wholeOf(files: readonly SourceFile[]): string[] {
  const kit = files.filter((file) => placeOf(file.path) === 'server/kit' && !isFree(file.path))
  const long = new Set(files.filter((file) => linesOf(file.text) > plan.mostLines).map((file) => file.path))
  return [
    ...circles(files),
    ...(kit.length > plan.mostFilesInKit
      ? [
          `server/src/kit has ${kit.length} files; more than ${plan.mostFilesInKit} and it is a heap: what has a noun belongs to a room`,
        ]
      : []),
    ...Object.keys(plan.longFiles)
      .filter((file) => !long.has(file))
      .map(
        (file) => `${file} is listed as a long file and is not: strike it from tests/architecture/plan.ts`,
      ),
  ]
}

/**
 * Files that import each other, directly or by way of others; types count, because a reader has to follow
 * them, too.
 */
function circles(files: readonly SourceFile[]): string[] {
  const known = new Set(files.map((file) => file.path))
  const importsOf = new Map<string, readonly string[]>()
  for (const { path: file, text } of files) {
    if (isFree(file)) continue
    try {
      const targets = read(text, file.endsWith('.tsx')).imports.filter((one) => isOurs(one.specifier))
      importsOf.set(
        file,
        targets.map((one) => targetOf(file, one.specifier)).filter((target) => known.has(target)),
      )
    } catch {
      // A file that cannot be read is reported as such.
    }
  }
  const found: string[] = []
  const done = new Set<string>()
  function visit(file: string, trail: readonly string[]): void {
    const start = trail.indexOf(file)
    if (start >= 0)
      return void found.push(
        `${[...trail.slice(start), file].join(' → ')}: these files import each other in a circle`,
      )
    if (done.has(file)) return
    for (const target of importsOf.get(file) ?? []) visit(target, [...trail, file])
    done.add(file)
  }
  for (const file of importsOf.keys()) visit(file, [])
  return found
}

function linesOf(text: string): number {
  return text.trimEnd().split('\n').length
}

function isFree(file: string): boolean {
  return /^(tests|bench|docs|[a-z]+\/(test|examples))\//.test(file) || /\.(test|config)\.tsx?$/.test(file)
}

/**
 * The package or room a file is in. The domain and the gateway have rooms of their own, config.ts is a room of one file, and the
 * other files beside the rooms of the server are `server`. Empty for what is in no package.
 */
function placeOf(file: string): string {
  const [first = '', second, third, fourth, ...deeper] = file.split('/')
  if (!(first in plan.packages)) return ''
  if (first !== 'server' || second !== 'src') return first
  if (third === 'config.ts') return 'server/config'
  if (third === 'domain' || third === 'gateway')
    return deeper.length > 0 ? `server/${third}/${fourth}` : `server/${third}`
  return fourth ? `server/${third}` : 'server'
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
  // The programs at the root start everything, so they may know everyone, as may the composition of the
  // server.
  if (from === '') return undefined
  const target = targetOf(file, specifier)
  const to = placeOf(target)
  if (to === '' || isFree(target))
    return `imports ${specifier}: what is shipped does not know tests, benches, docs or starters`
  if (from === to) return undefined
  const rank = plan.composition.indexOf(from)
  const targetRank = plan.composition.indexOf(to)
  if (rank >= 0 && to.startsWith('server')) {
    return rank > targetRank
      ? undefined
      : `imports ${specifier}: ${to} is above ${from}, as tests/architecture/plan.ts lists them`
  }
  if (targetRank >= 0 && from.startsWith('server/'))
    return `imports ${specifier}: a room is handed what it needs; composition is above it`

  // The composition knows the packages that the server knows.
  const place = rank >= 0 ? plan.packages['server'] : (plan.rooms[from] ?? plan.packages[from])
  if (!place) return undefined // a room that is not in the plan is reported as such
  // Other packages see the server as a whole, only its own rooms see rooms.
  const wanted = from.startsWith('server') ? to : to.replace(/\/.*/, '')
  const isIn = (names: readonly string[] = []): boolean =>
    names.some((name) => wanted === name || wanted.startsWith(`${name}/`))
  if (isIn(place.values)) return undefined
  if (isIn(place.types) || isIn(plan.fileTypes[file])) {
    return kind === 'type'
      ? undefined
      : `imports values from ${wanted}, where \`import type\` is all that is allowed: ${place.because}`
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
  if (homes?.some((home) => file === home || file.startsWith(`${home}/`))) return undefined
  if (homes)
    return `imports ${name}: only ${homes.join(', ') || 'nobody, so far,'} may, so that it can be replaced in one place`
  if (builtin) return undefined
  return `imports ${name}, which has no place yet: add it to the table in tests/architecture/plan.ts and write a decision in docs/decisions`
}
