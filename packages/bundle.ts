// The agent and the command line, each with all that it stands on, as one script.
import { createHash } from 'node:crypto'
import { readFileSync } from 'node:fs'
import { isBuiltin } from 'node:module'
import path from 'node:path'
import { rolldown } from 'rolldown'

export const root = path.join(import.meta.dirname, '..')
export const products = ['agent', 'cli'] as const
export type Product = (typeof products)[number]
/** What people call them. */
export const programs: Readonly<Record<Product, string>> = { agent: 'hawser-agent', cli: 'hawser' }

export const { version } = JSON.parse(readFileSync(path.join(root, 'package.json'), 'utf8')) as {
  version: string
}

export type Form = 'executable' | 'npm'

/**
 * The Nodes on which the npm packages run. The agent needs what only new ones have; the command line can do
 * with less.
 */
export const oldestNode: Readonly<Record<Product, string>> = { agent: '24.15.0', cli: '20.12.0' }

export async function bundle(product: Product, form: Form): Promise<string> {
  const build = await rolldown({
    input: path.join(import.meta.dirname, `${product}.ts`),
    cwd: root,
    platform: 'node',
    resolve: {
      alias:
        form === 'executable'
          ? { '@lydell/node-pty/requireBinary.js': path.join(import.meta.dirname, 'native-pty.ts') }
          : {},
    },
    transform: {
      target: form === 'executable' ? `node${process.versions.node}` : `node${oldestNode[product]}`,
      // The optional parts of ws are looked for in the folders above the program, where anybody might have
      // put something.
      define: { 'process.env.WS_NO_BUFFER_UTIL': '"1"', 'process.env.WS_NO_UTF_8_VALIDATE': '"1"' },
    },
    // What cannot be found would be a warning, and a program that fails only when it gets there.
    onLog(level, log) {
      if (level === 'warn') throw new Error(log.message)
    },
  })
  const { output } = await build.generate({
    format: 'esm',
    codeSplitting: false,
    comments: { legal: true, annotation: false, jsdoc: false },
  })
  await build.close()
  if (output.length !== 1) throw new Error(`one file was expected of ${product}, not ${output.length}`)
  const { code } = output[0]
  for (const [, name = ''] of code.matchAll(/\b__require\("([^"]*)"\)/g))
    if (!isBuiltin(name)) throw new Error(`${product} would look for ${name} outside of its file`)
  return code
}

export function hashOf(...things: readonly (string | Buffer)[]): string {
  const hash = createHash('sha256')
  for (const thing of things) hash.update(thing).update('\0')
  return hash.digest('hex')
}
