// `npm run screens`: twelve pages of the console, in light, dark and on a phone, as one picture
// (docs/console.jpg), and the pictures of the README (docs/pictures).
// A server of its own is filled with a fleet that is made up, and ends with the command.
import { chmodSync, mkdirSync, mkdtempSync, rmSync, writeFileSync } from 'node:fs'
import os from 'node:os'
import path from 'node:path'
import type { Browser, Page } from 'playwright-core'
import { sample } from '@hawser/contract/examples'
import { makeNamed } from '../agent/test/person.ts'
import { ensureConsole } from '../packages/console.ts'
import { theServer, type AuditRecord } from '../server/src/domain/audit/audit.ts'
import { startAgent } from '../tests/harness/agent.ts'
import { openBrowser } from '../tests/harness/browser.ts'
import { startService, type Service } from '../tests/harness/service.ts'
import { buildWorld } from '../tests/harness/world.ts'

const devices = 180
const uidOf = (n: number): string => n.toString(16).padStart(8, '0').padStart(64, 'a')

const pages = [
  '/login',
  '/',
  '/devices',
  '/devices?map=true',
  `/devices/${uidOf(6)}`,
  '/sessions?past=true',
  '/add-device',
  '/public-keys',
  '/firewall',
  '/settings',
  '/audit',
  '/profile',
] as const

const modes = [
  { name: 'light', colorScheme: 'light', width: 1280, height: 900 },
  { name: 'dark', colorScheme: 'dark', width: 1280, height: 900 },
  { name: 'phone', colorScheme: 'light', width: 390, height: 900 },
] as const

/** How much smaller a page is on the sheet. */
const scale = 0.32

const hour_ms = 3_600_000

async function fill(service: Service): Promise<string> {
  const world = await buildWorld(service)
  const here = service.rooms.stores.of(sample.tenant)
  const at = (ago_ms: number): string => new Date(service.clock.now() - ago_ms).toISOString()
  const kinds = ['pump', 'crane', 'gate', 'buoy', 'camera', 'meter']
  const systems = ['Debian GNU/Linux 12 (bookworm)', 'Ubuntu 24.04.1 LTS', 'Raspbian GNU/Linux 11 (bullseye)']
  const tags = ['north', 'south', 'pier', 'lab']
  for (let n = 0; n < devices; n += 1) {
    const isOnline = n % 5 !== 2
    // Somewhat ahead, so that they are still online when the last picture is taken.
    const seen = at(isOnline ? -hour_ms : (n % 90) * 5 * hour_ms)
    await here.devices.insert({
      uid: uidOf(n),
      name: `${kinds[n % kinds.length]}-${String(n).padStart(3, '0')}`,
      mac: `02:00:5e:00:53:${(n & 255).toString(16).padStart(2, '0')}`,
      public_key: sample.publicKeyPem,
      info_id: 'debian',
      info_pretty_name: systems[(n + (n >> 2)) % systems.length] ?? '',
      info_version: n % 7 === 0 ? 'v0.16.4' : '0.1.0',
      info_arch: n % 2 === 0 ? 'arm64' : 'amd64',
      info_platform: 'native',
      status: n % 45 === 7 ? 'pending' : 'accepted',
      status_update_at: seen,
      created_at: at((40 + (n % 60)) * 24 * hour_ms),
      remote_addr: `198.51.100.${n}`,
      position: '{"latitude":0,"longitude":0}',
      public_url: 0,
      public_url_address: '',
      tags: JSON.stringify([tags[n % tags.length]]),
      last_seen: seen,
      online: isOnline ? 1 : 0,
    })
  }
  const first = await here.sessions.find(sample.session)
  if (!first) throw new Error('the world has no session')
  const { tenant_id: _, ...session } = first
  for (let n = 0; n < 60; n += 1)
    await here.sessions.insert({
      ...session,
      uid: n.toString(16).padStart(8, '0').padStart(64, 'e'),
      device_uid: n % 6 === 0 ? shown : uidOf(n * 2 + 1),
      username: ['root', 'pi', 'deploy'][n % 3] ?? 'root',
      person_kind: 'user',
      person_id: sample.owner.id,
      person_name: ['olga', 'oskar', 'ada'][n % 3] ?? 'olga',
      ip_address: `203.0.113.${n + 10}`,
      started_at: at(n * 5 * hour_ms + 600_000),
      last_seen: at(n * 5 * hour_ms),
      active: 0,
      authenticated: 1,
      recorded: n % 2 === 0 ? 0 : 1,
    })
  await remember(service)
  const { rooms } = service
  // Two weeks of all the others: on each day some were not connected.
  for (let day = 0; day < 14; day += 1)
    await rooms.stores.trafficSums.add(
      Array.from({ length: devices }, (_, n) => n)
        .filter((n) => uidOf(n) !== shown && (n * 7 + day * 5) % 12 > (day * 3) % 5)
        .map((n) => ({
          uid: uidOf(n),
          day: at(day * 24 * hour_ms).slice(0, 10),
          idle_received: 90_000,
          idle_sent: 120_000,
          session_received: 0,
          session_sent: 30_000 * ((n + day * day) % 11),
        })),
    )
  const person = (name: string) => ({
    ...theServer,
    actor: 'user' as const,
    id: name,
    name,
    source: '203.0.113.7',
  })
  const changes: readonly (readonly [name: string, record: AuditRecord])[] = [
    ['ada', { action: 'device.accepted', target: { kind: 'device', id: uidOf(9), name: 'buoy-009' } }],
    ['oskar', { action: 'session.opened', target: { kind: 'device', id: shown, name: 'pump-006' } }],
    [
      'ada',
      {
        action: 'firewall.rule.updated',
        target: { kind: 'firewall rule', id: 'd2f1', name: 'office only' },
        before: { active: false, source_ip: '.*' },
        after: { active: true, source_ip: '^203\\.0\\.113\\.' },
      },
    ],
    [
      'olga',
      { action: 'public-key.created', target: { kind: 'public key', id: 'a1b2', name: 'olga, laptop' } },
    ],
    ['oskar', { action: 'device.tags.updated', target: { kind: 'device', id: uidOf(12), name: 'pump-012' } }],
    ['oskar', { action: 'recording.played', target: { kind: 'session', id: 'e'.repeat(12), name: '' } }],
    ['ada', { action: 'member.updated', target: { kind: 'member', id: 'vera', name: 'vera' } }],
  ]
  for (const [name, record] of changes)
    await rooms.audit.event({ ...person(name), tenant_id: sample.tenant }, record)
  return world.token('owner')
}

