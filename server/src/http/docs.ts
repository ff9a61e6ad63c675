// The OpenAPI document and its browsable reference, loaded and made on first use, so that a start does not
// wait for them.
import type { FastifyInstance } from 'fastify'
import { serveGuides } from './guides.ts'

export function serveDocs(
  app: FastifyInstance,
  version: string,
  pageHeaders: Readonly<Record<string, string>>,
): void {
  async function make() {
    const [{ openapi }, reference] = await Promise.all([
      import('@hawser/contract/openapi'),
      import('./reference.ts'),
    ])
    const document = openapi({ version })
    // Bytes, because waiting answers share them; each would have its own copy of a text.
    return {
      json: Buffer.from(JSON.stringify(document)),
      html: Buffer.from(reference.referenceHtml(document)),
      css: Buffer.from(reference.referenceCss),
      js: Buffer.from(reference.referenceJs),
    }
  }
  let made: ReturnType<typeof make> | undefined
  const serve = (path: string, part: 'json' | 'html' | 'css' | 'js', type: string) =>
    app.get(path, async (_request, reply) =>
      reply
        .headers(part === 'json' ? {} : pageHeaders)
        .type(`${type}; charset=utf-8`)
        .send((await (made ??= make()))[part]),
    )
  serveGuides(app, pageHeaders)
  serve('/openapi.json', 'json', 'application/json')
  serve('/docs', 'html', 'text/html')
  serve('/docs/reference.css', 'css', 'text/css')
  serve('/docs/reference.js', 'js', 'text/javascript')
}
