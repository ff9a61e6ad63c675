// The sentences that the server refuses with, read from its source: those of failures in the rules, and all that stand
// in the files that speak with terminals and viewers. A sentence with a value glued into it is none of them: the console
// shows it as the server wrote it.
import { globSync, readFileSync } from 'node:fs'
import path from 'node:path'
import { parseAst } from 'vitest/node'
import { failures, type FailureKind } from '@hawser/contract/failures'
import {
  callLimits,
  deviceLimits,
  peopleLimits,
  serviceLimits,
  sessionLimits,
  type Limit,
} from '@hawser/contract/limits'
import { withoutFieldName } from '../../console/src/error-text.ts'

interface Node {
  readonly type: string
  readonly [field: string]: unknown
}

const folder = path.join(import.meta.dirname, '../../server/src')

/** Agents and administrators of the server are told these, never a page. */
const notForPages =
  /^domain\/(system\/|callers\/tokens\.ts|devices\/(enrolment|agentless|joining|presented-tokens|tunnels|install|agent-releases)\.ts)/

/** Whatever they say reaches a terminal or a viewer in a browser. */
const speaking = [
  'gateway/login/browser.ts',
  'gateway/channels/files.ts',
  'gateway/channels/uploads.ts',
  'gateway/channels/session.ts',
  'gateway/terminal/sharing.ts',
  'gateway/terminal/shared-terminal.ts',
  'gateway/terminal/held.ts',
  'gateway/terminal/holding.ts',
  'http/terminal.ts',
  'http/terminal-files.ts',
  'http/terminal-talk.ts',
  'http/message-socket.ts',
  'http/watch.ts',
  'http/visit.ts',
]

const isNode = (value: unknown): value is Node =>
  typeof value === 'object' && value !== null && 'type' in value && typeof value.type === 'string'

const childrenOf = (node: Node): Node[] =>
  Object.values(node)
    .flatMap((value) => (Array.isArray(value) ? (value as unknown[]) : [value]))
    .filter(isNode)

const textOf = ({ type, value }: Node): string | undefined =>
  type === 'Literal' && typeof value === 'string' ? value : undefined

/** The strings that an expression may be, where names stand for constants of the file. */
function stringsOf(node: Node, constants: ReadonlyMap<string, Node>): string[] {
  const text = textOf(node)
  if (text !== undefined) return [text]
  const named = node.type === 'Identifier' ? constants.get(String(node['name'])) : undefined
  if (named) return stringsOf(named, new Map())
  return node.type === 'ConditionalExpression'
    ? [node['consequent'], node['alternate']].filter(isNode).flatMap((one) => stringsOf(one, constants))
    : []
}

/** The console has a sentence of its own for all failures of the server itself. */
const isTrouble = (kind: Node): boolean => (failures[textOf(kind) as FailureKind]?.status ?? 0) >= 500

function ofFailures(program: Node): string[] {
  const constants = new Map<string, Node>()
  const found: string[] = []
  const visit = (node: Node, act: (one: Node) => void): void => {
    act(node)
    for (const child of childrenOf(node)) visit(child, act)
  }
  visit(program, ({ type, id, init }) => {
    if (type === 'VariableDeclarator' && isNode(id) && isNode(init)) constants.set(String(id['name']), init)
  })
  visit(program, ({ type, callee, arguments: given }) => {
    const called = isNode(callee) ? callee['name'] : undefined
    if (called !== 'orConflict' && (type !== 'NewExpression' || called !== 'Failure')) return
    const [kind, last] = given as Node[]
    if (kind && isTrouble(kind)) return
    const about = last?.type === 'Identifier' ? constants.get(String(last['name'])) : last
    for (const { key, value } of about?.type === 'ObjectExpression' ? (about['properties'] as Node[]) : [])
      if (isNode(key) && key['name'] === 'message' && isNode(value))
        found.push(...stringsOf(value, constants))
  })
  return found
}

const ofAll = (node: Node): string[] => {
  const text = textOf(node)
  return text === undefined ? childrenOf(node).flatMap(ofAll) : /^[A-Z]\S* .*\.$/.test(text) ? [text] : []
}

const parsed = (file: string): Node => {
  const program: unknown = parseAst(readFileSync(path.join(folder, file), 'utf8'), { lang: 'ts' })
  return program as Node
}

/** As the console asks for them: without the name of a field. */
export function serverSentences(): string[] {
  const rules = globSync('domain/**/*.ts', { cwd: folder }).filter(
    (file) => !file.endsWith('.test.ts') && !notForPages.test(file),
  )
  // A sentence with a number in it is the console's to show as it is, like every one with a value.
  const limits: Limit[] = [
    ...Object.values(callLimits),
    ...Object.values(peopleLimits),
    ...Object.values(sessionLimits),
    serviceLimits.openings,
    deviceLimits.pairing,
  ]
  const all = [
    ...limits.flatMap(({ message }) => (message === undefined || /\d/.test(message) ? [] : message)),
    ...rules.flatMap((file) => ofFailures(parsed(file))),
    ...speaking.flatMap((file) => ofAll(parsed(file))),
  ]
  // `code or recovery_code: one of them is needed` is for programs.
  const asked = all.map((sentence) => withoutFieldName(sentence).rest)
  return [...new Set(asked.filter((sentence) => /^[A-Z]/.test(sentence)))]
}
