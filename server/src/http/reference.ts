// The browsable reference at /docs: the OpenAPI document as one self-contained page. It works under
// `default-src 'none'; style-src 'self'; script-src 'self'`, so style and script are files of their own
// (/docs/reference.css, /docs/reference.js); the script only adds the search and opens link targets. All text
// goes through `markup`, which escapes it.
import {
  type DocumentedOperation,
  type Field,
  fieldsOf,
  type OpenApiDocument,
  type Response,
  rulesOf,
  type Schema,
  typeOf,
} from '@hawser/contract/openapi'
import { escapeHtml } from '../kit/html.ts'

interface Markup {
  readonly text: string
}
type Piece = string | Markup | readonly Markup[]

function markup(strings: TemplateStringsArray, ...pieces: readonly Piece[]): Markup {
  const put = (piece: Piece): string => {
    if (typeof piece === 'string') return escapeHtml(piece)
    return 'text' in piece ? piece.text : piece.map(put).join('')
  }
  return { text: String.raw({ raw: strings }, ...pieces.map(put)) }
}

const nothing = markup``
/** Backticks mark code. */
const prose = (text: string) =>
  text.split('`').map((piece, index) => (index % 2 === 1 ? markup`<code>${piece}</code>` : markup`${piece}`))

/** `others`: further addresses. */
interface Entry {
  readonly method: string
  readonly path: string
  readonly operation: DocumentedOperation
  readonly others: readonly Entry[]
}

function entriesOf(document: OpenApiDocument): Entry[] {
  const all = Object.entries(document.paths).flatMap(([path, methods]) =>
    Object.entries(methods).map(([method, operation]) => ({
      method: method.toUpperCase(),
      path,
      operation,
      others: [],
    })),
  )
  return all
    .filter(({ operation }) => !operation['x-alias-of'])
    .map((entry) => ({
      ...entry,
      others: all.filter(({ operation }) => operation['x-alias-of'] === entry.operation.operationId),
    }))
}

export function referenceHtml(document: OpenApiDocument): string {
  const entries = entriesOf(document)
  const groups = document.tags.map((tag) => ({
    tag,
    entries: entries.filter(({ operation }) => operation.tags[0] === tag.name),
  }))
  const shapes = Object.entries(document.components.schemas)
  return markup`<!doctype html>
<html lang="en">
<head>
<meta charset="utf-8">
<meta name="viewport" content="width=device-width, initial-scale=1">
<title>${document.info.title} API reference</title>
<link rel="icon" type="image/svg+xml" href="/assets/mark.svg">
<link rel="stylesheet" href="/docs/reference.css">
<script src="/docs/reference.js" defer></script>
</head>
<body>
<aside>
<a class="brand" href="#top">${document.info.title} <span>API ${document.info.version}</span></a>
<input id="search" type="search" placeholder="Search operations" aria-label="Search operations" autocomplete="off" hidden>
<nav aria-label="Operations">
${groups.map(
  ({
    tag,
    entries: own,
  }) => markup`<div class="group"><a class="noun" href="#${tag.name}">${tag['x-displayName']}</a>
<ul>${own.map(navigationItem)}</ul></div>
`,
)}<div class="group shapes"><a class="noun" href="#shapes">Shapes</a>
<ul>${shapes.map(([name]) => markup`<li><a href="#shape-${name}"><span>${name}</span></a></li>`)}</ul></div>
</nav>
</aside>
<main id="top">
<header><h1>${document.info.title} API</h1>
<p>${document.info.description}</p>
<p>Send a token as <code>Authorization: Bearer …</code> or an API key as <code>X-API-Key</code>. Bodies are JSON both ways. A list is an
array, and its header <code>X-Total-Count</code> says how many there are before paging.</p></header>
${groups.map(
  ({ tag, entries: own }) => markup`<section class="group" id="${tag.name}"><h2>${tag['x-displayName']}</h2>
<p>${prose(tag.description)}</p>
${own.map(operationDetails)}</section>
`,
)}<section class="group shapes" id="shapes"><h2>Shapes</h2>
<p>What several operations answer with.</p>
${shapes.map(shapeDetails)}</section>
<p id="none" hidden>No operation has all of these words.</p>
</main>
</body>
</html>
`.text
}

