// The fenced blocks of README and the guides, as a reader of them finds them. The word behind the fence says
// what a block is:
//
//   ```sh                    commands, run from the top to the end; each must succeed
//   ```sh fails              the last one is refused; what stands in the guide around it says why
//   ```sh stays: <sentence>  a program that runs until Ctrl-C; it is working when it has said this, or, for a sentence like
//                            `listens on 8080`, when something listens there
//   ```sh not-run: <reason>  commands that no test can run; each is named in not-run.ts as well
//   ```console               a talk: `$ ` is a command, a question is answered, anything else is what is shown
//   ```text, ini, nginx …    drawings and files: nothing to run
//
// `stays` may be `stays on: <sentence>`: then it is left running until the end of the page, because what
// follows needs it.
import { readFileSync } from 'node:fs'
import path from 'node:path'

export const root = path.join(import.meta.dirname, '../..')

export interface Block {
  /** Of the file, from the root of the project. */
  readonly page: string
  /** Where it begins. */
  readonly line: number
  readonly language: string
  readonly how: 'runs' | 'fails' | 'stays' | 'stays on' | 'not-run'
  /** Behind the colon. */
  readonly detail: string
  readonly text: string
}

const hows = ['runs', 'fails', 'stays', 'stays on', 'not-run']
/** Files and drawings. */
const shown = ['text', 'ini', 'nginx', 'json', 'markdown']

export function blocksOf(page: string): Block[] {
  const lines = readFileSync(path.join(root, page), 'utf8').split('\n')
  const blocks: Block[] = []
  for (let i = 0; i < lines.length; i += 1) {
    const fence = /^(\s*)```(.*)$/.exec(lines[i]!)
    if (!fence) continue
    const end = lines.findIndex((line, at) => at > i && line.trim() === '```')
    if (end < 0) throw new Error(`${page}:${i + 1}: the block does not end`)
    blocks.push(
      read(
        page,
        i + 1,
        fence[2]!,
        lines.slice(i + 1, end).map((line) => line.slice(fence[1]!.length)),
      ),
    )
    i = end
  }
  return blocks
}

function read(page: string, line: number, info: string, lines: string[]): Block {
  const [, language = 'text', how = 'runs', detail = ''] =
    /^(\w+)?(?: ([\w -]+?))?(?:: (.*))?$/.exec(info) ?? []
  const where = `${page}:${line}: \`\`\`${info}`
  if (!['sh', 'console', ...shown].includes(language))
    throw new Error(`${where} is no kind of block: see tests/guides/blocks.ts`)
  if (!hows.includes(how)) throw new Error(`${where}: ${how} is not one of ${hows.join(', ')}`)
  if ((how.startsWith('stays') || how === 'not-run') && detail === '')
    throw new Error(`${where}: say why or what behind a colon`)
  return { page, line, language, how: how as Block['how'], detail, text: `${lines.join('\n')}\n` }
}

export const isCommand = ({ language }: Block): boolean => language === 'sh' || language === 'console'
