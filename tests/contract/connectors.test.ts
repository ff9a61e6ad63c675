// Connectors: what is kept and shown of one, what its status says, and that the server cannot be made to
// knock at its own doors. The engine is a real server on loopback, which is allowed by setting where it is to
// be reached; how it is spoken to in detail is in server/src/connectors/engine.test.ts.
import { readdirSync, readFileSync } from 'node:fs'
import path from 'node:path'
import { describe, expect, test } from 'vitest'
import type { Client } from '@hawser/contract/client'
import { sample } from '@hawser/contract/examples'
import { certificates, clientTls, engineInfo, startEngine } from '../harness/engine.ts'
import { sharedPlace, startPlace, type Place } from '../harness/place.ts'
import { oneDatabase } from '../harness/tier.ts'

const refused = (status: number) => ({ status })
const allowed = async () => ({ env: { HAWSER_CONNECTOR_ALLOW: '127.0.0.1' } })
const status = (state: string, message: string) => ({ State: state, Message: message, state, message })
type Wanted = Parameters<Client['connectors']['create']>[0]['body']
const create = async (place: Place, body: Wanted) =>
  (await place.administrator.connectors.create({ body })).body
const get = async (place: Place, uid: string) =>
  (await place.observer.connectors.get({ params: { uid } })).body

describe('a connector', () => {
  const place = sharedPlace(allowed)

  test('is kept as it was given, and one that is not enabled is not tried', async () => {
    await using engine = await startEngine()
    const connector = await create(place, { address: '127.0.0.1', port: engine.port })
    expect(connector).toEqual({
      uid: expect.stringMatching(/^[0-9a-f-]{36}$/) as unknown,
      tenant_id: sample.tenant,
      enable: false,
      address: '127.0.0.1',
      port: engine.port,
      secure: false,
      accept: false,
      status: status('disconnected', ''),
      tls: null,
    })
    expect(await get(place, connector.uid)).toEqual(connector)
    expect(engine.asked).toEqual([])
  })

  test('that is enabled is connected when its engine answers, and gives what the engine says of itself', async () => {
    await using engine = await startEngine()
    const { uid, status: shown } = await create(place, {
      enable: true,
      address: '127.0.0.1',
      port: engine.port,
    })
    expect(shown).toEqual(status('connected', ''))
    for (const client of [place.observer, place.key]) {
      const { body, headers } = await client.connectors.info({ params: { uid } })
      expect(body).toEqual(engineInfo)
      expect(headers.get('content-type')).toMatch(/^application\/json\b/)
    }
    expect(engine.asked.every(({ method }) => method === 'GET')).toBe(true)
  })

  test('speaks TLS with the certificates that it was given', async () => {
    await using engine = await startEngine({ secure: true })
    const { uid, ...shown } = await create(place, {
      enable: true,
      address: '127.0.0.1',
      port: engine.port,
      secure: true,
      tls: clientTls,
    })
    expect(shown).toMatchObject({
      secure: true,
      status: status('connected', ''),
      tls: { ca: clientTls.ca, cert: clientTls.cert },
    })
    expect((await place.observer.connectors.info({ params: { uid } })).body).toEqual(engineInfo)
    const wrong = { ...clientTls, ca: certificates.clientCert }
    const { body } = await place.administrator.connectors.update({ params: { uid }, body: { tls: wrong } })
    expect(body.status).toEqual(
      status('failed', expect.stringMatching(/^The engine cannot be reached/) as unknown as string),
    )
  })

  test('whose engine does not answer is made all the same: 200, and the status says why; its info is 424', async () => {
    const engine = await startEngine()
    await engine[Symbol.asyncDispose]()
    const { uid, status: shown } = await create(place, {
      enable: true,
      address: '127.0.0.1',
      port: engine.port,
    })
    const message = 'The engine cannot be reached (ECONNREFUSED).'
    expect(shown).toEqual(status('failed', message))
    await expect(place.observer.connectors.info({ params: { uid } })).rejects.toMatchObject({
      status: 424,
      body: { message },
    })
    const { body } = await place.administrator.connectors.update({ params: { uid }, body: { port: 1 } })
    expect(body).toMatchObject({ port: 1, status: status('failed', message) })
  })

  test.each([
    ['a page', 200, '<html></html>'],
    ['a list', 200, '[]'],
    ['a refusal', 403, '{}'],
    ['facts of another service', 200, '{"name":"crane"}'],
  ])('whose engine answers with %s says so and does not show it', async (_, code, text) => {
    await using engine = await startEngine({
      answer: (_request, response) => response.writeHead(code).end(text),
    })
    const { uid, status: shown } = await create(place, {
      enable: true,
      address: '127.0.0.1',
      port: engine.port,
    })
    expect(shown.State).toBe('failed')
    await expect(place.observer.connectors.info({ params: { uid } })).rejects.toMatchObject({
      status: 424,
      body: { message: shown.Message },
    })
  })

  test('is changed in what is given only', async () => {
    await using engine = await startEngine()
    const before = await create(place, { address: 'engine.invalid', port: 2375 })
    const update = async (body: object) =>
      (await place.administrator.connectors.update({ params: { uid: before.uid }, body })).body
    expect(await update({})).toEqual(before)
    expect(await update({ port: engine.port })).toEqual({ ...before, port: engine.port })
    expect((await update({ enable: true })).status).toEqual(
      status('failed', 'The host name engine.invalid cannot be resolved.'),
    )
    expect(await update({ address: '127.0.0.1' })).toMatchObject({
      enable: true,
      status: status('connected', ''),
    })
    expect(await update({ enable: false })).toMatchObject({
      enable: false,
      address: '127.0.0.1',
      status: status('disconnected', ''),
    })
    expect(
      await update({ uid: sample.connector, tenant_id: sample.otherTenant, status: { State: 'connected' } }),
    ).toMatchObject({
      uid: before.uid,
      tenant_id: sample.tenant,
      status: status('disconnected', ''),
    })
    expect(await get(place, before.uid)).toMatchObject({ address: '127.0.0.1', port: engine.port })
  })

  test('that is removed is gone', async () => {
    const { uid } = await create(place, { address: 'engine.invalid', port: 2375 })
    await place.administrator.connectors.remove({ params: { uid } })
    await expect(get(place, uid)).rejects.toMatchObject(refused(404))
    await expect(place.administrator.connectors.remove({ params: { uid } })).rejects.toMatchObject(
      refused(404),
    )
  })

  test.each<[string, object]>([
    ['no address', { address: undefined }],
    ['an empty address', { address: '' }],
    ['an address with a path', { address: 'engine/info' }],
    ['an address with a user', { address: 'root@engine' }],
    ['a whole URL', { address: 'http://engine' }],
    ['an address with a line end', { address: 'engine\r\nx' }],
    ['an address that is too long', { address: 'x'.repeat(254) }],
    ['no port', { port: undefined }],
    ['a port below nought', { port: -1 }],
    ['a port beyond the last', { port: 65_536 }],
    ['half a port', { port: 80.5 }],
    ['a port as text', { port: '80' }],
    ['enable as a word', { enable: 'true' }],
    ['secure as a number', { secure: 1 }],
    ['secure without tls', { secure: true }],
    ['secure with no tls', { secure: true, tls: null }],
    ['tls without a key', { tls: { ca: 'x', cert: 'x' } }],
    ['tls with an empty key', { secure: true, tls: { ca: 'x', cert: 'x', key: '' } }],
    ['tls that is a word', { tls: 'yes' }],
  ])('is not made with %s', async (_, more) => {
    const body = { address: 'engine.example.com', port: 2375, ...more } as Wanted
    await expect(create(place, body)).rejects.toMatchObject(refused(400))
  })

  test('cannot lose its tls while it is secure, nor become secure without', async () => {
    const { uid } = await create(place, {
      address: 'engine.invalid',
      port: 2376,
      secure: true,
      tls: clientTls,
    })
    const update = (body: object) => place.administrator.connectors.update({ params: { uid }, body })
    await expect(update({ tls: null })).rejects.toMatchObject(refused(400))
    expect((await update({ tls: null, secure: false })).body).toMatchObject({ secure: false, tls: null })
    await expect(update({ secure: true })).rejects.toMatchObject(refused(400))
    expect((await update({ secure: true, tls: clientTls })).body.secure).toBe(true)
  })

  test.each([0, 65_535])('may have the port %i', async (port) => {
    expect((await create(place, { address: 'engine.invalid', port })).port).toBe(port)
  })
})

