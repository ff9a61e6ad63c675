// Ctrl-] and y or n, in what the person of a shared session types: the answer to a question that stands on
// their screen. Only keys that were typed count, pasted ones do not. Everything else is for the device, and
// so is Ctrl-] while no question stands; typed three times in a row, it also asks for a question.
import type { Chunk } from '@hawser/ssh'

/** Ctrl-]. Few programs use it, so that nobody agrees by accident. */
const prefix = 0x1d
/** A piece of input of this many bytes is a paste, and what comes in the next moment is the rest of it. */
const paste_bytes = 256
const paste_ms = 1_000
/** In a row, to be asked whether others go on typing. */
const callsForQuestion = 3

interface EscapeKeyParts<Question> {
  /** The question that stands now. */
  question(): Question | undefined
  /** Takes the answer to the question that stood when Ctrl-] was typed. */
  answer(yes: boolean, question: Question): void
  /** The person has typed Ctrl-] several times while no question stood. */
  called(): void
  /** The person has typed something for the device. */
  typed(): void
}

/** Takes the answers out of the input and returns what is left for the device. */
export function escapeKeys<Question>({
  question,
  answer,
  called,
  typed,
}: EscapeKeyParts<Question>): (chunk: Chunk) => Chunk | undefined {
  /** The question that stood when Ctrl-] was typed; the key after it was not typed yet. */
  let begun: Question | undefined
  let calls = 0
  let pasted_at = -Infinity

  /** Whether the key answers the question. */
  function answers(byte: number | undefined, about: Question): boolean {
    const key = String.fromCharCode(byte ?? 0).toLowerCase()
    if (key !== 'y' && key !== 'n') return false
    answer(key === 'y', about)
    return true
  }

  /** Counts how often Ctrl-] was typed in a row. */
  function count(bytes: Buffer): void {
    calls = bytes.every((byte) => byte === prefix) ? calls + bytes.length : 0
    if (calls < callsForQuestion) return
    calls = 0
    called()
  }

  return (chunk) => {
    const { bytes } = chunk
    const before = begun
    begun = undefined
    const now = performance.now()
    const isPaste = now - pasted_at < paste_ms
    if (bytes.length >= paste_bytes && !isReport(bytes)) pasted_at = now
    const standing = question()
    if (before !== undefined) {
      if (bytes.length === 1 && answers(bytes[0], before)) return undefined
      typed()
      // The one that was held back was meant for the program; this one may be meant for the question.
      if (bytes.length === 1 && bytes[0] === prefix) {
        begun = standing
        return standing === undefined ? { ...chunk, bytes: Buffer.of(prefix, prefix) } : chunk
      }
      return { ...chunk, bytes: Buffer.concat([Buffer.of(prefix), bytes]) }
    }
    if (bytes[0] === prefix && !isPaste && standing !== undefined) {
      if (bytes.length === 1) {
        begun = standing
        return undefined
      }
      if (bytes.length === 2 && answers(bytes[1], standing)) return undefined
    }
    if (isReport(bytes)) return chunk
    typed()
    if (!isPaste && standing === undefined) count(bytes)
    return chunk
  }
}

/**
 * Whether nobody typed this: terminals answer questions of programs and report the mouse and the
 * focus by themselves.
 */
const isReport = (bytes: Buffer): boolean => bytes[0] === 0x1b && reports.test(bytes.toString('latin1'))
const reports =
  // eslint-disable-next-line no-control-regex
  /^(?:\x1b\[[?>=]?\d[\d;]*\$?[Rcnty]|\x1b\[\?[\d;]*u|\x1b\[[IO]|\x1b\[<[\d;]+[Mm]|\x1b\[M...|\x1b[\]P_][^\x07\x1b]*(?:\x07|\x1b\\))+$/
