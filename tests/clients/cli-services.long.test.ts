// Services on the command line, all of it: how pages of devices are written, which services `hawser open` uses
// and which it leaves alone, and that services are named by words.
import { afterAll, beforeAll, describe, expect, test } from 'vitest'
import { sample } from '@hawser/contract/examples'
import { addressOf, pageOf } from '../../cli/src/commands/services.ts'
import { openDesk, type Desk } from '../../cli/test/program.ts'
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

describe('a page of a device', () => {
  test.each([
    ['crane', { device: 'crane', scheme: undefined, port: 80, path: '', user: '' }],
    ['crane:3000', { device: 'crane', scheme: undefined, port: 3000 }],
    ['root@crane:3000', { device: 'crane', user: 'root', port: 3000 }],
    ['crane:443', { scheme: 'https', port: 443 }],
    ['http://crane:443', { scheme: 'http', port: 443 }],
    ['https://crane', { scheme: 'https', port: 443 }],
    ['https://crane:8443/admin/?tab=1#a', { scheme: 'https', port: 8443, path: 'admin/?tab=1#a' }],
    ['crane:3000/metrics', { scheme: undefined, port: 3000, path: 'metrics' }],
    ['crane/', { port: 80, path: '' }],
  ])('%s', (text, wanted) => {
    expect(pageOf(text, false)).toMatchObject(wanted)
  })

  test('with --https', () => {
    expect(pageOf('crane', true)).toMatchObject({ scheme: 'https', port: 443 })
    expect(pageOf('crane:8443/a', true)).toMatchObject({ scheme: 'https', port: 8443, path: 'a' })
    expect(() => pageOf('http://crane', true)).toThrow(/not both/)
  })

  test('is a service by its name only without a port', () => {
    expect(pageOf('crane/The dashboard: new', false)).toBe(undefined)
  })

  test.each(['', ':3000', 'crane:', 'crane:0', 'crane:70000', 'crane:http', 'ftp://crane', 'a@b@crane'])(
    '%j is none',
    (text) => expect(() => pageOf(text, false)).toThrow(/is not a web page of a device/),
  )
})

describe('the address of a page', () => {
  test.each([
    ['', 'http://a.test/'],
    ['metrics?a=b', 'http://a.test/metrics?a=b'],
    ['/other.test/', 'http://a.test//other.test/'],
    ['@other.test', 'http://a.test/@other.test'],
    ['../..', 'http://a.test/'],
  ])('stays on the host of the service with the path %j', (path, wanted) => {
    expect(addressOf({ url: 'http://a.test' }, path).href).toBe(wanted)
  })

  test.each(['', '--version', 'file:///etc/passwd', 'javascript:alert(1)', 'steam://run/1', '\u001b]0;a'])(
    '%j of a hostile server opens nothing',
    (url) => expect(() => addressOf({ url }, '')).toThrow(/returned an unusable address/),
  )
})

