// How often a request to a service crosses the link to the device, counted by the link. In the long tier the
// link has 500 ms.
import { expect, test, vi } from 'vitest'
import { startAgent } from '../harness/agent.ts'
import { startLink } from '../harness/link.ts'
import { startPlace } from '../harness/place.ts'
import { times } from '../harness/tier.ts'
import { hostOf, newBrowser, servicesDomain, startProgram } from '../harness/services.ts'

vi.setConfig({ testTimeout: 60_000 })

test('once it is warm, a request is one round trip', async () => {
  await using place = await startPlace({ env: { HAWSER_SERVICES_DOMAIN: servicesDomain } })
  await using link = await startLink({ port: Number(new URL(place.url).port) })
  const { rooms } = place
  await using agent = await startAgent({ url: `http://127.0.0.1:${link.port}`, rooms })
  let connections = 0
  await using program = await startProgram(
    (_, response) => response.end('hello'),
    (server) => server.on('connection', () => (connections += 1)),
  )
  const { body } = await place.owner.services.create({
    body: { device_uid: agent.uid, name: 'page', port: program.port, audience: 'public' },
  })
  const host = hostOf(body.address)
  const browser = newBrowser(place.url)
  link.shape({ delay_ms: times(40, 250) })
  const roundTrips = async (): Promise<number> => {
    const count = link.countRoundTrips()
    expect(await browser.ask(host)).toMatchObject({ status: 200, text: 'hello' })
    return count()
  }
  // To open the connection to the program, and for the request.
  expect(await roundTrips()).toBe(2)
  expect(await roundTrips()).toBe(1)
  expect(await roundTrips()).toBe(1)
  // Six at a time, as browsers ask for the files of a page.
  const count = link.countRoundTrips()
  for (let file = 0; file < 18; file += 6)
    await Promise.all(Array.from({ length: 6 }, async () => browser.ask(host, { path: `/${file}` })))
  // Five more connections, opened side by side, and then one for each round of six.
  expect(count()).toBeLessThanOrEqual(4)
  expect(connections).toBeLessThanOrEqual(6)
})
