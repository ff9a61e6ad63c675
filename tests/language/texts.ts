// The texts of a source file of the console: those that pass through the catalogue, and those that do not. It
// reads the syntax tree, so comments and types cannot mislead it. What counts as a text: whatever is
// shown between tags, in an attribute that is not known to be technical, and any other string that reads
// like words for people.
import { parseAst } from 'vitest/node'
import {
  commandLines,
  mixedAttributes,
  shownProperties,
  technicalAttributes,
  technicalCalls,
  technicalElements,
  technicalNames,
  technicalStrings,
} from './technical.ts'

export interface Text {
  readonly text: string
  readonly line: number
}

export interface Reading {
  /** What is asked of the catalogue. */
  readonly keys: readonly Text[]
  /** What is shown without asking it, or asks it in a way that cannot be followed. */
  readonly outside: readonly Text[]
}

interface Node {
  readonly type: string
  readonly start: number
  readonly [field: string]: unknown
}

/**
 * Where a string stands: between tags or in an attribute, in a list of choices, or elsewhere in the program.
 */
type Place = 'shown' | 'choices' | 'program' | 'technical'

const functions = /^(FunctionDeclaration|FunctionExpression|ArrowFunctionExpression)$/
/** Which of their arguments are texts. */
const asking: ReadonlyMap<string, readonly number[]> = new Map([
  ['t', [0]],
  ['rich', [0]],
  ['msg', [0]],
  ['tn', [1, 2]],
])

export function textsOf(source: string, tsx = true): Reading {
  const keys: Text[] = []
  const outside: Text[] = []
  const at = (node: Node, text: string): Text => ({
    text,
    line: source.slice(0, node.start).split('\n').length,
  })

  /** The string literals that an argument may be. */
  function ask(node: Node): void {
    const text = stringOf(node)
    if (text === '') return
    if (text !== undefined) keys.push(at(node, text))
    else if (node.type === 'ConditionalExpression')
      [node['consequent'], node['alternate']].filter(isNode).forEach(ask)
    else if (node.type === 'LogicalExpression') [node['left'], node['right']].filter(isNode).forEach(ask)
    else if (node.type === 'TemplateLiteral') outside.push(at(node, 'a text with a value glued into it'))
  }

  function string(node: Node, text: string, place: Place): void {
    if (place === 'technical' || [...technicalStrings, ...commandLines].some((one) => one.test(text.trim())))
      return
    if (place === 'program' && technicalNames.some((one) => one.test(text))) return
    if (place === 'shown' ? /\p{L}/u.test(text) : readsLikeWords(text)) outside.push(at(node, text.trim()))
  }

  function visit(node: Node, place: Place, inFunction: boolean): void {
    const visitAll = (nodes: unknown, where: Place) => {
      for (const one of Array.isArray(nodes) ? nodes : [nodes]) if (isNode(one)) visit(one, where, inFunction)
    }
    /** Pairs of a value and its words, or what makes such pairs. */
    const choices = (list: Node) => {
      for (const one of list['elements'] as Node[]) {
        const [value, words] = one.type === 'ArrayExpression' ? (one['elements'] as Node[]) : []
        if (value && words) visitAll(words, 'shown')
        else visitAll(one, 'program')
      }
    }
    switch (node.type) {
      case 'JSXText':
        return string(node, String(node['value']), place)
      case 'JSXElement': {
        const opening = node['openingElement'] as Node
        visitAll(opening['attributes'], 'technical')
        return visitAll(
          node['children'],
          technicalElements.includes(nameOf(opening['name'])) ? 'technical' : 'shown',
        )
      }
      case 'JSXFragment':
        return visitAll(node['children'], 'shown')
      case 'JSXAttribute':
        return visitAll(node['value'], placeOf(nameOf(node['name']), 'shown'))
      case 'Literal':
        return typeof node['value'] === 'string' ? string(node, node['value'], place) : undefined
      case 'TemplateLiteral': {
        string(node, wordsOf(node).join('…'), place)
        return visitAll(node['expressions'], place)
      }
      case 'ConditionalExpression':
        visitAll(node['test'], 'technical')
        return visitAll([node['consequent'], node['alternate']], place)
      case 'BinaryExpression':
        return visitAll([node['left'], node['right']], node['operator'] === '+' ? place : 'technical')
      case 'ArrayExpression':
        return place === 'choices'
          ? choices(node)
          : visitAll(node['elements'], place === 'shown' ? 'program' : place)
      case 'SwitchCase':
        return visitAll(node['consequent'], 'program')
      case 'MemberExpression':
        visitAll(node['object'], place)
        return visitAll(node['property'], 'technical')
      case 'Property':
        return visitAll(
          node['value'],
          placeOf(nameOf(node['key']), place === 'technical' ? 'program' : place),
        )
      case 'CallExpression':
      case 'NewExpression': {
        const name = nameOf(node['callee'])
        const asked = node['type'] === 'CallExpression' ? asking.get(name) : undefined
        const given = node['arguments'] as Node[]
        if (asked && name !== 'msg' && !inFunction)
          outside.push(at(node, 'a text asked for while the module loads'))
        visitAll(node['callee'], place === 'shown' ? 'program' : place)
        given.forEach((argument, index) => {
          if (asked?.includes(index)) ask(argument)
          else if (asked && argument.type === 'ObjectExpression') visitAll(valuesOf(argument), 'shown')
          else if (technicalCalls.includes(name) || isQueryKey(name, argument))
            visitAll(argument, 'technical')
          else visitAll(argument, 'program')
        })
        return undefined
      }
      default: {
        if (
          /^(TS|Import|Export(All|Named)Declaration$)/.test(node.type) &&
          !/^TS(As|Satisfies|NonNull)/.test(node.type)
        ) {
          return node.type === 'ExportNamedDeclaration' ? visitAll(node['declaration'], 'program') : undefined
        }
        const inner = functions.test(node.type)
        const where = inner || /Statement$|Declarator$/.test(node.type) ? 'program' : place
        for (const [field, value] of Object.entries(node)) {
          if (field === 'typeAnnotation' || field === 'directive') continue
          for (const one of Array.isArray(value) ? value : [value])
            if (isNode(one)) visit(one, where, inFunction || inner)
        }
        return undefined
      }
    }
  }

  const program: unknown = parseAst(source, { lang: tsx ? 'tsx' : 'ts' })
  if (isNode(program)) visit(program, 'program', false)
  return { keys, outside }
}

