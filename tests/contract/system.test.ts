// The server about itself: the addresses it gives to agents, also behind a proxy and to callers who lie about
// it; the script that installs an agent; health; and figures that agree with what the lists show.
import { execFileSync } from 'node:child_process'
import { randomBytes } from 'node:crypto'
import { chmodSync, mkdirSync, mkdtempSync, readFileSync, readdirSync, rmSync, writeFileSync } from 'node:fs'
import http from 'node:http'
import { tmpdir } from 'node:os'
import path from 'node:path'
import { text } from 'node:stream/consumers'
import fc from 'fast-check'
import { afterAll, beforeAll, describe, expect, test } from 'vitest'
import { deviceStatuses } from '@hawser/contract/devices'
import { sample } from '@hawser/contract/examples'
import { encodeFilter } from '@hawser/contract/filters'
import { eventually } from '../harness/eventually.ts'
import { sharedPlace, startPlace, type Enrolled, type Place } from '../harness/place.ts'
import { oneDatabase, times } from '../harness/tier.ts'
import { startService, type Service } from '../harness/service.ts'

const day_ms = 86_400_000

const refused = (status: number) => ({ status })

/** A request with any headers, the Host included, which `fetch` does not let one choose. */
async function ask(service: Service, address: string, headers: Record<string, string> = {}) {
  const { hostname, port } = new URL(service.url)
  const response = await new Promise<http.IncomingMessage>((resolve, reject) => {
    http.get({ hostname, port, path: address, headers, agent: false }, resolve).on('error', reject)
  })
  return { status: response.statusCode, type: response.headers['content-type'], body: await text(response) }
}

interface Info {
  version: string
  endpoints: { api: string; ssh: string }
  setup: boolean
}
const infoOf = async (service: Service, headers: Record<string, string> = {}) =>
  JSON.parse((await ask(service, '/info', headers)).body) as Info

describe('info', () => {
  /** Without a public address of its own: what it says depends on who asks. */
  const plain = sharedPlace(async () => ({ env: { HAWSER_URL: '', HAWSER_SSH: '0.0.0.0:2222' } }))

  test('is JSON, for anyone, at both addresses, whatever version the agent has', async () => {
    for (const address of [
      '/info',
      '/api/info',
      '/info?agent_version=v0.16.4',
      '/api/info?agent_version=latest',
      '/info?unknown=1',
    ]) {
      const { status, type, body } = await ask(plain, address, { host: 'hawser.example.com' })
      expect([status, type]).toEqual([200, 'application/json; charset=utf-8'])
      expect(JSON.parse(body)).toEqual({
        version: 'v0.16.4',
        endpoints: { api: 'hawser.example.com', ssh: 'hawser.example.com:2222' },
        setup: true,
        mail: false,
      })
    }
  })

  test('says whether there is a mail server', async () => {
    await using mailing = await startPlace({ env: { HAWSER_SMTP: 'smtp://127.0.0.1:1' } })
    expect((await mailing.nobody.system.info()).body.mail).toBe(true)
  })

  test.each([
    ['hawser.example.com', 'hawser.example.com', 'hawser.example.com:2222'],
    ['hawser.example.com:8443', 'hawser.example.com:8443', 'hawser.example.com:2222'],
    ['192.0.2.1:8080', '192.0.2.1:8080', '192.0.2.1:2222'],
    ['[2001:db8::1]:8080', '[2001:db8::1]:8080', '[2001:db8::1]:2222'],
    ['[2001:db8::1]', '[2001:db8::1]', '[2001:db8::1]:2222'],
  ])('called as %s it names %s and %s', async (host, api, ssh) => {
    expect((await infoOf(plain, { host })).endpoints).toEqual({ api, ssh })
    // A proxy on loopback is believed.
    expect((await infoOf(plain, { host: 'inner:80', 'x-forwarded-host': host })).endpoints).toEqual({
      api,
      ssh,
    })
  })

  test('a proxy that is not trusted is not believed', async () => {
    await using service = await startService({ env: { HAWSER_URL: '', HAWSER_TRUSTED_PROXIES: 'none' } })
    const headers = {
      host: 'real.example.com',
      'x-forwarded-host': 'evil.example.com',
      'x-forwarded-proto': 'https',
    }
    expect((await infoOf(service, headers)).endpoints.api).toBe('real.example.com')
    expect((await ask(service, `/install.sh?tenant_id=${sample.tenant}`, headers)).body).toContain(
      "SERVER_ADDRESS='http://real.example.com'",
    )
  })

  test('a public address that is set is said to everyone', async () => {
    await using service = await startService({
      env: { HAWSER_URL: 'https://hawser.example.com:8443', HAWSER_SSH_PUBLIC_PORT: '22' },
    })
    for (const headers of [{}, { host: 'evil.example.com' }, { 'x-forwarded-host': 'evil.example.com' }])
      expect((await infoOf(service, headers)).endpoints).toEqual({
        api: 'hawser.example.com:8443',
        ssh: 'hawser.example.com:22',
      })
    expect((await ask(service, '/install.sh', { host: 'evil.example.com' })).body).toContain(
      "'https://hawser.example.com:8443'",
    )
  })

  test('setup is false until there is a user', async () => {
    await using service = await startService()
    expect((await infoOf(service)).setup).toBe(false)
    const body = {
      code: (await service.rooms.setupCode())!,
      name: 'Sam',
      email: 'sam@example.com',
      username: 'sam',
      password: 'lighthouse',
    }
    await service.api().system.setup({ body })
    expect((await infoOf(service)).setup).toBe(true)
  })
})

