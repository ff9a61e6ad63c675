// Prompts for the person at the terminal. Secrets are read without echo, and the terminal's mode is restored
// whatever happens. Without a terminal the error names the option to use instead.
import { createInterface } from 'node:readline/promises'
import { CliError, usageCode } from './errors.ts'

export const interruptedCode = 130

/** Input beyond the current answer: typed ahead, or pasted together with it. */
let waiting = ''

export async function prompt(question: string, instead: string): Promise<string> {
  mustBeTerminal(question, instead)
  const lines = createInterface({ input: process.stdin, output: process.stderr })
  const stopped = new Promise<never>((_, reject) => {
    lines.once('SIGINT', () => reject(new CliError('', interruptedCode)))
    lines.once('close', () => reject(new CliError('', interruptedCode)))
  })
  try {
    return (await Promise.race([lines.question(`${question}: `), stopped])).trim()
  } finally {
    stopped.catch(() => undefined)
    lines.close()
  }
}

export async function promptSecret(question: string, instead: string): Promise<string> {
  mustBeTerminal(question, instead)
  process.stderr.write(`${question}: `)
  process.stdin.setRawMode(true)
  process.stdin.resume()
  try {
    return await new Promise<string>((resolve, reject) => {
      let typed = ''
      const read = (chunk: Buffer | string): void => {
        const characters = [...(waiting + chunk.toString())]
        waiting = ''
        for (const [i, character] of characters.entries()) {
          if (character === '\r' || character === '\n') {
            waiting = characters.slice(i + 1).join('')
            process.stdin.off('data', read)
            return resolve(typed)
          }
          if (character === '\u0003' || (character === '\u0004' && typed === '')) {
            process.stdin.off('data', read)
            return reject(new CliError('', interruptedCode))
          }
          if (character === '\u007f' || character === '\b') typed = [...typed].slice(0, -1).join('')
          else if (character === '\u0015') typed = ''
          else if (character >= ' ') typed += character
        }
      }
      process.stdin.on('data', read)
      if (waiting !== '') read('')
    })
  } finally {
    process.stdin.setRawMode(false)
    process.stdin.pause()
    process.stderr.write('\n')
  }
}

/** Reads all of stdin. Scripts pass secrets here, because everyone on the machine can read command lines. */
export async function readInput(most = 1024 * 1024): Promise<string> {
  const chunks: Buffer[] = []
  let length = 0
  for await (const chunk of process.stdin) {
    chunks.push(Buffer.from(chunk as Buffer))
    length += chunks.at(-1)!.length
    if (length > most) throw new CliError(`The input is larger than ${most} bytes.`, usageCode)
  }
  return Buffer.concat(chunks).toString()
}

function mustBeTerminal(question: string, instead: string): void {
  if (!process.stdin.isTTY)
    throw new CliError(`${question}? There is no terminal to ask on: ${instead}.`, usageCode)
}
