// The guides as HTML, for the Markdown that they use. All text is escaped first, so a page holds only this
// file's markup, and links lead to our own pages or to https. tests/contract/guides.test.ts looks for
// leftovers in every guide.
import { escapeHtml } from '../kit/html.ts'

/** The id of a heading, as links to it are written. */
function slugOf(heading: string): string {
  return heading
    .toLowerCase()
    .replaceAll(/[^\p{L}\p{N}\s_-]/gu, '')
    .trim()
    .replaceAll(/\s/g, '-')
}

/** Where a link of a guide leads when the server serves it; undefined: to nothing that it serves. */
function addressOf(target: string): string | undefined {
  if (target.startsWith('https://') || target.startsWith('#')) return target
  const [, page, anchor = ''] = /^(?:\.\/)?([a-z0-9-]+|README)\.md(#[\w-]+)?$/.exec(target) ?? []
  if (page !== undefined) return `/docs/guides${page === 'README' ? '' : `/${page}`}${anchor}`
  return target.startsWith('../reference/') ? '/docs' : undefined
}

/** Emphasis and links of an escaped text without code. */
function styled(text: string): string {
  return text
    .replaceAll(/!\[([^\]]*)\]\([^)]*\)/g, '$1')
    .replaceAll(/\[([^\]]+)\]\(([^)\s]+)\)/g, (_, words: string, target: string) => {
      const address = addressOf(target.replaceAll('&amp;', '&'))
      return address === undefined ? words : `<a href="${escapeHtml(address)}">${words}</a>`
    })
    .replaceAll(/\*\*([^*]+)\*\*/g, '<strong>$1</strong>')
    .replaceAll(/(?<![\w*])\*([^*\s][^*]*)\*(?![\w*])/g, '<em>$1</em>')
    .replaceAll(/(?<!\w)_([^_\s][^_]*)_(?!\w)/g, '<em>$1</em>')
}

function inline(text: string): string {
  // Code is put aside, so that stars and brackets in it stay what they are, also in the words of a link.
  const codes: string[] = []
  const aside = text.replaceAll(/(`+)(.+?)\1(?!`)/gs, (_, _ticks, code: string) => {
    codes.push(`<code>${escapeHtml(code.trim())}</code>`)
    return `\u0000${codes.length - 1}\u0000`
  })
  return styled(escapeHtml(aside)).replaceAll(/\0(\d+)\0/g, (_, index: string) => codes[Number(index)] ?? '')
}

const cellsOf = (line: string): string[] =>
  line
    .trim()
    .replaceAll(/^\||\|$/g, '')
    .split(/(?<!\\)\|/)
    .map((cell) => inline(cell.trim().replaceAll('\\|', '|')))

const isTable = (lines: readonly string[], at: number): boolean =>
  /^\s*\|/.test(lines[at] ?? '') && /^\s*\|?[\s:|-]+\|[\s:|-]*$/.test(lines[at + 1] ?? '')

const item = /^(\s*)(?:[-*]|(\d+)\.)\s+(.*)$/

function blocks(lines: readonly string[]): string {
  const out: string[] = []
  for (let at = 0; at < lines.length;) {
    const line = lines[at]!
    const [, indent, ticks] = /^(\s*)(```+)/.exec(line) ?? []
    if (ticks !== undefined) {
      const end = lines.findIndex((one, index) => index > at && one.trim() === ticks)
      const inside = lines.slice(at + 1, end === -1 ? lines.length : end)
      const code = inside.map((one) => (one.startsWith(indent!) ? one.slice(indent!.length) : one)).join('\n')
      out.push(`<pre><code>${escapeHtml(code)}</code></pre>`)
      at = end === -1 ? lines.length : end + 1
      continue
    }
    if (line.trim() === '') {
      at += 1
      continue
    }
    const [, marks, heading] = /^(#{1,4}) (.+)$/.exec(line) ?? []
    if (marks !== undefined && heading !== undefined) {
      out.push(`<h${marks.length} id="${escapeHtml(slugOf(heading))}">${inline(heading)}</h${marks.length}>`)
      at += 1
      continue
    }
    if (isTable(lines, at)) {
      const row = (cells: readonly string[], tag: string) =>
        `<tr>${cells.map((cell) => `<${tag}>${cell}</${tag}>`).join('')}</tr>`
      const rows: string[] = []
      const head = row(cellsOf(line), 'th')
      for (at += 2; /^\s*\|/.test(lines[at] ?? ''); at += 1) rows.push(row(cellsOf(lines[at]!), 'td'))
      out.push(`<table><thead>${head}</thead><tbody>${rows.join('')}</tbody></table>`)
      continue
    }
    const take = (while_: (one: string) => boolean): string[] => {
      const from = at
      while (at < lines.length && while_(lines[at]!)) at += 1
      return lines.slice(from, at)
    }
    if (line.startsWith('>')) {
      const quoted = take((one) => one.startsWith('>')).map((one) => one.replace(/^> ?/, ''))
      out.push(`<blockquote>${blocks(quoted)}</blockquote>`)
      continue
    }
    if (item.test(line)) {
      const [html, next] = list(lines, at)
      out.push(html)
      at = next
      continue
    }
    const words = take(
      (one) => one.trim() !== '' && !/^(#{1,4} |\s*```|>)/.test(one) && !(one !== line && item.test(one)),
    )
    out.push(`<p>${inline(words.join('\n'))}</p>`)
  }
  return out.join('\n')
}

/** The list that begins at a line, and the line after it. What is indented belongs to its item. */
function list(lines: readonly string[], start: number): [html: string, next: number] {
  const [, indent = '', number] = item.exec(lines[start]!)!
  const items: string[] = []
  let at = start
  while (at < lines.length) {
    const found = item.exec(lines[at]!)
    if (!found || found[1] !== indent || (found[2] === undefined) !== (number === undefined)) break
    const own = [found[3]!]
    for (at += 1; at < lines.length; at += 1) {
      const line = lines[at]!
      const isInside = line.startsWith(`${indent}  `)
      const goesOn = line.trim() === '' && (lines[at + 1] ?? '').startsWith(`${indent}  `)
      if (!isInside && !goesOn) break
      own.push(line.replace(new RegExp(`^ {0,${indent.length + (number === undefined ? 2 : 3)}}`), ''))
    }
    const body = blocks(own)
    items.push(`<li>${body.startsWith('<p>') ? body.replace(/^<p>(.*?)<\/p>/s, '$1') : body}</li>`)
    while (lines[at]?.trim() === '' && item.exec(lines[at + 1] ?? '')?.[1] === indent) at += 1
  }
  const tag = number === undefined ? 'ul' : 'ol'
  return [`<${tag}>${items.join('')}</${tag}>`, at]
}

export const markdownHtml = (text: string): string => blocks(text.split(/\r?\n/))