const evil = [
  `x';touch\${IFS}pwned;'`,
  '$(touch${IFS}pwned)',
  '`touch${IFS}pwned`',
  'x"y',
  "x'y",
  'x y',
  'x;y',
  'x|y',
  'x&y',
  'x<y',
  'x\\y',
  'x/y',
  'x@y',
  'x#y',
  'x$HOME',
  '-e',
  'a:b',
  'host:99999999',
  '[::1',
  '[$(id)]',
  '',
]

describe('the install script', () => {
  const place = sharedPlace(async () => ({ env: { HAWSER_URL: '' } }))
  let folder: string
  beforeAll(() => {
    folder = mkdtempSync(path.join(tmpdir(), 'hawser-install-'))
    // Stand-ins: one that writes down what it is asked to fetch and gives a package with next to nothing in
    // it, namely an agent that writes down what it is told to do.
    const agent = path.join(folder, 'hawser-agent/bin')
    mkdirSync(agent, { recursive: true })
    const installer = `#!/bin/sh\n[ "$1" = --version ] || printf '%s\\n' "$@" > "${path.join(folder, 'installed')}"\n`
    writeFileSync(path.join(agent, 'hawser-agent'), installer)
    chmodSync(path.join(agent, 'hawser-agent'), 0o755)
    execFileSync('tar', ['-C', folder, '-czf', path.join(folder, 'package'), 'hawser-agent'])
    const curl = `#!/bin/sh\nprintf '%s\\n' "$@" >> "${path.join(folder, 'told')}"\ncp "${path.join(folder, 'package')}" "$6"\nprintf 200\n`
    writeFileSync(path.join(folder, 'curl'), curl)
    writeFileSync(path.join(folder, 'sudo'), '#!/bin/sh\nexec "$@"\n')
    for (const name of ['curl', 'sudo']) chmodSync(path.join(folder, name), 0o755)
  })
  afterAll(() => rmSync(folder, { recursive: true, force: true }))

  /**
   * What a shell makes of the script: what was fetched, and the words by which the agent is told to install
   * itself.
   */
  function run(script: string): { fetched: string; words: string[] } {
    writeFileSync(path.join(folder, 'told'), '')
    rmSync(path.join(folder, 'installed'), { force: true })
    const env = { PATH: `${folder}:/usr/bin:/bin`, PRIVATE_KEY: '/etc/crane.key', NO_SERVICE: '1' }
    execFileSync('sh', ['-s'], { input: script, cwd: folder, env, stdio: ['pipe', 'pipe', 'pipe'] })
    return {
      fetched: readFileSync(path.join(folder, 'told'), 'utf8').trim().split('\n').at(-1)!,
      words: readFileSync(path.join(folder, 'installed'), 'utf8').trim().split('\n'),
    }
  }
  const always = ['--key', '/etc/crane.key', '--init', 'none']
  const script = async (
    query: Record<string, string>,
    headers: Record<string, string> = {},
    address = '/install.sh',
  ) =>
    ask(place, `${address}?${new URLSearchParams(query).toString()}`, {
      host: 'hawser.example.com',
      ...headers,
    })

  test('is a shell script, at both addresses, and starts an agent for this server and namespace', async () => {
    for (const address of ['/install.sh', '/kickstart.sh', '/api/install']) {
      const { status, type, body } = await script({ tenant_id: sample.tenant }, {}, address)
      expect(status).toBe(200)
      expect(type).toMatch(/^text\/x-shellscript\b/)
      expect(body.startsWith('#!/bin/sh\n')).toBe(true)
      const { fetched, words } = run(body)
      expect(fetched).toMatch(
        /^http:\/\/hawser\.example\.com\/agent\/hawser-agent-linux-(x64|arm64)\.tar\.gz$/,
      )
      expect(words).toEqual([
        'install',
        '--server',
        'http://hawser.example.com',
        '--tenant',
        sample.tenant,
        ...always,
      ])
    }
  })

  test('passes on what the agent is to be called, and the way to the server', async () => {
    const query = {
      tenant_id: sample.tenant,
      keepalive_interval: '30',
      preferred_hostname: 'crane-1.dock',
      preferred_identity: '00:00:5e:00:53:01',
    }
    const { body } = await script(query, {
      'x-forwarded-proto': 'https',
      'x-forwarded-host': 'public.example.com:8443',
    })
    const told = ['--keepalive', '30', '--name', 'crane-1.dock', '--identity', '00:00:5e:00:53:01']
    expect(run(body).words).toEqual([
      'install',
      '--server',
      'https://public.example.com:8443',
      '--tenant',
      sample.tenant,
      ...told,
      ...always,
    ])
  })

  test('without a namespace leaves it to the agent to show a code', async () => {
    const { body } = await script({})
    expect(run(body).words).toEqual(['install', '--server', 'http://hawser.example.com', ...always])
  })

  test('hands an enrolment token to the agent in a file, and never on a command line', async () => {
    const { body } = await script({ token: sample.enrolmentToken })
    for (const text of [body, `ENROLMENT_TOKEN=${sample.enrolmentToken}\n${(await script({})).body}`]) {
      const { words } = run(text)
      expect(words.slice(0, 4)).toEqual(['install', '--server', 'http://hawser.example.com', '--token-file'])
      expect(words.join(' ')).not.toContain(sample.enrolmentToken)
      expect(readFileSync(path.join(folder, 'told'), 'utf8')).not.toContain(sample.enrolmentToken)
    }
  })

  test('a host that is more than a name gets nowhere near the shell', async () => {
    const scripts = new Set<string>()
    for (const host of evil)
      for (const headers of [{ host }, { 'x-forwarded-host': host }]) {
        const { status, body } = await script({ tenant_id: sample.tenant }, headers)
        // Some of these are no HTTP at all, which is as good an end.
        if (status === 400) continue
        scripts.add(body)
        const { endpoints } = await infoOf(place, headers)
        expect(`${endpoints.api} ${endpoints.ssh}`).toMatch(/^[A-Za-z0-9.-]+(:\d{1,5})? [A-Za-z0-9.-]+:\d+$/)
      }
    expect(scripts.size).toBeGreaterThan(0)
    for (const body of scripts) {
      expect(run(body).words[2]).toMatch(/^http:\/\/[A-Za-z0-9.-]+(:\d{1,5})?$/)
    }
    expect(readdirSync(folder).toSorted()).toEqual([
      'curl',
      'hawser-agent',
      'installed',
      'package',
      'sudo',
      'told',
    ])
  })

  test.each(['tenant_id', 'token', 'keepalive_interval', 'preferred_hostname', 'preferred_identity'])(
    'a %s that could be more than a word is 400',
    async (name) => {
      for (const value of [...evil.filter((each) => !/^[\w:-]+$/.test(each)), 'x\ny', `${sample.tenant}\n`]) {
        const { status, body } = await script({ tenant_id: sample.tenant, [name]: value })
        expect([value, status]).toEqual([value, 400])
        expect((JSON.parse(body) as { message: string }).message).toContain(name)
      }
    },
  )

  test('is a script that a shell can read, whatever is asked for and however the server is called', async () => {
    const letters = (from: string, maxLength: number) =>
      fc.string({ unit: fc.constantFrom(...from), minLength: 1, maxLength })
    const query = fc.record(
      {
        tenant_id: fc.uuid(),
        keepalive_interval: letters('0123456789', 6),
        preferred_hostname: letters('abcXYZ019_.-', 64),
        preferred_identity: letters('abcXYZ019_.:-', 255),
      },
      { requiredKeys: [] },
    )
    const host = fc.oneof(fc.domain(), fc.ipV4(), fc.constantFrom(...evil))
    await fc.assert(
      fc.asyncProperty(query, host, async (asked, forwarded) => {
        const { status, body } = await script(asked, { 'x-forwarded-host': forwarded })
        expect(status).toBe(200)
        execFileSync('sh', ['-n'], { input: body })
      }),
      { numRuns: times(10, 30) },
    )
  })
})

