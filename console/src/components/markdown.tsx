// The subset of Markdown that announcements and notes use: headings, paragraphs, lists, emphasis, code and
// links. It creates elements and never HTML from text, so nothing can be injected. Links lead to a page of
// the console, to http, https or a mailbox (safe-address.ts). Every step reads its line once, so that no text
// takes long.
import type { ReactNode } from 'react'
import { insideAddress, outsideAddress } from '../safe-address.ts'

const inlinePattern = /\*\*([^*]+)\*\*|\*([^*]+)\*|`([^`]+)`|\[([^\][]{1,500})\]\(([^)\s]{1,2000})\)/g

function inline(text: string): ReactNode[] {
  const parts: ReactNode[] = []
  let end = 0
  for (const match of text.matchAll(inlinePattern)) {
    const [whole, strong, emphasis, code, label, address = ''] = match
    parts.push(text.slice(end, match.index))
    end = match.index + whole.length
    if (strong) parts.push(<strong key={match.index}>{strong}</strong>)
    else if (emphasis) parts.push(<em key={match.index}>{emphasis}</em>)
    else if (code) parts.push(<code key={match.index}>{code}</code>)
    else parts.push(link(label, address, match.index))
  }
  return [...parts, text.slice(end)]
}

/** Only the words of a link that may not lead anywhere. */
function link(label: string | undefined, address: string, key: number): ReactNode {
  const href = insideAddress(address) ?? outsideAddress(address)
  if (href === undefined) return label
  return (
    <a key={key} href={href} rel="noopener noreferrer">
      {label}
    </a>
  )
}

type Block =
  | { kind: 'heading' | 'paragraph'; text: string }
  | { kind: 'bullets' | 'numbers'; items: string[] }
  | { kind: 'code'; lines: string[] }

const fence = /^ {0,3}```/
const heading = /^#{1,6} +(.*)$/
const starts = { bullets: /^ {0,3}[-*] +/, numbers: /^ {0,3}\d{1,9}[.)] +/ } as const

function blocksOf(text: string): Block[] {
  const blocks: Block[] = []
  let open: Block | undefined
  const begin = (block: Block) => {
    blocks.push(block)
    open = block
  }
  for (const line of text.replaceAll('\r', '').split('\n')) {
    if (open?.kind === 'code') {
      if (fence.test(line)) open = undefined
      else open.lines.push(line)
      continue
    }
    const title = heading.exec(line)?.[1]
    const list = (['bullets', 'numbers'] as const).find((kind) => starts[kind].test(line))
    if (fence.test(line)) begin({ kind: 'code', lines: [] })
    else if (line.trim() === '') open = undefined
    else if (title !== undefined) {
      begin({ kind: 'heading', text: title })
      open = undefined
    } else if (list) {
      const item = line.replace(starts[list], '')
      if (open?.kind === list) open.items.push(item)
      else begin({ kind: list, items: [item] })
    } else if (open?.kind === 'paragraph') open.text += ` ${line.trim()}`
    else if (open && 'items' in open && /^\s/.test(line))
      open.items.push(`${open.items.pop() ?? ''} ${line.trim()}`)
    else begin({ kind: 'paragraph', text: line.trim() })
  }
  return blocks
}

function shown(block: Block, key: number): ReactNode {
  if ('items' in block) {
    const List = block.kind === 'bullets' ? 'ul' : 'ol'
    // The index is a stable key: the items never change.
    const items = block.items.map((item, at) => <li key={at}>{inline(item)}</li>)
    return <List key={key}>{items}</List>
  }
  if ('lines' in block)
    return (
      <pre key={key} tabIndex={0}>
        <code>{block.lines.join('\n')}</code>
      </pre>
    )
  return block.kind === 'heading' ? (
    <h3 key={key}>{inline(block.text)}</h3>
  ) : (
    <p key={key}>{inline(block.text)}</p>
  )
}

export function Markdown({ text }: { text: string }) {
  return <div className="prose">{blocksOf(text).map(shown)}</div>
}
