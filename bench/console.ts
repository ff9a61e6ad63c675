// How quickly the console is there, in a real browser: what is fetched, when something is drawn, when the
// page can be used, and how much of that the scripts take. Each load is that of a new visitor,
// with nothing kept.
//   npm run bench -- console rounds=5        how often each page is loaded; 5 unless stated
//   … devices=300                            how many devices the table has
//   … terminal lines=1000000                 only a terminal that prints this many lines: the longest task of its page
// The sign-in page is compared with a document of the same server without scripts, which is what the browser
// and the network cost by themselves. The table of devices is loaded as on a phone far away: slow 4G (1.6
// Mbit/s, 150 ms) and a processor of a quarter of the speed; there the largest paint and the slowest answer
// to a key or a press are measured.
import { chromium, type Browser, type BrowserContext, type CDPSession, type Page } from 'playwright-core'
import { mkdtempSync, rmSync } from 'node:fs'
import os from 'node:os'
import path from 'node:path'
import { client } from '@hawser/contract/client'
import { terminalRows } from './console-terminal.ts'
import { below, compare, inTurns, line, median, single, table, type Row } from './kit.ts'
import { startHawser, type Program } from './programs.ts'

interface Load {
  /** Until the heading of the page, or its first row, is shown. */
  readonly usable_ms: number
  readonly drawn_ms: number
  readonly largest_ms: number
  readonly script_ms: number
  readonly sent_kb: number
  readonly requests: number
  /** The slowest reaction to the visitor; 0: they did nothing. */
  readonly answer_ms: number
}

interface Visitor {
  readonly token?: string
  /** As on a slow phone connection. */
  readonly slow?: boolean
  readonly act?: (page: Page) => Promise<void>
}

export default async function consoleBench(...words: string[]): Promise<void> {
  const number = (name: string, usual: number): number =>
    Number(words.find((word) => word.startsWith(`${name}=`))?.slice(name.length + 1)) || usual
  const rounds = number('rounds', 5)
  const folder = mkdtempSync(path.join(os.tmpdir(), 'hawser-bench-'))
  process.once('exit', () => rmSync(folder, { recursive: true, force: true }))
  const browser = await chromium.launch({
    executablePath: '/usr/bin/chromium',
    args: ['--no-sandbox', '--disable-gpu'],
  })
  try {
    if (words.includes('terminal'))
      return table(await terminalRows(browser, folder, number('lines', 1_000_000)))
    await using server = await startHawser(folder)
    const url = `http://127.0.0.1:${server.port}`
    const rows = await signInPage(browser, url, rounds)
    const token = await fleet(server, url, number('devices', 300))
    table([...rows, ...(await devicesPage(browser, url, token, rounds))])
  } finally {
    await browser.close()
  }
}

async function signInPage(browser: Browser, url: string, rounds: number): Promise<Row[]> {
  const loads: Load[] = []
  const sides = {
    ours: async (): Promise<number> => {
      const one = await load(browser, `${url}/login`, 'h1')
      loads.push(one)
      return one.usable_ms
    },
    bare: async (): Promise<number> => (await load(browser, `${url}/openapi.json`, 'body')).usable_ms,
  }
  await inTurns(sides, 2)
  loads.length = 0
  const figures = await inTurns(sides, rounds)
  const of = (name: keyof Load): number => median(loads.map((one) => one[name]))
  return [
    line('sign-in: usable, against a document without scripts', 'ms', compare(figures.ours, figures.bare)),
    single('sign-in: first contentful paint', 'ms', of('drawn_ms')),
    single('sign-in: time in scripts', 'ms', of('script_ms')),
    single('sign-in: sent over the network', 'KB', of('sent_kb'), below(90, of('sent_kb'), 'KB')),
    single('sign-in: requests', '', of('requests')),
  ]
}

async function devicesPage(browser: Browser, url: string, token: string, rounds: number): Promise<Row[]> {
  const work = async (page: Page): Promise<void> => {
    for (const key of ['j', 'j', 'x', 'j', 'x']) await page.keyboard.press(key)
    await page.getByRole('button', { name: 'Name', exact: true }).click()
    await page.mouse.wheel(0, 3000)
  }
  const near: Load[] = []
  const far: Load[] = []
  for (let round = 0; round < rounds; round += 1) {
    near.push(await load(browser, `${url}/devices`, 'tbody strong', { token }))
    far.push(await load(browser, `${url}/devices`, 'tbody strong', { token, slow: true, act: work }))
  }
  const of = (loads: readonly Load[], name: keyof Load): number => median(loads.map((one) => one[name]))
  return [
    single('devices: usable', 'ms', of(near, 'usable_ms')),
    single('devices: sent over the network', 'KB', of(near, 'sent_kb')),
    single('devices: requests', '', of(near, 'requests')),
    single('devices, far away: usable', 'ms', of(far, 'usable_ms')),
    single(
      'devices, far away: largest paint',
      'ms',
      of(far, 'largest_ms'),
      below(3_500, of(far, 'largest_ms'), 'ms'),
    ),
    single('devices, far away: slowest answer to a key or a press', 'ms', of(far, 'answer_ms')),
  ]
}