describe('health', () => {
  test('is 200 with nothing in it, at both addresses, for anyone', async () => {
    await using service = await startService()
    for (const address of ['/healthcheck', '/api/healthcheck']) {
      const { status, body } = await ask(service, address, { authorization: 'Bearer nonsense' })
      expect([status, body]).toEqual([200, ''])
    }
  })

  test('is 503 once the server is stopping, so that nobody is sent there any more', async () => {
    await using service = await startService()
    service.rooms.drain()
    const { status, body } = await ask(service, '/healthcheck')
    expect([status, Object.keys(JSON.parse(body) as object)]).toEqual([503, ['message']])
  })

  test('is not limited, because balancers ask all the time', async () => {
    await using service = await startService({ env: { HAWSER_RATE_LIMIT: '2/10' } })
    for (let call = 0; call < 6; call++) expect((await ask(service, '/healthcheck')).status).toBe(200)
  })

  test('costs the database next to nothing, however often a stranger asks', async () => {
    await using service = await startService()
    const statements = (): number =>
      service.rooms.database.figures.point.durations.counts.reduce((sum, count) => sum + count, 0)
    const before = statements()
    await Promise.all(Array.from({ length: 300 }, async () => ask(service, '/healthcheck')))
    expect(statements() - before).toBeLessThan(50)
  })
})