/** The device whose page is shown. */
const shown = uidOf(6)

/** A week of one device: when it was connected, what it sent, and what people wrote down about it. */
async function remember(service: Service): Promise<void> {
  const { stores } = service.rooms
  const at = (hours: number): string => new Date(service.clock.now() - hours * hour_ms).toISOString()
  const up = (hours: number) => ({
    uid: shown,
    at: at(hours),
    kind: 'up',
    detail: JSON.stringify({ source: '198.51.100.6', version: '0.1.0' }),
  })
  const lost = (hours: number) => ({
    uid: shown,
    at: at(hours),
    kind: 'down',
    detail: JSON.stringify({ reason: 'lost', lasted_s: 36 * 3600 }),
  })
  await stores.deviceEvents.add(
    [
      up(167),
      lost(131),
      up(128),
      lost(86),
      up(85),
      lost(40),
      up(31),
      { ...up(2), kind: 'round-trip', detail: '{"ms":48}' },
    ],
    { own: [], own_most: 100, own_eachEndOfHour: 100, kind_most: 100 },
  )
  await stores.trafficSums.add(
    Array.from({ length: 30 }, (_, day) => ({
      uid: shown,
      day: at(day * 24).slice(0, 10),
      idle_received: 90_000,
      idle_sent: 120_000,
      session_received: 40_000 * ((day * 7) % 11),
      session_sent: 260_000 * ((day * 7) % 11),
    })),
  )
  await stores.of(sample.tenant).deviceNotes.save({
    uid: shown,
    text: 'Pump house **north pier**, second cabinet from the left.\n\n- key in the harbour office\n- the valve is *not* automatic in winter',
    version: 3,
    changed_at: at(300),
    changed_by: 'olga',
  })
}

async function shoot(page: Page, address: string): Promise<string> {
  await page.goto(address)
  await page.getByRole('heading', { level: 1 }).waitFor()
  await page.waitForLoadState('networkidle')
  return (await page.screenshot({ type: 'jpeg', quality: 80 })).toString('base64')
}

async function shots(browser: Browser, url: string, token: string): Promise<string[][]> {
  const columns: string[][] = []
  for (const { colorScheme, width, height } of modes) {
    const context = await browser.newContext({
      baseURL: url,
      colorScheme,
      reducedMotion: 'reduce',
      viewport: { width, height },
    })
    const page = await context.newPage()
    const column: string[] = []
    for (const address of pages) {
      if (address === pages[1]) await page.evaluate(`sessionStorage.setItem('hawser.token', '${token}')`)
      column.push(await shoot(page, address))
    }
    columns.push(column)
    await context.close()
  }
  return columns
}

