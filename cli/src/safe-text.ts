// Makes untrusted text safe for the person's terminal. Names, messages and recordings come from devices and
// unverified people, and control sequences in them can set titles, write the clipboard, make links
// or type answers. `safeText` is for plain text: it removes every control character. `screenFilter` is for
// the output of programs: it passes sequences that draw, move the cursor and set colours, and drops all
// others.

/** One line without control characters, and without direction marks, which change how it reads. */
export function safeText(text: string): string {
  return text.replaceAll(/[\p{Cc}\u200e\u200f\u202a-\u202e\u2066-\u2069]/gu, (character) =>
    /[\n\t]/.test(character) ? ' ' : '\u{fffd}',
  )
}

/** JSON.stringify escapes the first 32 control characters, not 127 to 159. */
export function safeJson(value: unknown): string {
  const text = JSON.stringify(value, null, 2) ?? 'null'
  return text.replaceAll(/[\u007f-\u009f\u200e\u200f\u202a-\u202e\u2066-\u2069]/g, (character) => {
    return `\\u${character.charCodeAt(0).toString(16).padStart(4, '0')}`
  })
}

const longestSequence = 64
const [bell, escape, cancel, substitute] = ['\u0007', '\u001b', '\u0018', '\u001a']

/**
 * CSI sequences that move, erase, scroll, colour, save the cursor or repeat. Numbers have at most five
 * digits, so that a repeat is short.
 */
const drawing = /^(?:\d{0,5}(?:[;:]\d{0,5})*)[@A-HIJKLMPSTXZ`abdefmrsu]$/
/** Erases the scrollback of the person's terminal. */
const erasesHistory = /^[\d;]*3[\d;]*J$/
/** Private modes that only affect drawing; not those for cursor keys, mouse, focus or bracketed paste. */
const harmlessModes = new Set(['5', '6', '7', '12', '25', '47', '1047', '1048', '1049', '2026'])
const insertMode = /^4[hl]$/
/** ESC sequences that save and restore the cursor, feed lines and set tabs. */
const plainEscapes = /^[78DEHM]$/
/** Line drawing and ASCII, as G0 and G1. */
const charsets = /^[()][0AB]$/

type State = 'text' | 'escape' | 'csi' | 'string' | 'string-escape' | 'charset'

/**
 * Filters the output of programs. It passes text at once and buffers only an incomplete sequence, because a
 * sequence may be cut anywhere.
 */
export function screenFilter(): (piece: string) => string {
  let state: State = 'text'
  let kept = ''

  const text = (character: string): string => {
    const code = character.codePointAt(0)!
    if (character === escape) {
      state = 'escape'
      return ''
    }
    // C1 control characters: the one-character forms of the same sequences.
    if (code >= 0x80 && code <= 0x9f) return afterEscape(String.fromCharCode(code - 0x40))
    if (code < 0x20) return '\b\t\n\r\u000b\u000c\u000e\u000f'.includes(character) ? character : ''
    return code === 0x7f ? '' : character
  }

  const afterEscape = (character: string): string => {
    kept = ''
    state = 'text'
    if (character === '[') state = 'csi'
    else if (/[\]PX^_]/.test(character)) state = 'string'
    else if (/[()]/.test(character)) {
      state = 'charset'
      kept = character
    } else if (plainEscapes.test(character)) return escape + character
    // Others with an intermediate character (`ESC # 8`, `ESC % G`) end with the next one; drop that too.
    else if (/[ #%*+\-./]/.test(character)) state = 'charset'
    else if (character < ' ') return text(character)
    return ''
  }

  const steps: Record<State, (character: string) => string> = {
    text,
    escape: afterEscape,
    charset(character) {
      state = 'text'
      if (charsets.test(kept + character)) return escape + kept + character
      return character < ' ' ? text(character) : ''
    },
    csi(character) {
      if (character < ' ' || character > '~') {
        state = 'text'
        return text(character)
      }
      if (kept.length <= longestSequence) kept += character
      if (character < '@') return ''
      state = 'text'
      return kept.length <= longestSequence && draws(kept) ? `${escape}[${kept}` : ''
    },
    string(character) {
      if (character === escape) state = 'string-escape'
      else if (
        character === bell ||
        character === cancel ||
        character === substitute ||
        character === '\u009c'
      )
        state = 'text'
      return ''
    },
    'string-escape'(character) {
      // ESC \ ends a string; any other escape ends it as well and is itself.
      state = 'text'
      return character === '\\' ? '' : afterEscape(character)
    },
  }

  return (piece) => {
    let shown = ''
    for (const character of piece) shown += steps[state](character)
    return shown
  }
}

function draws(sequence: string): boolean {
  if (/^\?[\d;]+[hl]$/.test(sequence))
    return sequence
      .slice(1, -1)
      .split(';')
      .every((mode) => harmlessModes.has(mode))
  return insertMode.test(sequence) || (drawing.test(sequence) && !erasesHistory.test(sequence))
}

/** True: the output switches to the alternate screen, false: back; undefined: neither. */
export function entersAlternateScreen(piece: string): boolean | undefined {
  // oxlint-disable-next-line no-control-regex
  const last = [...piece.matchAll(/\u001b\[\?(?:47|1047|1049)([hl])/g)].at(-1)
  return last && last[1] === 'h'
}

/** A sequence that resets the modes a program may have left set; the cursor stays where it is. */
export function resetSequence(onSecondScreen: boolean): string {
  const back = onSecondScreen ? '\u001b[?1049l' : ''
  return `${back}\u001b7\u001b[r\u001b[?6l\u001b8\u001b[4l\u001b[?5l\u001b[?7h\u001b[?25h\u001b(B\u000f\u001b[0m`
}
