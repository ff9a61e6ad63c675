// Bundles the agent and the command line with rolldown: each program and all that it imports become a few
// plain JavaScript files in one folder. Tarballs, npm packages and `npm run agent` all use the same files.
import { readFileSync } from 'node:fs'
import { isBuiltin } from 'node:module'
import path from 'node:path'
import { rolldown } from 'rolldown'

export const root = path.join(import.meta.dirname, '..')
export const products = ['agent', 'cli'] as const
export type Product = (typeof products)[number]
export const programs: Readonly<Record<Product, string>> = { agent: 'hawser-agent', cli: 'hawser' }

export const { version } = JSON.parse(readFileSync(path.join(root, 'package.json'), 'utf8')) as {
  version: string
}

export const oldestNode: Readonly<Record<Product, string>> = { agent: '24.15.0', cli: '20.12.0' }

/** Each entry becomes `<name>.mjs`. The agent finds its child programs next to its own `main.mjs`. */
const entries: Readonly<Record<Product, Readonly<Record<string, string>>>> = {
  agent: {
    main: 'agent/src/main.ts',
    'sftp-child': 'agent/src/sftp-child.ts',
    'user-sockets-child': 'agent/src/user-sockets-child.ts',
    'privileges-child': 'agent/src/privileges-child.ts',
  },
  cli: { main: 'packages/cli.ts' },
}

export interface Script {
  readonly name: string
  readonly code: string
}

export async function bundle(product: Product): Promise<Script[]> {
  const build = await rolldown({
    input: { ...entries[product] },
    cwd: root,
    platform: 'node',
    transform: {
      target: `node${oldestNode[product]}`,
      // ws would look for its optional packages in every folder above the program, where anybody might have
      // put something.
      define: { 'process.env.WS_NO_BUFFER_UTIL': '"1"', 'process.env.WS_NO_UTF_8_VALIDATE': '"1"' },
    },
    // An import that rolldown cannot resolve is only a warning, but the program would fail at run time.
    onLog(level, log) {
      if (level === 'warn') throw new Error(log.message)
    },
  })
  const { output } = await build.generate({
    format: 'esm',
    entryFileNames: '[name].mjs',
    chunkFileNames: '[name]-[hash].mjs',
    comments: { legal: true, annotation: false, jsdoc: false },
  })
  await build.close()
  return output.map((file) => {
    if (file.type !== 'chunk') throw new Error(`${product}: ${file.fileName} is no script`)
    for (const [, name = ''] of file.code.matchAll(/\b__require\("([^"]*)"\)/g))
      if (!isBuiltin(name)) throw new Error(`${product}: ${file.fileName} requires ${name} at run time`)
    return { name: file.fileName, code: product === 'agent' ? lazyBuiltins(file.code) : file.code }
  })
}

/**
 * Takes Node's own modules from `process.getBuiltinModule`. An import reads every property of the module, and
 * some load more: `import 'node:http'` alone loads undici, HTTP/2 and web streams, 5 MB of an idle agent. The
 * function exists since Node 20.16 and 22.3.
 */
export function lazyBuiltins(code: string): string {
  const lazy = code.replaceAll(
    /^import (?:(?:\* as )?([\w$]+))?(?:, )?(\{[^}]*\})? from "(node:[\w/]+)";$/gm,
    (_, whole: string | undefined, names: string | undefined, module: string) => {
      const builtin = `process.getBuiltinModule("${module}");`
      return [
        whole === undefined ? '' : `const ${whole} = ${builtin}`,
        names === undefined ? '' : `const ${names.replaceAll(/ as /g, ': ')} = ${builtin}`,
      ]
        .join(' ')
        .trim()
    },
  )
  const [left] = /^(?:import|export) .*from "node:.*$/m.exec(lazy) ?? []
  if (left !== undefined) throw new Error(`The bundle imports a module of Node in another way: ${left}`)
  return lazy
}
