// Reads JSON documents from a file one by one: one a line as mongoexport and bsondump write them, an array
// (--jsonArray), or spread over lines (--pretty). A document is found by counting brackets, so no more than
// one is ever in memory, and one that is too large is refused. Every complaint names the file and the line on
// which the document begins.
import { createReadStream } from 'node:fs'
import path from 'node:path'
import { Failure } from '@hawser/contract/failures'
import { isFields, type Fields } from './fields.ts'

/** A document of MongoDB has at most 16 MiB; ShellHub's have some kilobytes. */
const largest_document = 16 * 1024 * 1024

const code = (character: string): number => character.charCodeAt(0)
const [open, close, openList, closeList, quote, backslash, comma, newline] = [...'{}[]"\\,\n'].map(code)
const blanks: readonly (number | undefined)[] = [...' \t\r\n'].map(code)
const mark = Buffer.from('\ufeff')

export interface Document {
  readonly where: string
  readonly fields: Fields
}

export async function* documents(file: string): AsyncGenerator<Document> {
  const name = path.basename(file)
  const refuse = (line: number, what: string): never => {
    throw new Failure('invalid', { message: `${name}, line ${line}: ${what}` })
  }
  let [line, began, depth] = [1, 1, 0]
  let [inText, escaped, inArray, first] = [false, false, false, true]
  let pieces: Buffer[] = []
  let held = 0

  for await (const read of createReadStream(file) as AsyncIterable<Buffer>) {
    let chunk = read
    if (first && chunk.subarray(0, mark.length).equals(mark)) chunk = chunk.subarray(mark.length)
    let start = 0
    for (let at = 0; at < chunk.length; at++) {
      const byte = chunk[at]
      if (byte === newline) line++
      if (depth === 0) {
        if (blanks.includes(byte)) continue
        if (byte === open) [depth, start, began] = [1, at, line]
        else if (byte === openList && first) inArray = true
        else if (!(inArray && (byte === comma || byte === closeList)))
          refuse(line, 'here should begin a document, with {.')
        first = false
      } else if (inText) {
        if (escaped) escaped = false
        else if (byte === backslash) escaped = true
        else if (byte === quote) inText = false
      } else if (byte === quote) inText = true
      else if (byte === open || byte === openList) depth++
      else if (byte === close || byte === closeList) {
        if (--depth > 0) continue
        pieces.push(chunk.subarray(start, at + 1))
        yield { where: `${name}, line ${began}`, fields: parse(began) }
        pieces = []
        held = 0
      }
    }
    if (depth > 0) {
      // Copied: the stream may use its buffer again.
      pieces.push(Buffer.from(chunk.subarray(start)))
      held += chunk.length - start
      if (held > largest_document) refuse(began, 'the document that begins here has more than 16 MiB.')
    }
  }
  if (depth > 0) refuse(began, 'the file ends in the middle of the document that begins here.')

  function parse(at: number): Fields {
    let value: unknown
    try {
      value = JSON.parse(Buffer.concat(pieces).toString('utf8'))
    } catch {
      // The parser's message would show a piece of the document, which may be a secret.
      refuse(at, 'the document that begins here is not valid JSON.')
    }
    return isFields(value) ? value : refuse(at, 'here should be a document.')
  }
}
