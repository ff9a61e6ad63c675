// Single key presses, for commands that run for a while. Without a terminal there are none. Disposal restores
// the mode of the terminal. Ctrl-C is a key like any other here.

export type Key = 'space' | 'quit' | 'faster' | 'slower' | 'ahead'

const keys: Readonly<Record<string, Key>> = {
  ' ': 'space',
  q: 'quit',
  '\u0003': 'quit',
  '\u0004': 'quit',
  '+': 'faster',
  '=': 'faster',
  '-': 'slower',
  '\u001b[C': 'ahead',
  '\u001bOC': 'ahead',
  l: 'ahead',
}

export function openKeyboard(press: (key: Key) => void): Disposable {
  if (!process.stdin.isTTY) return { [Symbol.dispose]: () => undefined }
  const read = (chunk: Buffer | string): void => {
    // Keys that were pressed quickly arrive together; an arrow is three characters.
    // oxlint-disable-next-line no-control-regex
    for (const [name] of chunk.toString().matchAll(/\u001b[[O].|[^]/g)) if (keys[name]) press(keys[name])
  }
  process.stdin.setRawMode(true)
  process.stdin.on('data', read)
  process.stdin.resume()
  return {
    [Symbol.dispose]() {
      process.stdin.off('data', read)
      process.stdin.pause()
      process.stdin.setRawMode(false)
    },
  }
}