function navigationItem({ method, operation }: Entry): Markup {
  const id = operation.operationId
  return markup`<li data-of="${id}"><a href="#${id}">${badge(method)}<span>${operation.summary}</span></a></li>
`
}

const badge = (method: string) => markup`<b class="method ${method.toLowerCase()}">${method}</b>`

/** A path with its parameters set off. */
function route(path: string): Markup {
  const parts = path
    .split(/({\w+})/)
    .map((part, index) => (index % 2 === 1 ? markup`<i>${part}</i>` : markup`${part}`))
  return markup`<code class="path">${parts}</code>`
}

function operationDetails({ method, path, operation, others }: Entry): Markup {
  const { operationId: id, summary, description } = operation
  const find = [id, method, path, summary, description, ...others.map((other) => other.path)]
    .join(' ')
    .toLowerCase()
  const parameters = (operation.parameters ?? []).map(
    ({ name, in: where, required, schema, description: about = '' }) =>
      row({ name, required, type: typeOf(schema), rules: rulesOf(schema), description: about }, where),
  )
  const body = operation.requestBody?.content['application/json']?.schema
  return markup`<details class="operation" id="${id}" data-find="${find}">
<summary>${badge(method)} ${route(path)} <h3>${summary}</h3>${operation.deprecated ? markup` <em>deprecated</em>` : nothing}</summary>
<div class="inside">
<p>${prose(description)}</p>
<p class="who">For ${operation['x-access']}.<span>${id}</span></p>
${others.map((other) => markup`<p id="${other.operation.operationId}">Also at ${badge(other.method)} ${route(other.path)}</p>`)}
${parameters.length > 0 ? markup`<h4>Parameters</h4>${table(parameters)}` : nothing}
${body ? markup`<h4>Body</h4>${schemaPart(body, 'required')}` : nothing}
<h4>Answer</h4>${answerPart(operation.responses['200'])}
<h4>Failures</h4><dl class="failures">${Object.entries(operation.responses).flatMap(failureItems)}</dl>
<h4>Example</h4><pre><code>${operation['x-codeSamples'][0].source}</code></pre>
</div>
</details>
`
}

function row({ name, type, required, rules, description }: Field, where = ''): Markup {
  const place = where ? markup` <small>in ${where}</small>` : nothing
  const needed = required ? markup` <small class="required">required</small>` : nothing
  const about = description ? markup`<p>${prose(description)}</p>` : nothing
  const rule = rules.length > 0 ? markup`<p class="rules">${prose(rules.join('; '))}</p>` : nothing
  return markup`<tr><td><code>${name}</code>${place}${needed}</td><td>${type}</td><td>${about}${rule}</td></tr>
`
}

function table(rows: readonly Markup[]): Markup {
  return markup`<table><thead><tr><th>Field</th><th>Type</th><th>Meaning and rules</th></tr></thead><tbody>
${rows}</tbody></table>`
}

/**
 * A schema by its name, with a link where it has one, then its own fields. Required fields of answers do not
 * concern the reader.
 */
function schemaPart(schema: Schema, mark?: 'required'): Markup {
  const fields = fieldsOf(schema).map((field) => ({
    ...field,
    required: field.required && mark === 'required',
  }))
  const name =
    fields.length > 0 && schema.properties ? nothing : markup`<p class="type">${linked(schema)}</p>`
  return markup`${name}${fields.length > 0 ? table(fields.map((field) => row(field))) : nothing}`
}

function linked(schema: Schema): Markup {
  if (schema.items) return markup`array of ${linked(schema.items)}`
  return schema.$ref
    ? markup`<a href="#shape-${typeOf(schema)}">${typeOf(schema)}</a>`
    : markup`${typeOf(schema)}`
}

function answerPart(answer: Response | undefined): Markup {
  const headers = Object.entries(answer?.headers ?? {}).map(
    ([name, header]) =>
      markup`<p class="type">Header <code>${name}</code>: ${prose(header.description ?? '')}</p>`,
  )
  const [type, content] = Object.entries(answer?.content ?? {})[0] ?? []
  if (!type || !content) return markup`<p class="type">200 with an empty body.</p>${headers}`
  return markup`${type === 'application/json' ? schemaPart(content.schema) : markup`<p class="type"><code>${type}</code></p>`}${headers}`
}

