// Ctrl-] and y or n, in the input of a shared session's person: the answer to a question on their screen.
// Only typed keys count, not pasted ones. Everything else is for the device, and so is Ctrl-] without a
// question; typed three times in a row, it requests a question.
import type { Chunk } from '@hawser/ssh'

/** Ctrl-]. Few programs use it, so nobody agrees by accident. */
const prefix = 0x1d
/** Input of this many bytes is a paste, and so is what follows in the next moment. */
const paste_bytes = 256
const paste_ms = 1_000
/** Ctrl-] this often in a row asks whether others may continue to type. */
const callsForQuestion = 3

interface EscapeKeyParts<Question> {
  question(): Question | undefined
  /** Answers the question that was open when Ctrl-] was typed. */
  answer(yes: boolean, question: Question): void
  /** Ctrl-] was typed several times while no question was open. */
  called(): void
  typed(): void
}

/** Takes the answers out of the input and returns what is left for the device. */
export function escapeKeys<Question>({
  question,
  answer,
  called,
  typed,
}: EscapeKeyParts<Question>): (chunk: Chunk) => Chunk | undefined {
  /** The question that was open when Ctrl-] was typed, until the next key. */
  let begun: Question | undefined
  let calls = 0
  let pasted_at = -Infinity

  function answers(byte: number | undefined, about: Question): boolean {
    const key = String.fromCharCode(byte ?? 0).toLowerCase()
    if (key !== 'y' && key !== 'n') return false
    answer(key === 'y', about)
    return true
  }

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
      // The Ctrl-] that was held back was meant for the program; this one may be meant for the question.
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
 * Input that nobody typed: terminals answer questions of programs and report the mouse and the focus by
 * themselves.
 */
const isReport = (bytes: Buffer): boolean => bytes[0] === 0x1b && reports.test(bytes.toString('latin1'))
const reports =
  // eslint-disable-next-line no-control-regex
  /^(?:\x1b\[[?>=]?\d[\d;]*\$?[Rcnty]|\x1b\[\?[\d;]*u|\x1b\[[IO]|\x1b\[<[\d;]+[Mm]|\x1b\[M...|\x1b[\]P_][^\x07\x1b]*(?:\x07|\x1b\\))+$/
