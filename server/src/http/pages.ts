// What the server serves beside the contract's operations: the OpenAPI document, its browsable reference, metrics for
// those who may see them, and the console's files. Each is listed in `extraRoutes`, which the access test pins.
import fastifyStatic from '@fastify/static'
import fastify, { type FastifyInstance } from 'fastify'
import { Failure } from '@hawser/contract/failures'
import { sameText } from '../kit/secrets.ts'
import { serveAgentPackage, type AgentPackageParts } from './agent-package.ts'
import { answerFailure } from './answer.ts'
import { serveDocs } from './docs.ts'
import type { Metrics } from './metrics.ts'

/** Addresses outside the contract and who may read them. */
export const extraRoutes = {
  'GET /openapi.json': 'anyone',
  'GET /docs': 'anyone',
  'GET /docs/reference.css': 'anyone',
  'GET /docs/reference.js': 'anyone',
  'GET /metrics': 'the bearer of HAWSER_METRICS_TOKEN; not served without one',
  'GET /': 'anyone: the console',
  'GET /login': 'anyone: the console',
  'GET /sign-up': 'anyone: the console',
  'GET /setup': 'anyone: the console',
  'GET /confirm-account': 'anyone: the console',
  'GET /validation-account': 'anyone: the console',
  'GET /update-password': 'anyone: the console',
  'GET /reset-mfa': 'anyone: the console',
  'WEBSOCKET /ssh/connection': 'a device',
  'WEBSOCKET /ssh/revdial': 'whoever was told the address, once',
  'WEBSOCKET /agent/connection': 'a device',
  'GET /agent/hawser-agent-linux-x64.tar.gz': 'anyone: what install.sh fetches',
  'GET /agent/hawser-agent-linux-arm64.tar.gz': 'anyone: what install.sh fetches',
  'GET /assets/style.css': 'anyone: the console',
  'GET /assets/mark.svg': 'anyone: the console',
  'GET /assets/rope.svg': 'anyone: the console',
  'GET /assets/parts.js': 'anyone: the console',
  'GET /assets/people.js': 'anyone: the console',
  'GET /assets/overview.js': 'anyone: the console',
} as const

/** The console's pages by their addresses, which letters and the first start print. */
const consolePages = {
  '/': 'index.html',
  '/login': 'login.html',
  '/sign-up': 'sign-up.html',
  '/setup': 'setup.html',
  '/confirm-account': 'confirm-account.html',
  '/validation-account': 'validation-account.html',
  '/update-password': 'update-password.html',
  '/reset-mfa': 'reset-mfa.html',
} as const

const pageSecurity = {
  'content-security-policy':
    "default-src 'none'; style-src 'self'; script-src 'self'; img-src 'self' data:; connect-src 'self'; form-action 'self'; base-uri 'none'; frame-ancestors 'none'",
  'cache-control': 'no-cache',
}

export interface PageParts {
  version: string
  metrics: Metrics
  metricsToken: string
  /** The console's files; absent: no console. */
  console: string | undefined
  agent: AgentPackageParts
}

export function servePages(app: FastifyInstance, parts: PageParts): void {
  serveDocs(app, parts.version, pageSecurity)
  serveAgentPackage(app, parts.agent)

  if (parts.metricsToken)
    app.get('/metrics', async (request, reply) => {
      const given = /^bearer +(.+)$/i.exec(request.headers.authorization ?? '')?.[1] ?? ''
      if (!sameText(given, parts.metricsToken)) return answerFailure(new Failure('unauthenticated'), request, reply)
      return reply.type(parts.metrics.contentType).send(await parts.metrics.text())
    })

  if (parts.console) {
    app.register(fastifyStatic, {
      root: parts.console,
      wildcard: false,
      // A page has one address, and it is in the table.
      globIgnore: ['**/*.html'],
      setHeaders: (reply) => {
        for (const [name, value] of Object.entries(pageSecurity)) reply.header(name, value)
      },
    })
    for (const [url, file] of Object.entries(consolePages)) app.get(url, (_request, reply) => reply.sendFile(file))
  }
}

/** Metrics on a port of their own. */
export function metricsServer(metrics: Metrics): FastifyInstance {
  const app = fastify()
  app.get('/metrics', async (_request, reply) => reply.type(metrics.contentType).send(await metrics.text()))
  return app
}