/** Sets the server up with devices; returns the token of their owner. */
async function fleet(server: Program, url: string, count: number): Promise<string> {
  const code = await server.printed(/code=([0-9a-f-]+)/)
  const { body: owner } = await client({ url }).system.setup({
    body: {
      code,
      name: 'Sam',
      username: 'sam',
      email: 'sam@example.com',
      password: 'lighthouse',
      namespace: 'bench',
    },
  })
  const api = client({ url, token: owner.token })
  for (let n = 0; n < count; n += 1) {
    const mac = `02:00:00:00:${(n >> 8).toString(16).padStart(2, '0')}:${(n & 255).toString(16).padStart(2, '0')}`
    const { body } = await api.devices.auth({
      body: {
        info: {
          id: 'debian',
          pretty_name: 'Debian GNU/Linux 12 (bookworm)',
          version: 'v0.16.4',
          arch: 'arm64',
        },
        hostname: `pump-${String(n).padStart(5, '0')}`,
        identity: { mac },
        public_key: `key of pump ${n}`,
        tenant_id: owner.tenant,
      },
    })
    await api.devices.accept({ params: { uid: body.uid } })
  }
  return owner.token
}

/** Lighthouse's slow 4G. */
async function farAway(session: CDPSession): Promise<void> {
  await session.send('Network.emulateNetworkConditions', {
    offline: false,
    latency: 150,
    downloadThroughput: (1.6 * 1024 * 1024) / 8,
    uploadThroughput: (750 * 1024) / 8,
  })
  await session.send('Emulation.setCPUThrottlingRate', { rate: 4 })
}

/** The page itself notes its largest paint and its slow reactions. */
const watch = `
  window.largest = 0
  window.slowest = 0
  new PerformanceObserver((list) => {
    for (const entry of list.getEntries()) window.largest = entry.startTime
  }).observe({ type: 'largest-contentful-paint', buffered: true })
  new PerformanceObserver((list) => {
    for (const entry of list.getEntries()) window.slowest = Math.max(window.slowest, entry.duration)
  }).observe({ type: 'event', durationThreshold: 16, buffered: true })
`

async function load(browser: Browser, url: string, sign: string, visitor: Visitor = {}): Promise<Load> {
  const context = await browser.newContext()
  try {
    if (visitor.token !== undefined)
      await context.addInitScript(`sessionStorage.setItem('hawser.token', '${visitor.token}')`)
    await context.addInitScript(watch)
    return await measured(context, url, sign, visitor)
  } finally {
    await context.close()
  }
}

async function measured(context: BrowserContext, url: string, sign: string, visitor: Visitor): Promise<Load> {
  const page = await context.newPage()
  const session = await context.newCDPSession(page)
  await session.send('Network.enable')
  await session.send('Performance.enable')
  if (visitor.slow) await farAway(session)
  let bytes = 0
  let requests = 0
  session.on('Network.loadingFinished', ({ encodedDataLength }) => void (bytes += encodedDataLength))
  session.on('Network.requestWillBeSent', () => void (requests += 1))
  const before = performance.now()
  await page.goto(url)
  await page.locator(sign).first().waitFor()
  const usable_ms = performance.now() - before
  await page.waitForLoadState('networkidle')
  const [drawn_ms, largest_ms] = await page.evaluate<[number, number]>(
    `[performance.getEntriesByName('first-contentful-paint')[0]?.startTime ?? 0, window.largest]`,
  )
  const sent = { sent_kb: bytes / 1000, requests }
  await visitor.act?.(page)
  const { metrics } = await session.send('Performance.getMetrics')
  const script_s = metrics.find(({ name }) => name === 'ScriptDuration')?.value ?? 0
  const answer_ms = await page.evaluate<number>('window.slowest')
  return { usable_ms, drawn_ms, largest_ms, script_ms: script_s * 1000, answer_ms, ...sent }
}
