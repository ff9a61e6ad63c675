// What a source file knows of others: its imports, re-exports, dynamic imports with a plain string and
// `import('…')` types, each as a value or as a type, and whether it reads the environment. It reads the
// syntax tree of the parser that vitest brings, so comments, strings and odd formatting cannot mislead it.
import { parseAst } from 'vitest/node'

export interface Import {
  readonly specifier: string
  readonly kind: 'value' | 'type'
  readonly line: number
}

export interface Reading {
  readonly imports: readonly Import[]
  /** The lines on which process.env is read. */
  readonly environment: readonly number[]
}

interface Node {
  readonly type: string
  readonly start: number
  readonly [field: string]: unknown
}

export function read(source: string, tsx = false): Reading {
  const imports: Import[] = []
  const environment: number[] = []
  const lineOf = (node: Node) => source.slice(0, node.start).split('\n').length

  function visit(node: Node): void {
    const from = node.source
    if (isNode(from) && typeof from.value === 'string') {
      imports.push({ specifier: from.value, kind: onlyTypes(node) ? 'type' : 'value', line: lineOf(node) })
    }
    if (readsEnvironment(node)) environment.push(lineOf(node))
    for (const field of Object.values(node)) {
      if (Array.isArray(field)) field.filter(isNode).forEach(visit)
      else if (isNode(field)) visit(field)
    }
  }

  const program: unknown = parseAst(source, { lang: tsx ? 'tsx' : 'ts' })
  if (isNode(program)) visit(program)
  return { imports, environment }
}

function isNode(value: unknown): value is Node {
  return typeof value === 'object' && value !== null && 'type' in value && typeof value.type === 'string'
}

/**
 * `import type`, `export type`, `import('…')` as a type, or specifiers that all say `type`. The last one
 * still loads the module when Node strips the types; the linter turns it into the first.
 */
function onlyTypes(node: Node): boolean {
  if (node.type === 'TSImportType' || node.importKind === 'type' || node.exportKind === 'type') return true
  const specifiers = Array.isArray(node.specifiers) ? node.specifiers.filter(isNode) : []
  return (
    specifiers.length > 0 && specifiers.every((one) => one.importKind === 'type' || one.exportKind === 'type')
  )
}

/** `process.env`, `process['env']`, `const { env } = process` and `import { env } from 'node:process'`. */
function readsEnvironment(node: Node): boolean {
  if (node.type === 'MemberExpression') return named(node.object, 'process') && named(node.property, 'env')
  if (node.type === 'VariableDeclarator') {
    const properties =
      isNode(node.id) && Array.isArray(node.id.properties) ? node.id.properties.filter(isNode) : []
    return named(node.init, 'process') && properties.some((property) => named(property.key, 'env'))
  }
  if (
    node.type === 'ImportDeclaration' &&
    isNode(node.source) &&
    /^(node:)?process$/.test(String(node.source.value))
  ) {
    return (
      Array.isArray(node.specifiers) &&
      node.specifiers.filter(isNode).some((one) => named(one.imported, 'env'))
    )
  }
  return false
}

function named(node: unknown, name: string): boolean {
  return isNode(node) && (node.name === name || node.value === name)
}
