// Certificates of services from a real ACME server: one for each service that exists, and none for other
// names.
import { once } from 'node:events'
import tls from 'node:tls'
import { afterAll, beforeAll, expect, test, vi } from 'vitest'
import { sample } from '@hawser/contract/examples'
import { folder } from '../../ssh/test/programs.ts'
import { eventually } from '../harness/eventually.ts'
import { startPebble, type Pebble } from '../harness/pebble.ts'
import { startPlace } from '../harness/place.ts'
import { hostOf, newBrowser, servicesDomain } from '../harness/services.ts'

vi.setConfig({ testTimeout: 180_000, hookTimeout: 300_000 })

const where = folder()
let pebble: Pebble
beforeAll(async () => {
  pebble = await startPebble(where, 3_600)
})
afterAll(async () => {
  await pebble[Symbol.asyncDispose]()
  where[Symbol.dispose]()
})

test('services that exist get one each, up to a limit, and a service that is made later too', async () => {
  await using place = await startPlace({
    env: {
      HAWSER_ACME_EMAIL: 'ops@example.com',
      HAWSER_ACME_DIRECTORY: pebble.directory,
      HAWSER_URL: 'https://hawser.example.com',
      HAWSER_PLAIN_HTTP: 'serve',
      HAWSER_HTTP: `127.0.0.1:${pebble.httpPort}`,
      HAWSER_SERVICES_DOMAIN: servicesDomain,
      HAWSER_SERVICES_CERTIFICATES: '4',
    },
  })
  const names = async (servername: string): Promise<string> => {
    const socket = tls.connect({
      port: place.tlsPort!,
      host: '127.0.0.1',
      servername,
      rejectUnauthorized: false,
    })
    await once(socket, 'secureConnect')
    const { subjectaltname = '' } = socket.getPeerCertificate()
    socket.destroy()
    return subjectaltname
  }
  const own = async (host: string): Promise<void> =>
    eventually(async () => expect(await names(host)).toBe(`DNS:${host}`), 90_000)
  await own(hostOf(sample.serviceAddress))
  await own(hostOf(sample.publicAddress))
  const body = { device_uid: sample.device, name: 'late', port: 3000 }
  const late = (await place.owner.services.create({ body })).body
  await own(hostOf(late.address))
  const tooMany = (await place.owner.services.create({ body })).body
  expect(await names(hostOf(tooMany.address))).toBe('DNS:hawser.example.com')
  expect(await names(hostOf('0'.repeat(32)))).toBe('DNS:hawser.example.com')
  // The path of the challenges is the server's at every host.
  const asked = await newBrowser(place.url).ask(hostOf(sample.publicAddress), {
    path: `/.well-known/acme-challenge/${'x'.repeat(43)}`,
  })
  expect(asked.status).toBe(404)
})