/** What an attribute or a property of this name holds, where others hold something else. */
const placeOf = (name: string, others: Place): Place =>
  technicalAttributes.includes(name) || name.startsWith('data-')
    ? 'technical'
    : mixedAttributes.includes(name)
      ? 'program'
      : name === 'options'
        ? 'choices'
        : shownProperties.includes(name)
          ? 'shown'
          : others

/** The first argument of `useNamespaceQuery` and its kin, by which they remember an answer. */
const isQueryKey = (call: string, argument: Node): boolean =>
  /^use\w*Query$/.test(call) && argument.type === 'ArrayExpression'

/** Two words in a row, or one that begins like a sentence. */
const readsLikeWords = (text: string): boolean =>
  /\p{L}{2,},? \p{L}|[\p{L}\d…]\s\p{L}{2,}|\p{L}{2,}\s…/u.test(text) || /^\p{Lu}\p{Ll}+\W*$/u.test(text)

function stringOf(node: Node): string | undefined {
  if (node.type === 'Literal' && typeof node['value'] === 'string') return node['value']
  if (node.type !== 'TemplateLiteral' || (node['expressions'] as unknown[]).length > 0) return undefined
  return wordsOf(node).join('')
}

/** What a template says between its values. */
const wordsOf = (node: Node): string[] =>
  (node['quasis'] as { value: { cooked: string } }[]).map(({ value }) => value.cooked)

/** The values of an object, whatever their names. */
const valuesOf = (node: Node): unknown[] =>
  (node['properties'] as Node[]).map((one) => one['value'] ?? one['argument'])

/** The last name of a chain: `showToast`, `log` of `console.log`. */
function nameOf(node: unknown): string {
  if (!isNode(node)) return ''
  if (typeof node['name'] === 'string') return node['name']
  return nameOf(node['property'] ?? node['name']) || (typeof node['value'] === 'string' ? node['value'] : '')
}

/** The names that a text expects: `{name}` and `<name>`. */
export const placeholdersOf = (text: string): string[] =>
  [...text.matchAll(/\{(\w+)\}|<(\w+)>/g)].map(([, value, tag]) => value ?? `<${tag}>`).toSorted()

function isNode(value: unknown): value is Node {
  return typeof value === 'object' && value !== null && 'type' in value && typeof value.type === 'string'
}
