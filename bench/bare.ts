// The reference for our HTTP interface: Fastify with nothing around it and one prepared look-up in
// SQLite, on a table of the same devices. No credentials, no checks, no presence, no metrics: the least that
// such a route can cost.
//   node bare.ts <database file> <port>
import fastify from 'fastify'
import { DatabaseSync } from 'node:sqlite'

const text = { type: 'string' } as const
const integer = { type: 'integer' } as const

/** As large as the answer of Get device. */
const device = {
  type: 'object',
  properties: {
    uid: text,
    name: text,
    mac: text,
    info_id: text,
    info_pretty_name: text,
    info_version: text,
    info_arch: text,
    info_platform: text,
    public_key: text,
    tenant_id: text,
    last_seen: text,
    online: integer,
    status: text,
    status_update_at: text,
    created_at: text,
    remote_addr: text,
    position: text,
    tags: text,
    public_url: integer,
    public_url_address: text,
  },
} as const

/** As large as the answer of Auth device: the public key is about as long as a token. */
const enrolled = {
  type: 'object',
  properties: { uid: text, public_key: text, name: text, tenant_id: text },
} as const

export async function serveBare(file: string, port: number): Promise<AsyncDisposable> {
  const database = new DatabaseSync(file, { readOnly: true })
  const find = database.prepare('select * from devices where uid = ?')
  const app = fastify()
  app.get('/healthcheck', () => ({}))
  app.get<{ Params: { uid: string } }>(
    '/devices/:uid',
    { schema: { response: { 200: device } } },
    async ({ params }) => find.get(params.uid),
  )
  app.post<{ Params: { uid: string } }>(
    '/devices/:uid/auth',
    { schema: { response: { 200: enrolled } } },
    async ({ params }) => find.get(params.uid),
  )
  await app.listen({ port, host: '127.0.0.1' })
  return {
    async [Symbol.asyncDispose]() {
      await app.close()
      database.close()
    },
  }
}

if (import.meta.main) {
  const [file = '', port = ''] = process.argv.slice(2)
  const server = await serveBare(file, Number(port))
  process.once('SIGTERM', () => void server[Symbol.asyncDispose]())
}