/** Two pages beside each other, each in three modes. */
async function sheet(browser: Browser, columns: readonly string[][], file: string): Promise<void> {
  const cells = pages
    .map((address, row) => {
      const images = modes.map(
        ({ width }, column) =>
          `<img width="${Math.round(width * scale)}" src="data:image/jpeg;base64,${columns[column]?.[row]}">`,
      )
      return `<figure><figcaption>${address.slice(0, 24)}</figcaption>${images.join('')}</figure>`
    })
    .join('')
  const page = await browser.newPage({ viewport: { width: 2020, height: 800 } })
  await page.setContent(`<style>
    body { display: grid; grid-template-columns: 1fr 1fr; gap: 16px; margin: 16px; background: #c9d3d8; font: 14px sans-serif }
    figure { display: flex; flex-wrap: wrap; gap: 8px; margin: 0 } figcaption { width: 100% }
  </style>${cells}`)
  await page.screenshot({ path: file, type: 'jpeg', quality: 72, fullPage: true })
}

const pictures = path.join(import.meta.dirname, 'pictures')

async function fleetPictures(browser: Browser, url: string, token: string): Promise<void> {
  mkdirSync(pictures, { recursive: true })
  for (const colorScheme of ['light', 'dark'] as const) {
    const page = await browser.newPage({
      baseURL: url,
      colorScheme,
      viewport: { width: 1280, height: 720 },
    })
    await page.goto('/login')
    await page.evaluate(`sessionStorage.setItem('hawser.token', '${token}')`)
    await page.goto('/devices')
    await page.getByRole('table', { name: 'Devices' }).waitFor()
    await page.waitForLoadState('networkidle')
    await page.screenshot({ path: path.join(pictures, `devices-${colorScheme}.png`) })
    await page.close()
  }
}

const colour = (code: number, text: string): string => `\u001B[${code}m${text}\u001B[0m`
const pumpLog = Array.from({ length: 40 }, (_, n) => {
  const valve = n % 9 === 5 ? colour(33, 'half open') : colour(32, 'open')
  return `10:${20 + n}  inlet ${(2.1 + Math.sin(n / 5) * 0.3).toFixed(2)} bar  valve ${valve}\n`
})
const limits = { inlet: { low: 1.6, high: 2.6 }, valve: 'automatic' }

/** A real terminal on a real agent, in two panes; what the files on the device say is made up. */
async function terminalPicture(browser: Browser, service: Service, token: string): Promise<void> {
  await using person = process.getuid?.() === 0 ? await makeNamed('deploy') : undefined
  const user = person ?? { name: os.userInfo().username, password: 'pilot', home: os.homedir() }
  await using agent = await startAgent(service, { hostname: 'pump-017' })
  const work = mkdtempSync(path.join(os.tmpdir(), 'pump-'))
  const page = await browser.newPage({
    baseURL: service.url,
    colorScheme: 'dark',
    viewport: { width: 1280, height: 640 },
  })
  const front = page.locator('.pane').last().locator('.xterm-rows')
  /** Without a trace of the machine on which the picture is made. */
  const begin = async (): Promise<void> => {
    await front.getByText('$').first().waitFor()
    await page.keyboard.type(` PS1='\\[\\e[36m\\]\\u@pump-017\\[\\e[0m\\]:\\w$ ' HOME=${work}; cd; clear\n`)
    await front.getByText(`${user.name}@pump-017:~$`).first().waitFor()
  }
  try {
    chmodSync(work, 0o755)
    writeFileSync(path.join(work, 'pump.log'), pumpLog.join(''))
    writeFileSync(path.join(work, 'limits.json'), `${JSON.stringify(limits, undefined, 2)}\n`)
    await page.goto('/login')
    await page.evaluate(`sessionStorage.setItem('hawser.token', '${token}')`)
    await page.goto(`/devices/${agent.uid}/terminal`)
    await page.getByLabel('User on the device').fill(user.name)
    await page.getByLabel('Password', { exact: true }).fill(user.password)
    await page.getByRole('button', { name: 'Open the terminal' }).click()
    await begin()
    await page.keyboard.type('cat limits.json\n')
    await front.getByText('automatic').waitFor()
    await page.getByRole('button', { name: 'Split' }).click()
    await page.getByRole('menuitem', { name: 'To the right' }).click()
    await begin()
    await page.keyboard.type('tail -n 15 pump.log\n')
    await front.getByText('10:59').waitFor()
    await page.screenshot({ path: path.join(pictures, 'terminal.png') })
  } finally {
    await page.close()
    rmSync(work, { recursive: true, force: true })
  }
}

const folder = mkdtempSync(path.join(os.tmpdir(), 'hawser-screens-'))
try {
  await ensureConsole()
  await using service = await startService({ folder })
  const token = await fill(service)
  const browser = await openBrowser()
  try {
    const file = path.join(import.meta.dirname, 'console.jpg')
    await sheet(browser, await shots(browser, service.url, token), file)
    await fleetPictures(browser, service.url, token)
    await terminalPicture(browser, service, token)
    console.log(`${file}\n${pictures}`)
  } finally {
    await browser.close()
  }
} finally {
  rmSync(folder, { recursive: true, force: true })
}
