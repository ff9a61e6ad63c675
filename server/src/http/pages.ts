// The routes besides those of the contract's operations: the OpenAPI document, its browsable reference,
// metrics, agents, and the console's files. Each is listed in `extraRoutes`, which the access test pins.
import fastifyStatic from '@fastify/static'
import fastify, { type FastifyInstance, type FastifyReply, type FastifyRequest } from 'fastify'
import { Failure } from '@hawser/contract/failures'
import { sameText } from '../kit/secrets.ts'
import type { AgentArchives } from './agent-archives.ts'
import { serveAgents } from './agent-package.ts'
import { answerFailure } from './answer.ts'
import { serveDocs } from './docs.ts'
import type { Metrics } from './metrics.ts'
import { challengePath } from './plain-requests.ts'

/**
 * Addresses of the console, which is one page whose script looks at the address. E-mails and the first start
 * name some of them. People who are not signed in see these pages, and not only a redirect.
 */
const pagesForStrangers = [
  '/',
  '/login',
  '/sign-up',
  '/setup',
  '/confirm-account',
  '/validation-account',
  '/update-password',
  '/reset-mfa',
  '/confirm-email',
  '/undo-change',
  '/invitation',
] as const

/** Pages behind the sign-in; their HTML names the files that they need, so that browsers fetch those early. */
const pagesInside = [
  '/devices',
  '/devices/:uid',
  '/devices/:uid/terminal',
  '/services',
  '/open/:address',
  '/add-device',
  '/pair',
  '/join',
  '/enrolment',
  '/sessions',
  '/sessions/:uid',
  '/search',
  '/public-keys',
  '/firewall',
  '/api-keys',
  '/connectors',
  '/settings',
  '/roles',
  '/audit',
  '/announcements',
  '/billing',
  '/profile',
] as const

const consolePages = [...pagesForStrangers, ...pagesInside]

/** Addresses outside the contract and who may read them. */
export const extraRoutes: Readonly<Record<string, string>> = {
  'GET /openapi.json': 'anyone',
  'GET /docs': 'anyone',
  'GET /docs/reference.css': 'anyone',
  'GET /docs/reference.js': 'anyone',
  'GET /docs/guides': 'anyone',
  'GET /docs/guides/:name': 'anyone',
  'GET /docs/guides.css': 'anyone',
  'GET /metrics': 'the bearer of HAWSER_METRICS_TOKEN; not served without one',
  'WEBSOCKET /ssh/connection': 'a device',
  'WEBSOCKET /ssh/revdial': 'holders of the address, once',
  'WEBSOCKET /agent/connection': 'a device',
  'WEBSOCKET /api/sessions/:uid/live':
    'as sessions.play, or with `join` as sessions.join; or holders of a ticket of either or of an invitation, once',
  'WEBSOCKET /ws/ssh': 'holders of a ticket of terminals.open, once',
  'GET /agent/hawser-agent-linux-x64.tar.gz': 'anyone: what install.sh fetches',
  'GET /agent/hawser-agent-linux-arm64.tar.gz': 'anyone: what install.sh fetches',
  'GET /.well-known/acme-challenge/:token': 'anyone: an ACME server',
  'GET /assets/:file': 'anyone: the console',
  ...Object.fromEntries(consolePages.map((page) => [`GET ${page}` as const, 'anyone: the console' as const])),
}

const pageSecurity = {
  'content-security-policy':
    "default-src 'none'; style-src 'self'; script-src 'self'; img-src 'self' data:; font-src 'self'; connect-src 'self'; form-action 'self'; base-uri 'none'; frame-ancestors 'none'",
  'cache-control': 'no-cache',
}

/** A changed asset has another name, so it may be cached for ever; the mark alone has no hash in its name. */
const assetCaching = 'public, max-age=31536000, immutable'
const hashed = /-[\w-]{8}\.[\w.]+$/
const assetName = /^[\w-]+\.(js|css|svg|woff2)$/

export interface PageParts {
  version: string
  metrics: Metrics
  metricsToken: string
  /** The answer to a challenge of an ACME server; undefined where there is none. */
  challenge(token: string): Promise<string | undefined>
  console: string
  /** The folder of the built agents; while one is missing, its address answers 404. */
  agents: string | undefined
  archives: Pick<AgentArchives, 'sha256Of'>
}

export function servePages(app: FastifyInstance, parts: PageParts): void {
  serveDocs(app, parts.version, pageSecurity)
  serveAgents(app, parts.agents, parts.archives)

  if (parts.metricsToken)
    app.get('/metrics', async (request, reply) => {
      const given = /^bearer +(.+)$/i.exec(request.headers.authorization ?? '')?.[1] ?? ''
      if (!sameText(given, parts.metricsToken))
        return answerFailure(new Failure('unauthenticated'), request, reply)
      return reply.type(parts.metrics.contentType).send(await parts.metrics.text())
    })

  app.get<{ Params: { token: string } }>(`${challengePath}:token`, async (request, reply) => {
    const answer = await parts.challenge(request.params.token)
    return answer === undefined ? reply.callNotFound() : reply.type('application/octet-stream').send(answer)
  })

  app.register(fastifyStatic, {
    root: parts.console,
    serve: false,
    preCompressed: true,
    cacheControl: false,
    setHeaders: (reply, file) => {
      for (const [name, value] of Object.entries(pageSecurity)) reply.header(name, value)
      if (hashed.test(file)) reply.header('cache-control', assetCaching)
    },
  })
  for (const page of pagesForStrangers) app.get(page, (_request, reply) => reply.sendFile('index.html'))
  for (const page of pagesInside) app.get(page, (_request, reply) => reply.sendFile('inside.html'))
  app.get<{ Params: { file: string } }>('/assets/:file', (request, reply) => {
    const { file } = request.params
    return assetName.test(file) ? reply.sendFile(`assets/${file}`) : reply.callNotFound()
  })
}

/**
 * A wrong address in a browser gets the console, which says so with status 404; programs, and requests for a
 * part of the API or a file, get the refusal in JSON.
 */
export const isLostReader = ({ method, url, headers }: FastifyRequest): boolean =>
  method === 'GET' &&
  (headers.accept ?? '').includes('text/html') &&
  !/^\/(api|internal|assets|agent|docs|ssh|ws)(\/|$)|\.|%/.test(url.split('?', 1)[0] ?? '')

export const showLostPage = (reply: FastifyReply): FastifyReply => reply.code(404).sendFile('index.html')

export function metricsServer(metrics: Metrics): FastifyInstance {
  const app = fastify()
  app.get('/metrics', async (_request, reply) => reply.type(metrics.contentType).send(await metrics.text()))
  return app
}
