// Whether JSON is cheap to read, found in one pass before parsing: how deep it is nested and how many values
// it may hold. The parser refuses what is no JSON.

const deepest = 32
/** An agent may send 1000 sessions; no other operation takes nearly as many values. */
const mostValues = 4000

export const tooComplex = `The body is nested more than ${deepest} deep or holds more than ${mostValues} values.`

const [quote, backslash, comma, colon] = [0x22, 0x5c, 0x2c, 0x3a]
const opening = new Set([0x5b, 0x7b])
const closing = new Set([0x5d, 0x7d])

export function withinLimits(text: string): boolean {
  let depth = 0
  let values = 1
  for (let at = 0; at < text.length; at += 1) {
    const code = text.charCodeAt(at)
    if (code === quote) at = endOfText(text, at)
    else if (opening.has(code)) {
      depth += 1
      values += 1
    } else if (closing.has(code)) depth -= 1
    else if (code === comma || code === colon) values += 1
    if (depth > deepest || values > mostValues) return false
  }
  return true
}

function endOfText(text: string, start: number): number {
  let at = start + 1
  while (at < text.length && text.charCodeAt(at) !== quote) at += text.charCodeAt(at) === backslash ? 2 : 1
  return at
}
