// The exports of a package of ours, read from its sources, for tests of its documentation.
import { readFileSync } from 'node:fs'
import path from 'node:path'

export interface Export {
  readonly name: string
  readonly file: string
  readonly isDocumented: boolean
}

/** The named exports of `src/index.ts`, each where it is declared. */
export function exportsOf(root: string): Export[] {
  return namesIn(path.join(root, 'src/index.ts'))
}

const declaration = /^export (?:async )?(?:function|const|class|interface|type) (\w+)/gm

function namesIn(index: string): Export[] {
  const text = readFileSync(index, 'utf8')
  const fileOf = (from: string): string => path.join(path.dirname(index), from)
  const spaces = [...text.matchAll(/^export \* as \w+ from '([^']*)'/gm)].flatMap(([, from = '']) =>
    [...readFileSync(fileOf(from), 'utf8').matchAll(declaration)].map(([, name = '']) =>
      declared(name, fileOf(from)),
    ),
  )
  const named = [...text.matchAll(/^export (?:type )?\{([^}]*)\} from '([^']*)'/gm)].flatMap(
    ([, names = '', from = '']) =>
      [...names.matchAll(/(?:type )?(\w+)/g)].map(([, name = '']) => declared(name, fileOf(from))),
  )
  return [...spaces, ...named]
}

/** Follows a file that only re-exports. */
function declared(name: string, file: string): Export {
  const text = readFileSync(file, 'utf8')
  const found = new RegExp(
    `(.*)\\n(?:export )(?:async )?(?:function|const|class|interface|type) ${name}\\b`,
  ).exec(text)
  if (found) return { name, file, isDocumented: found[1]?.trimEnd().endsWith('*/') ?? false }
  const passedOn = namesIn(file).find((one) => one.name === name)
  if (!passedOn) throw new Error(`${file} does not declare ${name}`)
  return passedOn
}

/** Blocks of TypeScript in a page. */
export function codeOf(page: string): string[] {
  return [...page.matchAll(/^```ts\n([\s\S]*?)^```/gm)].map(([, code = '']) => code)
}
