// The OpenAPI document and its browsable reference. Both are made, and even loaded, when they are first asked
// for: most servers never are, and a start should not wait for it.
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
    return {
      json: JSON.stringify(document),
      html: reference.referenceHtml(document),
      css: reference.referenceCss,
      js: reference.referenceJs,
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
