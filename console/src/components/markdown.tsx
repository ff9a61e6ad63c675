// The subset of Markdown that announcements use: headings, paragraphs, lists, emphasis, code and links. It
// creates elements and never HTML from text, so nothing can be injected. Links lead to http, https or a page
// of the console.
import type { ReactNode } from 'react'

const inlinePattern = /\*\*([^*]+)\*\*|\*([^*]+)\*|`([^`]+)`|\[([^\]]+)\]\(([^)\s]+)\)/g

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
    else if (/^(https?:\/\/|\/(?!\/))/.test(address))
      parts.push(
        <a key={match.index} href={address} rel="noreferrer">
          {label}
        </a>,
      )
    else parts.push(label)
  }
  return [...parts, text.slice(end)]
}

function block(text: string, key: number): ReactNode {
  const heading = /^#{1,6} +(.*)$/.exec(text)
  if (heading) return <h3 key={key}>{inline(heading[1] ?? '')}</h3>
  const lines = text.split('\n')
  if (lines.every((line) => /^[-*] /.test(line)))
    return (
      <ul key={key}>
        {lines.map((line, at) => (
          // The index is a stable key: the lines never change.
          <li key={at}>{inline(line.slice(2))}</li>
        ))}
      </ul>
    )
  return <p key={key}>{inline(lines.join(' '))}</p>
}

export function Markdown({ text }: { text: string }) {
  return (
    <div className="prose">
      {text
        .replaceAll('\r', '')
        .split(/\n{2,}/)
        .map((part) => part.trim())
        .filter(Boolean)
        .map(block)}
    </div>
  )
}