describe('the server’s own doors', () => {
  const place = sharedPlace()

  test.each([
    '127.0.0.1',
    '127.1',
    '2130706433',
    '0x7f000001',
    '0.0.0.0',
    'localhost',
    '::1',
    '::',
    '0:0:0:0:0:ffff:127.0.0.1',
    '169.254.169.254',
    'fe80::1',
  ])('%s is not knocked at: the status says so, and the info is 424', async (address) => {
    await using engine = await startEngine()
    const { uid, status: shown } = await create(place, { enable: true, address, port: engine.port })
    expect(shown).toEqual(
      status(
        'failed',
        `The address ${address} is the server's own or link-local; the administrator has not allowed it.`,
      ),
    )
    await expect(place.observer.connectors.info({ params: { uid } })).rejects.toMatchObject({
      status: 424,
      body: { message: shown.Message },
    })
    expect(engine.asked).toEqual([])
  })

  test.each(['::ffff:127.0.0.1', '::ffff:7f00:1', '::ffff:169.254.169.254'])(
    '%s is no address of an engine at all',
    async (address) => {
      await using engine = await startEngine()
      await expect(create(place, { enable: true, address, port: engine.port })).rejects.toMatchObject(
        refused(400),
      )
      expect(engine.asked).toEqual([])
    },
  )

  test('are not reached by way of a redirect', async () => {
    await using own = await startPlace({ env: { HAWSER_CONNECTOR_ALLOW: '127.0.0.2' } })
    await using inner = await startEngine({ host: '127.0.0.1' })
    await using outer = await startEngine({
      host: '127.0.0.2',
      answer: (_request, response) =>
        response.writeHead(302, { location: `http://127.0.0.1:${inner.port}/info` }).end(),
    })
    const { status: shown } = await create(own, { enable: true, address: '127.0.0.2', port: outer.port })
    expect(shown.State).toBe('failed')
    expect([outer.asked.length, inner.asked.length]).toEqual([1, 0])
  })

  test('a connector that was made elsewhere and moved there is refused too', async () => {
    await using engine = await startEngine()
    const { uid } = await create(place, { address: 'engine.invalid', port: engine.port })
    const { body } = await place.administrator.connectors.update({
      params: { uid },
      body: { enable: true, address: '127.0.0.1' },
    })
    expect(body.status.State).toBe('failed')
    expect(engine.asked).toEqual([])
  })
})