describe('hawser open', () => {
  test('keeps a path, and knows HTTPS by its scheme or its port', async () => {
    const { stdout } = await desk.hawser(['open', 'till:3000/graphs?from=1h'])
    expect(stdout).toMatch(/^https?:\/\/[0-9a-f]{32}\.[^/]+\/graphs\?from=1h\n$/)
    const plain = await desk.hawser(['open', 'till:8443'])
    const secure = await desk.hawser(['open', '--https', 'till:8443'])
    expect(secure.stdout).not.toBe(plain.stdout)
    expect(await desk.hawser(['open', 'https://till:8443'])).toMatchObject({ stdout: secure.stdout })
    await desk.hawser(['open', 'till:443'])
    expect((await servicesOf(till)).filter(({ scheme }) => scheme === 'https')).toMatchObject([
      { port: 443, check: 'pin' },
      { port: 8443, check: 'pin' },
    ])
  })

  test('leaves services alone that are of another host, or over', async () => {
    const target = { device_uid: till, name: 'other', port: 5000 }
    await place.owner.services.create({ body: { ...target, host: '10.0.0.7' } })
    const { body } = await place.owner.services.create({ body: target })
    const over = { expires_at: '2020-01-01T00:00:00.000Z' }
    await place.rooms.stores.of(sample.tenant).services.save(body.id, over)
    await desk.hawser(['open', 'till:5000'])
    expect((await servicesOf(till)).filter(({ name }) => name === 'port 5000')).toHaveLength(1)
  })

  test('with a user creates a service with that account', async () => {
    await desk.hawser(['open', 'root@till:6000'])
    expect((await servicesOf(till)).find(({ port }) => port === 6000)).toMatchObject({ username: 'root' })
  })

  test('finds a service by its name, whatever its host', async () => {
    const { body } = await place.owner.services.create({
      body: { device_uid: till, name: 'The printer', host: '10.0.0.9', port: 80 },
    })
    const said = await desk.hawser(['open', 'till/the printer'])
    expect(said).toEqual({ code: 0, stdout: `${new URL(body.url).href}\n`, stderr: '' })
    const asJson = await desk.hawser(['services', 'open', 'till/The printer', '-o', 'json'])
    expect(JSON.parse(asJson.stdout)).toEqual(body)
  })

  test.each([
    ['an unknown device', ['dinghy:80'], 5, /There is no device dinghy/],
    ['an unknown service', ['till/none'], 5, /There is no service till\/none; `hawser services list`/],
    ['a pending device', ['buoy'], 1, /buoy is pending.*hawser devices accept buoy/],
    ['no port', ['till:http'], 2, /is not a web page of a device: use crane:3000/],
    ['too many words', ['https', 'till'], 2, /Unexpected argument: till/],
  ] as const)('with %s says what to do', async (_, words, code, sentence) => {
    const said = await desk.hawser(['open', ...words])
    expect([said.code, said.stdout, said.stderr]).toEqual([code, '', expect.stringMatching(sentence)])
  })

  test('an observer uses what is there, and creates nothing', async () => {
    using other = openDesk({ HAWSER_SERVER: place.url })
    const { username, password } = sample.observer
    await other.hawser(['login', '-u', username, '--password-stdin'], { input: password })
    expect(await other.hawser(['open', 'till:3000'])).toMatchObject({ code: 0, stderr: '' })
    const refused = await other.hawser(['open', 'till:3999'])
    expect([refused.code, refused.stdout, refused.stderr]).toEqual([
      4,
      '',
      expect.stringContaining('administrator of the namespace'),
    ])
  })
})

describe('hawser services', () => {
  test('are created for a device by its name, changed and removed by theirs', async () => {
    const words =
      'services create --device till --name Grafana --port 3100 --expires-at 2096-01-01T00:00:00Z -o json'
    const created = JSON.parse((await desk.hawser(words.split(' '))).stdout) as object
    expect(created).toMatchObject({
      device_uid: till,
      name: 'Grafana',
      expires_at: '2096-01-01T00:00:00.000Z',
    })
    expect((await desk.hawser(['services', 'list', '--device', 'till', '--all'])).stdout).toMatch(
      /^NAME +DEVICE NAME +SCHEME +HOST +PORT +AUDIENCE +URL\nGrafana +till +http +127\.0\.0\.1 +3100 +members +http/,
    )
    expect((await desk.hawser(['services', '--device-uid', till, '-o', 'json'])).stdout).toContain('Grafana')
    const changed = await desk.hawser([
      'services',
      'update',
      'grafana',
      '--audience',
      'link',
      '--expires-at',
      'null',
    ])
    expect(changed.stdout).toMatch(/audience +link/)
    expect((await desk.hawser(['services', 'new-link', 'till/Grafana', '-o', 'json'])).stdout).toContain(
      '?key=',
    )
    expect(await desk.hawser(['service', 'remove', 'Till/grafana'])).toMatchObject({ code: 0 })
    expect(await desk.hawser(['services', 'get', 'Grafana'])).toMatchObject({
      code: 5,
      stderr: expect.stringContaining('There is no service Grafana') as string,
    })
  })

  test('with one name on two devices are told apart by the device', async () => {
    const { uid } = await place.accepted('scales')
    for (const device_uid of [till, uid])
      await place.owner.services.create({ body: { device_uid, name: 'admin', port: 9000 } })
    expect(await desk.hawser(['services', 'get', 'admin'])).toMatchObject({
      code: 5,
      stderr: expect.stringMatching(/There are several.*\((till|scales)\).*Name it by its id\./) as string,
    })
    const { stdout } = await desk.hawser(['services', 'get', 'scales/admin', '-o', 'json'])
    expect(JSON.parse(stdout)).toMatchObject({ device_uid: uid })
  })
})