/** A failure’s description has a line `name: sentence` for each kind. */
function failureItems([status, response]: [string, Response]): Markup[] {
  if (!response['x-failures']) return []
  return response.description.split('\n').map((line) => {
    const [kind = '', ...sentence] = line.split(': ')
    return markup`<dt>${status} <code>${kind}</code></dt><dd>${sentence.join(': ')}</dd>
`
  })
}

function shapeDetails([name, schema]: [string, Schema]): Markup {
  return markup`<details class="shape" id="shape-${name}"><summary><h3>${name}</h3></summary>
<div class="inside">${schema.description ? markup`<p>${prose(schema.description)}</p>` : nothing}${schemaPart(schema)}</div></details>
`
}

export const referenceCss = `
:root { color-scheme: light dark; --ink: #1c2630; --soft: #596673; --line: #dde3e8; --ground: #f5f7f8; --paper: #fff; --tint: #eef2f4;
  --accent: #0a6673; --get: #0a6673; --post: #2c6e38; --put: #875400; --patch: #6747ad; --delete: #b0352b }
@media (prefers-color-scheme: dark) { :root { --ink: #dce3e9; --soft: #98a5b1; --line: #2b353f; --ground: #12181e; --paper: #182027;
  --tint: #202a33; --accent: #6cc5d0; --get: #6cc5d0; --post: #86c98f; --put: #dcb269; --patch: #b9a3ec; --delete: #ee968d } }
* { box-sizing: border-box }
[hidden] { display: none !important }
html { scroll-padding-top: 1rem }
body { margin: 0; display: grid; grid-template-columns: 19rem minmax(0, 1fr); background: var(--ground); color: var(--ink);
  font: 16px/1.55 system-ui, -apple-system, "Segoe UI", Roboto, "Helvetica Neue", sans-serif }
code, pre { font-family: ui-monospace, SFMono-Regular, Menlo, Consolas, "Liberation Mono", monospace; font-size: .86em }
pre code { font-size: 1em }
a { color: var(--accent); text-underline-offset: .2em }
:focus-visible { outline: 2px solid var(--accent); outline-offset: 2px; border-radius: 4px }
aside { position: sticky; top: 0; height: 100vh; padding: 1.5rem 1.25rem; overflow: auto; scrollbar-width: thin; background: var(--paper);
  border-right: 1px solid var(--line) }
.brand { display: block; margin-bottom: 1rem; font-size: 1.2rem; font-weight: 650; color: var(--ink); text-decoration: none }
.brand span { font-size: .85rem; font-weight: 400; color: var(--soft) }
input { width: 100%; margin-bottom: 1rem; padding: .5rem .75rem; font: inherit; font-size: .92rem; color: inherit;
  background: var(--ground); border: 1px solid var(--line); border-radius: 8px }
nav ul { margin: 0 0 1rem; padding: 0; list-style: none }
.noun { display: block; padding: .2rem 0; font-size: .92rem; font-weight: 600; color: var(--ink); text-decoration: none }
nav li a { display: flex; gap: .5rem; align-items: baseline; margin: 0 -.5rem; padding: .18rem .5rem; border-radius: 6px;
  font-size: .86rem; line-height: 1.35; color: var(--soft); text-decoration: none }
nav li a:hover { color: var(--ink); background: var(--tint) }
nav .method { flex: 0 0 3.1rem; padding: 0; background: none; text-align: left; font-size: .64rem }
.method { --m: var(--get); display: inline-block; min-width: 4.1rem; padding: .1rem .45rem; border-radius: 5px; text-align: center;
  font-size: .7rem; letter-spacing: .04em; color: var(--m); background: color-mix(in srgb, var(--m) 12%, transparent) }
.post { --m: var(--post) } .put { --m: var(--put) } .patch { --m: var(--patch) } .delete { --m: var(--delete) }
main { width: 100%; max-width: 64rem; padding: 2.5rem 3rem 6rem }
h1 { margin: 0; font-size: 1.9rem; letter-spacing: -.01em }
h2 { margin: 3rem 0 0; font-size: 1.35rem }
header p, h2 + p { margin: .3rem 0 1rem; max-width: 42rem; color: var(--soft) }
header code { white-space: nowrap }
details { margin: .5rem 0; background: var(--paper); border: 1px solid var(--line); border-radius: 10px }
details:target { border-color: var(--accent) }
summary { display: flex; flex-wrap: wrap; gap: .25rem .75rem; align-items: baseline; padding: .65rem 1rem; list-style: none;
  cursor: pointer }
summary::-webkit-details-marker { display: none }
summary:hover { background: var(--tint); border-radius: 9px }
summary h3 { margin: 0 0 0 auto; font-size: .9rem; font-weight: 400; color: var(--soft) }
.shape h3 { margin: 0; font-weight: 600; color: var(--ink) }
summary em { font-size: .8rem; color: var(--put) }
.path { overflow-wrap: anywhere } .path i { font-style: normal; color: var(--accent) }
.inside { padding: .25rem 1rem 1.25rem; border-top: 1px solid var(--line) }
.who { display: flex; flex-wrap: wrap; gap: 0 1rem; align-items: baseline; justify-content: space-between }
.who span { font-size: .82rem; color: var(--soft) }
h4 { margin: 1.5rem 0 .4rem; font-size: .76rem; font-weight: 600; letter-spacing: .06em; text-transform: uppercase; color: var(--soft) }
.type { margin: .3rem 0 }
table { width: 100%; border-collapse: collapse; font-size: .9rem }
th { padding: .3rem .75rem .3rem 0; text-align: left; font-weight: 400; font-size: .8rem; color: var(--soft) }
td { padding: .45rem .75rem .45rem 0; border-top: 1px solid var(--line); vertical-align: top; overflow-wrap: anywhere }
td:nth-child(1) { width: 32% } td:nth-child(2) { width: 20%; color: var(--soft) }
td p { margin: 0 } .rules { color: var(--soft) }
small { color: var(--soft) } .required { color: var(--delete) }
.failures { display: grid; grid-template-columns: max-content 1fr; gap: .2rem 1.25rem; margin: 0; font-size: .9rem }
dd { margin: 0; color: var(--soft) }
pre { margin: 0; padding: .85rem 1rem; line-height: 1.5; white-space: pre-wrap; overflow-wrap: anywhere; background: var(--tint);
  border-radius: 8px }
@media (max-width: 52rem) {
  body { display: block }
  aside { position: static; height: auto; padding: 1.25rem 1rem; border-right: 0; border-bottom: 1px solid var(--line) }
  nav { display: flex; flex-wrap: wrap; gap: .4rem } nav ul { display: none }
  .noun { padding: .2rem .65rem; font-size: .86rem; font-weight: 400; background: var(--tint); border-radius: 99px }
  main { padding: 1.5rem 1rem 4rem }
  summary h3 { flex-basis: 100%; margin: 0 }
  thead { display: none } tr { display: block; padding: .5rem 0; border-top: 1px solid var(--line) }
  td, td:nth-child(n) { display: block; width: auto; padding: .1rem 0; border: 0 }
  .failures { display: block } dd { margin-bottom: .5rem }
}
`

