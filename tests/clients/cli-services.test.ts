// Services on the command line: `hawser open` finds or creates one, prints its address alone on stdout, and
// starts a browser only for a person in front of a screen; the ports of a device are listed, also for Tab.
import { chmodSync, existsSync, mkdirSync, readFileSync, writeFileSync } from 'node:fs'
import path from 'node:path'
import { afterAll, beforeAll, describe, expect, test } from 'vitest'
import { sample } from '@hawser/contract/examples'
import { openDesk, type Desk } from '../../cli/test/program.ts'
import { startAgent, type Agent } from '../harness/agent.ts'
import { eventually } from '../harness/eventually.ts'
import { startPlace, type Place } from '../harness/place.ts'

let place: Place
let desk: Desk
let till: string
beforeAll(async () => {
  place = await startPlace()
  desk = openDesk({ HAWSER_SERVER: place.url, HAWSER_API_KEY: sample.apiKey })
  till = (await place.accepted('till')).uid
})
afterAll(async () => {
  desk[Symbol.dispose]()
  await place[Symbol.asyncDispose]()
})

const servicesOf = async (device_uid: string) =>
  (await place.owner.services.list({ query: { device_uid, per_page: 100 } })).body
const address = /^https?:\/\/[0-9a-f]{32}\.[^/\s]+\/$/

describe('hawser open', () => {
  test('creates a service for members, prints its address alone, and uses the service again', async () => {
    const first = await desk.hawser(['open', 'till:3000'])
    expect(first).toEqual({
      code: 0,
      stdout: expect.stringMatching(/^\S+\n$/) as string,
      stderr: expect.stringMatching(/Created the service till\/port 3000\. Operators/) as string,
    })
    expect(first.stdout.trim()).toMatch(address)
    const [created] = (await servicesOf(till)).filter(({ port }) => port === 3000)
    expect(created).toMatchObject({
      name: 'port 3000',
      host: '127.0.0.1',
      scheme: 'http',
      audience: 'members',
      role: 'operator',
      expires_at: null,
    })
    expect(new URL(first.stdout.trim()).href).toBe(new URL(created!.url).href)
    for (const words of [['till:3000'], [`${till.slice(0, 12)}:3000`, '--print'], ['http://TILL:3000/']])
      expect(await desk.hawser(['open', ...words])).toEqual({ code: 0, stdout: first.stdout, stderr: '' })
  })
})

describe('the browser', () => {
  const started = () => path.join(desk.folder, 'started')
  const screen = () => ({
    DISPLAY: ':7',
    WAYLAND_DISPLAY: '',
    PATH: `${path.join(desk.folder, 'programs')}:/bin:/usr/bin`,
  })
  beforeAll(() => {
    const programs = path.join(desk.folder, 'programs')
    mkdirSync(programs)
    for (const name of ['xdg-open', 'open']) {
      writeFileSync(path.join(programs, name), `#!/bin/sh\nprintf '%s\\n' "$@" >> '${started()}'\n`)
      chmodSync(path.join(programs, name), 0o755)
    }
  })

  test.each([
    ['without a screen', ['till:3000'], { DISPLAY: '', WAYLAND_DISPLAY: '', SSH_CONNECTION: 'a 1 b 22' }],
    ['with --print', ['till:3000', '--print'], {}],
    ['with JSON', ['till:3000', '-o', 'json'], {}],
  ])('is not started %s', async (_, words, env) => {
    using terminal = desk.terminal(['open', ...words], { ...screen(), ...env })
    expect(await terminal.ended).toBe(0)
    expect(terminal.shown()).toMatch(/https?:\/\/[0-9a-f]{32}\./)
    expect(existsSync(started())).toBe(false)
  })

  test('is not started in a pipe', async () => {
    await desk.hawser(['open', 'till:3000'], { env: screen() })
    expect(existsSync(started())).toBe(false)
  })

  test('gets the address, on a terminal with a screen', async () => {
    using terminal = desk.terminal(['open', 'till:3000/a b'], screen())
    expect(await terminal.ended).toBe(0)
    const shown = await terminal.until(/(https?:\S+\/a%20b)\r\n/)
    await eventually(() => expect(readFileSync(started(), 'utf8')).toBe(`${shown}\n`))
  })

  test('that is missing is named', async () => {
    using terminal = desk.terminal(['open', 'till:3000'], { ...screen(), PATH: desk.folder })
    expect(await terminal.ended).toBe(0)
    expect(terminal.shown()).toMatch(/https?:\/\/[^]*(xdg-)?open is not installed here/)
  })
})

describe('with an agent', () => {
  let agent: Agent
  beforeAll(async () => {
    agent = await startAgent(place)
  })
  afterAll(() => agent[Symbol.asyncDispose]())
  const port = () => new URL(place.url).port

  test('scan lists the ports on which programs listen', async () => {
    const { code, stdout } = await desk.hawser(['services', 'scan', 'gantry'])
    expect([code, stdout]).toEqual([0, expect.stringMatching(/^ADDRESS +PORT +PROGRAM\n/)])
    expect(stdout).toMatch(new RegExp(`^127\\.0\\.0\\.1 +${port()} +\\S+$`, 'm'))
    const { ports } = JSON.parse(
      (await desk.hawser(['services', 'scan', 'gantry', '-o', 'json'])).stdout,
    ) as {
      ports: object[]
    }
    expect(ports).toContainEqual(expect.objectContaining({ address: '127.0.0.1', port: Number(port()) }))
  })

  test('of a device that is offline says so', async () => {
    expect(await desk.hawser(['services', 'scan', 'till'])).toMatchObject({ code: 1, stdout: '' })
  })

  test('Tab completes devices, their ports and their services', async () => {
    const tab = async (...words: string[]) =>
      (await desk.hawser(['__complete', ...words])).stdout.split('\n').map((line) => line.split('\t')[0])
    await place.owner.services.create({ body: { device_uid: agent.uid, name: 'metrics', port: 9100 } })
    expect(await tab('op')).toContain('open')
    expect(await tab('open', 'gan')).toEqual(['gantry', ''])
    expect(await tab('open', 'gantry:')).toContain(`gantry:${port()}`)
    expect(await tab('open', 'gantry/')).toEqual(['gantry/metrics', ''])
    expect(await tab('services', 'remove', 'gantry/m')).toEqual(['gantry/metrics', ''])
    expect(await tab('services', 'list', '--device', 'gan')).toEqual(['gantry', ''])
    expect(await tab('forward', 'root@gan')).toEqual(['root@gantry', ''])
  })
})