describe.each(oneDatabase)('figures, on %s', (_, options) => {
  const place = sharedPlace(options)

  /** The same numbers from every page that shows them; they must agree at any moment. */
  async function agree(of: Place['observer'], tenant: string): Promise<void> {
    const { body: stats } = await of.system.stats()
    const total = async (query: object) => (await of.devices.list({ query })).total
    const online = encodeFilter([
      { type: 'property', params: { name: 'online', operator: 'eq', value: true } },
    ])
    const counts = Object.fromEntries(
      await Promise.all(deviceStatuses.map(async (status) => [status, await total({ status })] as const)),
    )
    expect({
      registered_devices: stats.registered_devices,
      online_devices: stats.online_devices,
      pending_devices: stats.pending_devices,
      rejected_devices: stats.rejected_devices,
    }).toEqual({
      registered_devices: counts.accepted,
      online_devices: await total({ status: 'accepted', filter: online }),
      pending_devices: counts.pending,
      rejected_devices: counts.rejected,
    })
    const { body: namespace } = await of.namespaces.get({ params: { tenant } })
    expect([namespace.device_count, namespace.devices_count]).toEqual([counts.accepted, counts.accepted])
    const { body: all, total: whole } = await of.devices.list({ query: { per_page: 100 } })
    expect(whole).toBe(Object.values(counts).reduce((sum, count) => sum + count, 0))
    expect(all.filter((device) => device.status === 'accepted' && device.online)).toHaveLength(
      stats.online_devices,
    )
    const { body: sessions } = await of.sessions.list({ query: { per_page: 100 } })
    expect(stats.active_sessions).toBe(sessions.filter(({ active }) => active).length)
  }

  test('start with what there is', async () => {
    expect((await place.observer.system.stats()).body).toEqual({
      registered_devices: 1,
      online_devices: 0,
      pending_devices: 1,
      rejected_devices: 0,
      active_sessions: 1,
    })
    expect((await place.stranger.system.stats()).body).toEqual({
      registered_devices: 0,
      online_devices: 0,
      pending_devices: 0,
      rejected_devices: 0,
      active_sessions: 0,
    })
    await agree(place.observer, sample.tenant)
  })

  test('by day are those of the last days, and only of this namespace', async () => {
    const { stores } = place.rooms
    const dayOf = (ago: number) => new Date(place.clock.now() - ago * day_ms).toISOString().slice(0, 10)
    const used = { idle_received: 1, idle_sent: 20, session_received: 300, session_sent: 4_000 }
    const { body: all } = await place.observer.devices.list({ query: { per_page: 2 } })
    const [one, other] = all.map(({ uid }) => uid)
    await stores.trafficSums.add([
      { uid: one!, day: dayOf(1), ...used },
      { uid: other!, day: dayOf(1), ...used },
      { uid: one!, day: dayOf(2), ...used },
      { uid: one!, day: dayOf(3), ...used },
    ])
    const row = (await stores.of(sample.tenant).sessions.find(sample.session))!
    for (const [uid, ago] of [
      ['a', 0],
      ['b', 2],
      ['c', 2],
      ['d', 3],
    ] as const)
      await stores.of(sample.tenant).sessions.insert({
        ...row,
        uid: uid.repeat(64),
        active: 0,
        started_at: new Date(place.clock.now() - ago * day_ms).toISOString(),
      })
    const byDay = async (of: Place['observer'], days: number) =>
      (await of.system.statsByDay({ query: { days } })).body.days
    const last = await byDay(place.observer, 3)
    expect(last).toMatchObject([
      { day: dayOf(2), sessions: 2, devices: 1, bytes: 4_321 },
      { day: dayOf(1), sessions: 0, devices: 2, bytes: 8_642 },
      { day: dayOf(0), devices: 0, bytes: 0 },
    ])
    expect(last.at(-1)?.sessions).toBeGreaterThan(0)
    expect(await byDay(place.stranger, 2)).toEqual([
      { day: dayOf(1), sessions: 0, devices: 0, bytes: 0 },
      { day: dayOf(0), sessions: 0, devices: 0, bytes: 0 },
    ])
    expect((await place.observer.system.statsByDay({})).body.days).toHaveLength(14)
    // All of a month is read for it, so it is counted once a minute, however often people ask.
    await stores.of(sample.tenant).sessions.insert({
      ...row,
      uid: 'f'.repeat(64),
      active: 0,
      started_at: new Date(place.clock.now() - 2 * day_ms).toISOString(),
    })
    expect((await byDay(place.observer, 3))[0]?.sessions).toBe(2)
    place.clock.forward(60_001)
    expect((await byDay(place.observer, 3))[0]?.sessions).toBe(3)
    await expect(byDay(place.observer, 32)).rejects.toMatchObject({ status: 400 })
  })

  test('agree with every list, whatever is done, the moment after it is done', async () => {
    const devices: Enrolled[] = []
    const one = (number: number): Enrolled => devices[number % devices.length]!
    const params = (number: number) => ({ uid: one(number).uid })
    const sessions = place.rooms.stores.of(sample.tenant).sessions
    const steps: Record<string, (number: number) => Promise<unknown>> = {
      enrol: async (number) =>
        devices.push(await place.enrol({ mac: `mac-${number % 4}`, hostname: `tug-${number % 5}` })),
      sign: (number) => place.nobody.devices.auth({ body: one(number).body }),
      accept: (number) => place.operator.devices.accept({ params: params(number) }),
      reject: (number) =>
        place.operator.devices.setStatus({ params: { ...params(number), status: 'reject' } }),
      wait: (number) =>
        place.operator.devices.setStatus({ params: { ...params(number), status: 'pending' } }),
      aside: (number) =>
        place.operator.devices.setStatus({ params: { ...params(number), status: 'unused' } }),
      offline: (number) => place.operator.devices.offline({ params: params(number) }),
      remove: (number) => place.owner.devices.remove({ params: params(number) }),
      tag: (number) =>
        place.operator.devices.setTags({ params: params(number), body: { tags: [`tag-${number % 3}`] } }),
      async open(number) {
        const row = (await sessions.find(sample.session))!
        // The gateway opens sessions on devices that are there.
        await place.observer.devices.get({ params: params(number) })
        return sessions.insert({
          ...row,
          uid: randomBytes(32).toString('hex'),
          device_uid: one(number).uid,
          active: 1,
        })
      },
      close: async () => {
        const live = (await place.observer.sessions.list({ query: { per_page: 100 } })).body.find(
          ({ active, uid }) => active && uid !== sample.session,
        )
        if (live)
          await place.owner.sessions.close({ params: { uid: live.uid }, body: { device: live.device_uid } })
      },
    }
    await steps.enrol!(0)
    await fc.assert(
      fc.asyncProperty(
        fc.array(fc.tuple(fc.constantFrom(...Object.keys(steps)), fc.nat({ max: 20 })), {
          minLength: 1,
          maxLength: 8,
        }),
        async (plan) => {
          // A step that is refused (a name in use, a device that is gone) is one that changes nothing.
          for (const [name, number] of plan)
            await steps[name]!(number).catch((error: unknown) =>
              expect([404, 409]).toContain((error as { status: number }).status),
            )
          await agree(place.observer, sample.tenant)
        },
      ),
      { numRuns: times(8, 25), endOnFailure: true },
    )
  }, 120_000)

  test('count a device as online at its sign and no longer when it has been silent for two minutes', async () => {
    await using own = await startPlace(await options())
    const device = await own.accepted('tug')
    await own.operator.devices.offline({ params: { uid: device.uid } })
    expect((await own.observer.system.stats()).body.online_devices).toBe(0)
    await own.nobody.devices.auth({ body: device.body })
    expect((await own.observer.system.stats()).body.online_devices).toBe(1)
    // It is connected today, though its bytes are not counted yet.
    const [today] = (await own.observer.system.statsByDay({ query: { days: 1 } })).body.days
    expect(today).toMatchObject({ devices: 1, bytes: 0 })
    own.clock.forward(120_000)
    await eventually(async () => expect((await own.observer.system.stats()).body.online_devices).toBe(0))
    await agree(own.observer, sample.tenant)
  })

  test('are for members', async () => {
    expect((await place.key.system.stats()).status).toBe(200)
    await expect(place.device.system.stats()).rejects.toMatchObject(refused(403))
    await expect(place.nobody.system.stats()).rejects.toMatchObject(refused(401))
  })
})