export const referenceJs = `
const search = document.querySelector('#search')
const operations = [...document.querySelectorAll('.operation')]
const links = new Map([...document.querySelectorAll('[data-of]')].map((item) => [item.dataset.of, item]))
const groups = [...document.querySelectorAll('.group')]

function filter() {
  const words = search.value.toLowerCase().split(/\\s+/).filter(Boolean)
  for (const operation of operations) {
    operation.hidden = !words.every((word) => operation.dataset.find.includes(word))
    links.get(operation.id).hidden = operation.hidden
  }
  for (const group of groups) {
    const inside = [...group.querySelectorAll('.operation, [data-of]')]
    group.hidden = words.length > 0 && inside.every((item) => item.hidden)
  }
  document.querySelector('#none').hidden = operations.some((operation) => !operation.hidden)
}

function openTarget() {
  const target = document.getElementById(decodeURIComponent(location.hash.slice(1)))
  const details = target?.closest('details')
  if (!details) return
  details.open = true
  target.scrollIntoView()
}

search.hidden = false
search.addEventListener('input', filter)
document.addEventListener('keydown', (event) => {
  if (event.key === '/' && document.activeElement !== search) {
    event.preventDefault()
    search.focus()
  }
  if (event.key === 'Escape' && document.activeElement === search) {
    search.value = ''
    filter()
  }
})
addEventListener('hashchange', openTarget)
filter()
openTarget()
`
