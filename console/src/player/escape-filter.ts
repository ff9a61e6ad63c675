// Filters the control sequences of a recorded terminal. Recorded output is untrusted: anyone who could write
// to the terminal chose it. Only sequences that draw pass: characters, colours, the cursor, scrolling,
// clearing. Sequences that query the terminal or act outside of it (titles, the clipboard, links, files,
// answerbacks, reports of mouse and focus) are dropped. A sequence passes only when it is complete and known,
// so that nothing can hide in a part of one, wherever the bytes were cut.

/** Final characters of CSI sequences without a prefix. `h` and `l` have further checks. */
const plainFinals = new Set('@ABCDEFGHIJKLMPSTXZ`abdefghlmrsu')
/** ESC and one character: save, restore, index, next line, tab stop, reverse index, reset, keypad. */
const plainEscapes = new Set('78DEHMc=>')
/** Designators of the character sets G0 to G3. */
const designators = new Set('()*+-./')
const sets = new Set('0AB4C5RfQ9KYE6ZH7=<>%')
/** Insert mode, and automatic newline. */
const plainModes = new Set(['4', '20'])
/**
 * Origin, wrapping, reverse wrapping, the cursor and its blinking, left and right margins, and the other
 * screen.
 */
const privateModes = new Set(['5', '6', '7', '12', '25', '45', '47', '69', '1047', '1048', '1049'])
const longest = 256
/**
 * xterm repeats these one by one, as often as the sequence demands; no screen is larger than `mostRepeats`.
 */
const repeated = new Set('STLMIZb')
const mostRepeats = 1_000

type State = 'text' | 'escape' | 'set' | 'csi' | 'string' | 'unknown'

/** Takes bytes as they come and returns the text to show. */
export function escapeFilter(): (bytes: Uint8Array) => string {
  // The decoder joins characters cut between two calls, and replaces invalid bytes, as terminals do.
  const decoder = new TextDecoder()
  let state: State = 'text'
  let sequence = ''

  /** Returns what passes of the character, or of the sequence that it ends. */
  function take(one: string): string {
    const code = one.charCodeAt(0)
    if (code === 0x1b) return enter('escape', '')
    if (code === 0x18 || code === 0x1a) return enter('text', '')
    // C1 control characters: one-character forms of the same sequences.
    if (code >= 0x80 && code <= 0x9f) return eighth(code)
    if (state === 'string') return code === 0x07 ? enter('text', '') : ''
    // Terminals execute control characters even in the middle of a sequence.
    if (code < 0x20) return '\b\t\n\v\f\r\x0e\x0f'.includes(one) ? one : ''
    if (code === 0x7f) return ''
    if (state === 'text') return one
    if (state === 'escape') return afterEscape(one)
    if (state === 'set') return enter('text', sets.has(one) ? `\x1b${sequence}${one}` : '')
    if (state === 'unknown') return code >= 0x30 ? enter('text', '') : ''
    if (code < 0x40) {
      if (sequence.length < longest) sequence += one
      return ''
    }
    return enter('text', sequence.length < longest ? control(sequence, one) : '')
  }

  function enter(next: State, passes: string): string {
    state = next
    sequence = ''
    return passes
  }

  function eighth(code: number): string {
    if (code === 0x9b) return enter('csi', '')
    if (code === 0x90 || code === 0x98 || code === 0x9d || code === 0x9e || code === 0x9f)
      return enter('string', '')
    const plain = String.fromCharCode(code - 0x40)
    return enter('text', plainEscapes.has(plain) ? `\x1b${plain}` : '')
  }

  function afterEscape(one: string): string {
    if (one === '[') return enter('csi', '')
    if (']PX^_'.includes(one)) return enter('string', '')
    if (designators.has(one)) {
      state = 'set'
      sequence = one
      return ''
    }
    if (one >= ' ' && one <= '/') return enter('unknown', '')
    return enter('text', plainEscapes.has(one) ? `\x1b${one}` : '')
  }

  return (bytes) => {
    const text = decoder.decode(bytes, { stream: true })
    let out = ''
    for (let at = 0; at < text.length; at++) {
      if (state === 'text') {
        printable.lastIndex = at
        const run = printable.exec(text)?.[0] ?? ''
        out += run
        at += run.length
        if (at >= text.length) break
      }
      out += take(text[at]!)
    }
    return out
  }
}

// oxlint-disable-next-line no-control-regex -- what is not a control character
const printable = /[^\x00-\x1f\x7f-\x9f]*/y

function control(parameters: string, final: string): string {
  const whole = `\x1b[${parameters}${final}`
  // The shape of the cursor, and the soft reset.
  if ((final === 'q' && /^\d* $/.test(parameters)) || (final === 'p' && parameters === '!')) return whole
  if (parameters.startsWith('?')) {
    const rest = parameters.slice(1)
    if ((final === 'J' || final === 'K') && /^\d*$/.test(rest)) return whole
    return final === 'h' || final === 'l' ? modes('?', rest, privateModes, final) : ''
  }
  if (!/^[\d;:]*$/.test(parameters) || !plainFinals.has(final)) return ''
  if (repeated.has(final) && Number.parseInt(parameters, 10) > mostRepeats) return ''
  return final === 'h' || final === 'l' ? modes('', parameters, plainModes, final) : whole
}

function modes(prefix: string, list: string, allowed: ReadonlySet<string>, final: string): string {
  const kept = list.split(';').filter((mode) => allowed.has(mode))
  return kept.length > 0 ? `\x1b[${prefix}${kept.join(';')}${final}` : ''
}