describe('the private key', () => {
  test('is never sent back and stands in no file of the server', async () => {
    await using place = await startPlace()
    const { uid } = await create(place, {
      address: 'engine.invalid',
      port: 2376,
      secure: true,
      tls: clientTls,
      enable: true,
    })
    const params = { uid }
    const answers = [
      await place.administrator.connectors.create({
        body: { address: 'engine.invalid', port: 2376, tls: clientTls },
      }),
      await place.administrator.connectors.update({ params, body: { tls: clientTls } }),
      await place.administrator.connectors.get({ params }),
      await place.administrator.connectors.list(),
      await place.administrator.connectors.info({ params }).catch((error: unknown) => error),
    ]
    const secret = clientTls.key.split('\n')[1]!
    expect(secret.length).toBeGreaterThan(60)
    expect(JSON.stringify(answers)).not.toContain(secret)
    expect(JSON.stringify(answers)).toContain(clientTls.cert.split('\n')[1])
    const files = readdirSync(place.folder, { recursive: true, withFileTypes: true }).filter((entry) =>
      entry.isFile(),
    )
    expect(files.map(({ name }) => name)).toContain('hawser.db')
    for (const file of files)
      expect(readFileSync(path.join(file.parentPath, file.name)).includes(secret), file.name).toBe(false)
    expect(place.log()).not.toContain(secret)
    const row = await place.rooms.stores.of(sample.tenant).connectors.find(uid)
    expect(row?.tls).not.toContain(secret)
  })
})

describe.each(oneDatabase)('on %s', (_, options) => {
  const place = sharedPlace(options)

  test('the list has the connectors of the namespace in the order of their making, in pages, by whether they are enabled', async () => {
    for (const [number, enable] of [true, false, true, false].entries()) {
      place.clock.forward(1000)
      await create(place, { enable, address: `engine-${number}.invalid`, port: 2375 })
    }
    const { body, total } = await place.observer.connectors.list()
    expect(body.map(({ address }) => address)).toEqual([
      'engine.invalid',
      'engine-0.invalid',
      'engine-1.invalid',
      'engine-2.invalid',
      'engine-3.invalid',
    ])
    expect(total).toBe(5)
    expect(await place.observer.connectors.list({ query: { enable: true } })).toMatchObject({
      total: 2,
      body: body.filter(({ enable }) => enable),
    })
    expect(await place.key.connectors.list({ query: { enable: false } })).toMatchObject({
      total: 3,
      body: body.filter(({ enable }) => !enable),
    })
    const paged = []
    for (const page of [1, 2, 3])
      paged.push(...(await place.observer.connectors.list({ query: { page, per_page: 2 } })).body)
    expect(paged).toEqual(body)
    expect((await place.stranger.connectors.list()).total).toBe(0)
    for (const query of [{ enable: 'yes' as unknown as boolean }, { page: 0 }, { per_page: 101 }])
      await expect(place.observer.connectors.list({ query })).rejects.toMatchObject(refused(400))
  })

  const calls: Record<string, (client: Client, uid: string) => Promise<unknown>> = {
    get: (client, uid) => client.connectors.get({ params: { uid } }),
    info: (client, uid) => client.connectors.info({ params: { uid } }),
    update: (client, uid) => client.connectors.update({ params: { uid }, body: { port: 1 } }),
    remove: (client, uid) => client.connectors.remove({ params: { uid } }),
  }

  test.each(Object.keys(calls))(
    '%s: one of another namespace, an unknown and a malformed uid are 404',
    async (name) => {
      const before = await get(place, sample.connector)
      for (const uid of [sample.connector, '00000000-0000-4000-8000-0000000000ff', 'engine', '1'])
        await expect(calls[name]!(place.stranger, uid)).rejects.toMatchObject(refused(404))
      expect(await get(place, sample.connector)).toEqual(before)
    },
  )

  test('operators look and do not touch', async () => {
    expect((await place.operator.connectors.get({ params: { uid: sample.connector } })).status).toBe(200)
    for (const name of ['update', 'remove'])
      await expect(calls[name]!(place.operator, sample.connector)).rejects.toMatchObject(refused(403))
    await expect(
      place.operator.connectors.create({ body: { address: 'engine.invalid', port: 1 } }),
    ).rejects.toMatchObject(refused(403))
  })
})
