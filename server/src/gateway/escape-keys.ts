// Ctrl-] and a key, in what the person of a shared session types: so they answer whoever asks to type, and
// decide who types. Only keys that were typed count, pasted ones do not. Everything else is for the device.
import type { Chunk } from '@hawser/ssh'

/** Ctrl-]. No program of note uses it, so that nobody agrees by accident. */
const prefix = 0x1d
/** A piece of input of so many bytes is a paste, and what comes in the next moment is the rest of it. */
const paste_bytes = 256
const paste_ms = 1_000

interface EscapeKeyParts<Question> {
  /** Whether there is anybody to decide about. */
  isShared(): boolean
  /** The question that stands now. */
  question(): Question | undefined
  /**
   * Obeys the key after Ctrl-], given the question that stood when Ctrl-] was typed; false: the
   * key means nothing.
   */
  command(key: string, about: Question | undefined): boolean
  /** The person has typed something for the device. */
  typed(): void
}

/** Takes the commands out of the input and returns what is left for the device. */
export function escapeKeys<Question>({
  isShared,
  question,
  command,
  typed,
}: EscapeKeyParts<Question>): (chunk: Chunk) => Chunk | undefined {
  /** Ctrl-] was typed, and the key after it was not; with the question that stood then. */
  let begun: { readonly about: Question | undefined } | undefined
  let pasted_at = -Infinity
  const isCommand = (byte: number, about: Question | undefined): boolean =>
    command(String.fromCharCode(byte).toLowerCase(), about)

  return (chunk) => {
    const { bytes } = chunk
    const before = begun
    begun = undefined
    const now = performance.now()
    const isPaste = now - pasted_at < paste_ms
    if (bytes.length >= paste_bytes && !isReport(bytes)) pasted_at = now
    if (before) {
      if (bytes.length === 1 && isCommand(bytes[0]!, before.about)) return undefined
      // Typed twice it is sent once; before anything else it was meant for the program.
      typed()
      if (bytes.length === 1 && bytes[0] === prefix) return chunk
      return { ...chunk, bytes: Buffer.concat([Buffer.of(prefix), bytes]) }
    }
    if (bytes[0] === prefix && !isPaste && isShared()) {
      if (bytes.length === 1) {
        begun = { about: question() }
        return undefined
      }
      if (bytes.length === 2 && isCommand(bytes[1]!, question())) return undefined
    }
    if (!isReport(bytes)) typed()
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
