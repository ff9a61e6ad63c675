// The bytes of a key press for a terminal. For the screen of a shared session, which is drawn as text and has no
// terminal of its own that could say it.

export interface KeyPress {
  readonly key: string
  readonly ctrlKey: boolean
  readonly altKey: boolean
  readonly metaKey: boolean
}

const named: Readonly<Record<string, string>> = {
  Enter: '\r',
  Backspace: '\u007f',
  Tab: '\t',
  Escape: '\u001b',
  ArrowUp: '\u001b[A',
  ArrowDown: '\u001b[B',
  ArrowRight: '\u001b[C',
  ArrowLeft: '\u001b[D',
  Home: '\u001b[H',
  End: '\u001b[F',
  Insert: '\u001b[2~',
  Delete: '\u001b[3~',
  PageUp: '\u001b[5~',
  PageDown: '\u001b[6~',
}

/** Undefined: the key is for the browser. */
export function bytesOfKey({ key, ctrlKey, altKey, metaKey }: KeyPress): string | undefined {
  if (metaKey) return undefined
  const special = named[key]
  if (special !== undefined) return ctrlKey ? undefined : (altKey ? '\u001b' : '') + special
  // A character may be two code units; names of keys are longer, in ASCII.
  if ([...key].length !== 1) return undefined
  if (!ctrlKey) return (altKey ? '\u001b' : '') + key
  // With both, some keyboards write characters such as @.
  if (altKey) return /[a-z]/i.test(key) ? undefined : key
  if (key === ' ') return '\u0000'
  const code = key.toUpperCase().charCodeAt(0)
  return code >= 0x40 && code <= 0x5f ? String.fromCharCode(code - 0x40) : undefined
}
