// Every operation of the contract is a command, and what the command sends is what the typed client sends for
// the same example: path, query and body. A real listener takes both.
import { createServer, type Server } from 'node:http'
import type { AddressInfo } from 'node:net'
import { mkdtempSync, rmSync } from 'node:fs'
import os from 'node:os'
import path from 'node:path'
import { text } from 'node:stream/consumers'
import { afterAll, beforeAll, expect, test } from 'vitest'
import { operations, type NamedOperation } from '@hawser/contract'
import { call } from '@hawser/contract/client'
import { check, globalOptions, parse } from '../src/command.ts'
import { commandFor, kebab } from '../src/generated-commands.ts'
import { openContext, type Context } from '../src/context.ts'
import { allCommands } from '../src/main.ts'

let server: Server
let heard: { method: string | undefined; url: string; body: unknown }[] = []
let context: Context
const folder = mkdtempSync(path.join(os.tmpdir(), 'hawser-commands-'))

beforeAll(async () => {
  server = createServer((request, response) => {
    void text(request).then((body) => {
      heard.push({
        method: request.method,
        url: inOrder(request.url ?? ''),
        body: body === '' ? undefined : (JSON.parse(body) as unknown),
      })
      // A session is looked up before it is named by its uid.
      const known = /^\/api\/sessions\/([0-9a-f]{64})$/.exec(request.url ?? '')?.[1]
      response
        .setHeader('content-type', 'application/json')
        .end(known ? JSON.stringify({ uid: known }) : '[]')
    })
  }).listen(0, '127.0.0.1')
  await new Promise((resolve) => void server.once('listening', resolve))
  const url = `http://127.0.0.1:${(server.address() as AddressInfo).port}`
  const env = { HAWSER_SERVER: url, HAWSER_API_KEY: 'key', XDG_CONFIG_HOME: folder }
  context = { ...openContext(env, { server: undefined, output: undefined }), print: () => undefined }
})
afterAll(async () => {
  await new Promise((resolve) => void server.close(resolve))
  rmSync(folder, { recursive: true, force: true })
})

/** The order of a query's fields means nothing. */
const inOrder = (url: string) => {
  const [path, query = ''] = url.split('?')
  return [path, ...query.split('&').toSorted()].join(' ')
}

/** The options that a person would write for these values. */
function optionsFor(value: unknown, name: string): string[] {
  if (typeof value === 'boolean') return [value ? `--${name}` : `--no-${name}`]
  if (Array.isArray(value) && value.every((one) => typeof one !== 'object'))
    return value.flatMap((one) => [`--${name}`, String(one)])
  if (typeof value === 'object' && value !== null && !Array.isArray(value)) {
    return Object.entries(value).flatMap(([key, inner]) =>
      optionsFor(inner, name ? `${name}-${kebab(key)}` : kebab(key)),
    )
  }
  return [`--${name}`, typeof value === 'string' ? value : JSON.stringify(value)]
}

function wordsFor({ op }: NamedOperation): string[] {
  const { params = {}, query = {}, body } = op.example
  const places = [...op.path.matchAll(/:(\w+)/g)].map(
    ([, name]) => (params as Record<string, string>)[name!]!,
  )
  const whole = op.signed || (body !== undefined && !('properties' in (op.body ?? {})))
  return [
    ...places,
    ...Object.entries(query).map(([name, value]) => `--${kebab(name)}=${value}`),
    ...(whole ? ['--body', JSON.stringify(body)] : optionsFor(body ?? {}, '')),
  ]
}

test.each(operations)('$id sends what the typed client sends', async (named) => {
  const command = commandFor(named)
  const given = parse(command.options ?? [], wordsFor(named))
  check(command, given)
  heard = []
  await command.run(given, context)
  const sent = heard.at(-1)
  heard = []
  await call(named.op, named.op.example, context.options(true))
  expect(sent).toEqual(heard[0])
})

test('there is a command for each operation, and none twice', () => {
  const words = allCommands().map((command) => command.words.join(' '))
  expect(words.filter((one, i) => words.indexOf(one) !== i)).toEqual([])
  expect(operations.filter(({ noun, verb }) => !words.includes(`${kebab(noun)} ${kebab(verb)}`))).toEqual([])
})

test('no option of a command has the name of another, or of one that every command has', () => {
  for (const { words, options = [], raw } of allCommands()) {
    const names = [...options, ...(raw ? [] : globalOptions)].flatMap(({ name, short }) => [
      `--${name}`,
      ...(short ? [`-${short}`] : []),
    ])
    expect(
      names.filter((one, i) => names.indexOf(one) !== i),
      words.join(' '),
    ).toEqual([])
  }
})
