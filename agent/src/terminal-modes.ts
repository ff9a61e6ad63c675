// The modes of a terminal that a client asks for (RFC 4254 section 8), as words of `stty`. Only `stty` can
// set them from here: Node has no termios. Left out are those that mean nothing on a pseudo-terminal or would
// break it: speeds, parity, character sizes and modem lines, and the raw MIN and TIME, which have no number
// in the protocol anyway.

/** Special characters, by opcode. */
const characters: Readonly<Record<number, string>> = {
  1: 'intr',
  2: 'quit',
  3: 'erase',
  4: 'kill',
  5: 'eof',
  6: 'eol',
  7: 'eol2',
  8: 'start',
  9: 'stop',
  10: 'susp',
  12: 'rprnt',
  13: 'werase',
  14: 'lnext',
}

const switches: Readonly<Record<number, string>> = {
  34: 'inlcr',
  35: 'igncr',
  36: 'icrnl',
  37: 'iuclc',
  38: 'ixon',
  39: 'ixany',
  40: 'ixoff',
  41: 'imaxbel',
  50: 'isig',
  51: 'icanon',
  53: 'echo',
  54: 'echoe',
  55: 'echok',
  56: 'echonl',
  57: 'noflsh',
  58: 'tostop',
  59: 'iexten',
  60: 'echoctl',
  61: 'echoke',
  70: 'opost',
  71: 'olcuc',
  72: 'onlcr',
  73: 'ocrnl',
  74: 'onocr',
  75: 'onlret',
}

/** Apart, because not every `stty` knows it and one unknown word spoils the others. On by default. */
const utf8 = 42

/** A character that is switched off. */
const disabled = 255

/** Each list is for one call of `stty`; the first may be empty. */
export function sttyWords(modes: ReadonlyMap<number, number>): readonly [string[], string[]] {
  const words: string[] = []
  for (const [opcode, value] of modes) {
    const character = characters[opcode]
    const name = switches[opcode]
    const written = character === undefined ? undefined : writeCharacter(value)
    if (written !== undefined) words.push(character!, written)
    else if (name !== undefined) words.push(value === 0 ? `-${name}` : name)
  }
  return [words, [modes.get(utf8) === 0 ? '-iutf8' : 'iutf8']]
}

/**
 * In the notation that all kinds of `stty` read: a hat for control characters, else the character or its
 * number.
 */
function writeCharacter(value: number): string | undefined {
  if (value === disabled) return 'undef'
  if (value === 0) return '^@'
  if (value < 32) return `^${String.fromCharCode(value + 64)}`
  if (value === 127) return '^?'
  if (value === 32 || value > disabled) return undefined
  return value > 127 ? String(value) : String.fromCharCode(value)
}
