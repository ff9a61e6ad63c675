// Questions to the person at the terminal. Secrets are read without an echo, and the terminal is put right
// again whatever happens. Without a terminal there is nobody to ask: then the complaint names the option that
// says it instead.
import { createInterface } from 'node:readline/promises'
import { Complaint, usageCode } from './complaint.ts'

export const interruptedCode = 130

/** Typed ahead of the next question, or pasted with the first. */
let waiting = ''

export async function ask(question: string, instead: string): Promise<string> {
  mustBeTerminal(question, instead)
  const lines = createInterface({ input: process.stdin, output: process.stderr })
  const stopped = new Promise<never>((_, reject) => {
    lines.once('SIGINT', () => reject(new Complaint('', interruptedCode)))
    lines.once('close', () => reject(new Complaint('', interruptedCode)))
  })
  try {
    return (await Promise.race([lines.question(`${question}: `), stopped])).trim()
  } finally {
    stopped.catch(() => undefined)
    lines.close()
  }
}

export async function askSecret(question: string, instead: string): Promise<string> {
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
            return reject(new Complaint('', interruptedCode))
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

/** All of stdin, for scripts: a secret on a command line can be read by everybody on the machine. */
export async function readInput(most = 1024 * 1024): Promise<string> {
  const chunks: Buffer[] = []
  let length = 0
  for await (const chunk of process.stdin) {
    chunks.push(Buffer.from(chunk as Buffer))
    length += chunks.at(-1)!.length
    if (length > most) throw new Complaint(`The input is larger than ${most} bytes.`, usageCode)
  }
  return Buffer.concat(chunks).toString()
}

function mustBeTerminal(question: string, instead: string): void {
  if (!process.stdin.isTTY)
    throw new Complaint(`${question}? There is no terminal to ask on: ${instead}.`, usageCode)
}
