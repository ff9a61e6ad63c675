// Services of devices with agents of ShellHub: newer ones connect by themselves, in both versions of the
// tunnel; with older ones the server logs in with the account that the service names.
import { afterAll, beforeAll, describe, expect, test } from 'vitest'
import { sample } from '@hawser/contract/examples'
import { startOldAgent, type OldAgentOptions } from '../harness/old-agent.ts'
import { startPlace, type Place } from '../harness/place.ts'
import { hostOf, newBrowser, servicesDomain, startProgram } from '../harness/services.ts'

let place: Place
beforeAll(async () => {
  place = await startPlace({ env: { HAWSER_SERVICES_DOMAIN: servicesDomain } })
})
afterAll(() => place[Symbol.asyncDispose]())

let hosts = 0
async function device(options: Pick<OldAgentOptions, 'version' | 'httpProxy'>) {
  const agent = await startOldAgent(place, {
    ...options,
    tenant_id: sample.tenant,
    hostname: `old-${(hosts += 1)}`,
  })
  await place.owner.devices.accept({ params: { uid: agent.uid } })
  const serve = async (port: number, username = ''): Promise<string> => {
    const body = { device_uid: agent.uid, name: 'page', port, username, audience: 'public' } as const
    return hostOf((await place.administrator.services.create({ body })).body.address)
  }
  return Object.assign(agent, { serve })
}

describe.each([1, 2] as const)('version %i of the tunnel', (version) => {
  test('an agent that connects by itself', async () => {
    await using program = await startProgram((_, response) => response.end('hello'))
    await using agent = await device({ version, httpProxy: true })
    const host = await agent.serve(program.port)
    const browser = newBrowser(place.url)
    for (let again = 0; again < 3; again++)
      expect(await browser.ask(host)).toMatchObject({ status: 200, text: 'hello' })
    expect(agent.seen.attempts).toEqual([])
  })

  test('an agent that cannot, without and with an account', async () => {
    await using program = await startProgram((_, response) => response.end('hello'))
    await using agent = await device({ version })
    const refused = await newBrowser(place.url).ask(await agent.serve(program.port))
    expect([refused.status, refused.text]).toEqual([
      502,
      expect.stringContaining('cannot connect to services'),
    ])
    const host = await agent.serve(program.port, 'root')
    const answers = await Promise.all(
      Array.from({ length: 6 }, async () => newBrowser(place.url).ask(host, { path: '/file' })),
    )
    expect(answers.map(({ status, text }) => `${status} ${text}`)).toEqual(Array(6).fill('200 hello'))
    expect(agent.seen.attempts.filter((attempt) => attempt === 'publickey root')).toHaveLength(1)
  })
})

test('a port at which nothing listens', async () => {
  const program = await startProgram((_, response) => response.end())
  const { port } = program
  await program[Symbol.asyncDispose]()
  await using agent = await device({ version: 2, httpProxy: true })
  const { status, text } = await newBrowser(place.url).ask(await agent.serve(port))
  expect([status, text]).toEqual([502, expect.stringContaining('Nothing on the device listens')])
})
