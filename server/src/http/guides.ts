// The guides of this version at /docs/guides: the pages of docs/guides, rendered on first use. A server that
// was installed without them answers 404.
import { readdirSync, readFileSync } from 'node:fs'
import path from 'node:path'
import type { FastifyInstance } from 'fastify'
import { escapeHtml } from '../kit/html.ts'
import { markdownHtml } from './markdown.ts'

const folder = path.join(import.meta.dirname, '../../../docs/guides')

/** Bytes, as are the pages, because all waiting answers share them. */
const style = Buffer.from(`:root { color-scheme: light dark }
body { max-width: 52rem; margin: 0 auto; padding: 1.5rem 1rem 4rem; font: 16px/1.55 system-ui, sans-serif }
nav { display: flex; gap: 1.25rem; padding-bottom: 1rem; border-bottom: 1px solid #8884 }
h1, h2, h3 { line-height: 1.25; margin-top: 1.8em }
h1 { margin-top: 1em }
pre { overflow-x: auto; padding: 0.75rem 1rem; background: #8881; border-radius: 6px }
code { font: 0.9em ui-monospace, Menlo, Consolas, monospace }
table { display: block; overflow-x: auto; border-collapse: collapse }
th, td { padding: 0.35rem 0.75rem; text-align: start; vertical-align: top; border: 1px solid #8884 }
:target { scroll-margin-top: 1rem }
`)

/** None where they were not installed. */
function namesOf(): ReadonlySet<string> {
  try {
    const files = readdirSync(folder).filter((file) => file.endsWith('.md'))
    return new Set(files.map((file) => path.basename(file, '.md')))
  } catch {
    return new Set()
  }
}

function page(text: string): Buffer {
  const title = /^# (.+)$/m.exec(text)?.[1] ?? 'Guide'
  return Buffer.from(`<!doctype html>
<html lang="en">
<head><meta charset="utf-8"><meta name="viewport" content="width=device-width, initial-scale=1">
<title>${escapeHtml(title)} · Hawser</title><link rel="stylesheet" href="/docs/guides.css"></head>
<body>
<nav><a href="/">Console</a><a href="/docs/guides">All guides</a><a href="/docs">API reference</a></nav>
<main>
${markdownHtml(text)}
</main>
</body>
</html>
`)
}

export function serveGuides(app: FastifyInstance, headers: Readonly<Record<string, string>>): void {
  const rendered = new Map<string, Buffer>()
  let names: ReadonlySet<string> | undefined
  function htmlOf(name: string): Buffer | undefined {
    names ??= namesOf()
    if (!names.has(name)) return undefined
    const known = rendered.get(name)
    if (known !== undefined) return known
    const made = page(readFileSync(path.join(folder, `${name}.md`), 'utf8'))
    rendered.set(name, made)
    return made
  }
  const html = 'text/html; charset=utf-8'
  app.get('/docs/guides.css', (_request, reply) =>
    reply.headers(headers).type('text/css; charset=utf-8').send(style),
  )
  app.get('/docs/guides', (_request, reply) => {
    const index = htmlOf('README')
    return index === undefined ? reply.callNotFound() : reply.headers(headers).type(html).send(index)
  })
  app.get<{ Params: { name: string } }>('/docs/guides/:name', (request, reply) => {
    const found = htmlOf(request.params.name)
    return found === undefined ? reply.callNotFound() : reply.headers(headers).type(html).send(found)
  })
}
