// An administrator of any namespace names a library of the server's machine as a field of a connector's
// `tls`, where OpenSSL would load it as an engine: code of the caller's choice in the server's process. Node
// says whether it was tried, since a library that is none makes the whole context fail. What an operation
// does not know is dropped at every depth.
import { describe, expect, test } from 'vitest'
import { contract, operations } from '@hawser/contract'
import { checker, known } from '../../server/src/http/validate.ts'
import { clientTls, startEngine } from '../harness/engine.ts'
import { sharedPlace } from '../harness/place.ts'

/** Options of `createSecureContext` that load code, read keys from elsewhere or make TLS fail. */
const library = '/proc/self/exe'
const smuggled: Record<string, object> = {
  'a certificate engine': { clientCertEngine: library },
  'a key engine': { privateKeyEngine: library, privateKeyIdentifier: 'key' },
  'a file of keys': { pfx: 'AAAA' },
  'another curve': { ecdhCurve: 'none' },
  'another protocol': { secureProtocol: 'none' },
}

describe('a connector', () => {
  const place = sharedPlace(async () => ({ env: { HAWSER_CONNECTOR_ALLOW: '127.0.0.1' } }))

  async function send(
    method: string,
    path: string,
    body: unknown,
  ): Promise<{ uid: string; status: { State: string; Message: string } }> {
    const answer = await fetch(`${place.url}${path}`, {
      method,
      headers: {
        authorization: `Bearer ${await place.world.token('administrator')}`,
        'content-type': 'application/json',
      },
      body: JSON.stringify(body),
    })
    expect(answer.status).toBe(200)
    return (await answer.json()) as Awaited<ReturnType<typeof send>>
  }

  test.each(Object.entries(smuggled))('does not hand %s on to TLS', async (_, options) => {
    await using engine = await startEngine({ secure: true })
    const wanted = {
      enable: true,
      address: '127.0.0.1',
      port: engine.port,
      secure: true,
      tls: { ...clientTls, ...options },
    }
    const made = await send('POST', '/api/connector', wanted)
    expect(made.status).toMatchObject({ State: 'connected', Message: '' })
    const changed = await send('PATCH', `/api/connector/${made.uid}`, { tls: wanted.tls })
    expect(changed.status).toMatchObject({ State: 'connected', Message: '' })
  })

  test('that was stored with such fields uses its ca, cert and key alone', async () => {
    await using engine = await startEngine({ secure: true })
    const wanted = { enable: true, address: '127.0.0.1', port: engine.port, secure: true, tls: clientTls }
    const { uid } = await send('POST', '/api/connector', wanted)
    const sealed = place.rooms.vault.seal(
      'connector tls',
      JSON.stringify({ ...clientTls, clientCertEngine: library }),
    )
    await place.rooms.database.db
      .updateTable('connectors')
      .set({ tls: sealed })
      .where('uid', '=', uid)
      .execute()
    expect((await send('PATCH', `/api/connector/${uid}`, { enable: true })).status).toMatchObject({
      State: 'connected',
    })
  })
})

describe('what nobody promised to read', () => {
  test('is dropped at every depth', () => {
    const body = {
      enable: false,
      address: 'engine',
      port: 1,
      tls: { ca: 'a', cert: 'b', key: 'c', more: { deep: 1 } },
      more: [1],
    }
    expect(known(contract.connectors.create.body)(body)).toEqual({
      enable: false,
      address: 'engine',
      port: 1,
      tls: { ca: 'a', cert: 'b', key: 'c' },
    })
  })

  interface Schema {
    readonly properties?: Readonly<Record<string, Schema>>
    readonly items?: Schema
    readonly anyOf?: readonly Schema[]
    readonly type?: string
  }

  /** The value with a foreign field in each object that its schema describes. */
  function padded(schema: Schema, value: unknown): unknown {
    if (schema.anyOf)
      return (
        schema.anyOf
          .map((one) => padded(one, value))
          .find((one) => JSON.stringify(one).includes('foreign')) ?? value
      )
    if (Array.isArray(value) && schema.items) return value.map((item) => padded(schema.items as Schema, item))
    const { properties } = schema
    if (!properties || typeof value !== 'object' || value === null || Array.isArray(value)) return value
    const inner = Object.entries(value).map(([name, each]) => [name, padded(properties[name] ?? {}, each)])
    return { ...(Object.fromEntries(inner) as object), foreign: { __defineGetter__: 1 } }
  }

  const taking = operations
    .filter(({ op }) => op.body && op.signed === undefined)
    .map(({ id, op }) => ({ id, op }))
  test.each(taking)('by $id', ({ op }) => {
    const schema = op.body as NonNullable<typeof op.body>
    const check = checker(schema)
    const body = padded(schema, op.example.body)
    // A filter of a rule or a key has exactly one field; another one is refused.
    if (!check(body)) expect(JSON.stringify(check.errors)).toContain('additionalProperties')
    else expect(JSON.stringify(known(schema)(body))).not.toContain('foreign')
  })
})
