// How quickly the console is there, in a real browser: what is fetched, when something is drawn, when the
// page can be used, and how much of that the scripts take. Against a bare page of the same server, which is
// what the browser and the network cost by themselves. Each load is that of a new visitor, with nothing kept.
//   npm run bench -- console rounds=5
import { chromium, type Browser } from 'playwright-core'
import { mkdtempSync, rmSync } from 'node:fs'
import os from 'node:os'
import path from 'node:path'
import { compare, inTurns, line, median, single, table, type Row } from './kit.ts'
import { startHawser } from './programs.ts'

interface Load {
  /** Until the heading of the page is there. */
  readonly usable_ms: number
  readonly drawn_ms: number
  readonly script_ms: number
  readonly sent_kb: number
  readonly requests: number
}

export default async function consoleBench(...words: string[]): Promise<void> {
  const rounds = Number(words.find((word) => word.startsWith('rounds='))?.slice(7)) || 7
  const folder = mkdtempSync(path.join(os.tmpdir(), 'hawser-bench-'))
  process.once('exit', () => rmSync(folder, { recursive: true, force: true }))
  await using server = await startHawser(folder)
  const browser = await chromium.launch({
    executablePath: '/usr/bin/chromium',
    args: ['--no-sandbox', '--disable-gpu'],
  })
  try {
    const url = `http://127.0.0.1:${server.port}`
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
    const rows: Row[] = [
      line('usable, against a document without scripts', 'ms', compare(figures.ours, figures.bare)),
      single('first contentful paint', 'ms', of('drawn_ms')),
      single('time in scripts', 'ms', of('script_ms')),
      single('sent over the network', 'KB', of('sent_kb')),
      single('requests', '', of('requests')),
    ]
    table(rows)
  } finally {
    await browser.close()
  }
}

async function load(browser: Browser, url: string, sign: string): Promise<Load> {
  const context = await browser.newContext()
  try {
    const page = await context.newPage()
    const session = await context.newCDPSession(page)
    await session.send('Network.enable')
    await session.send('Performance.enable')
    let bytes = 0
    let requests = 0
    session.on('Network.loadingFinished', ({ encodedDataLength }) => void (bytes += encodedDataLength))
    session.on('Network.requestWillBeSent', () => void (requests += 1))
    const before = performance.now()
    await page.goto(url)
    await page.locator(sign).first().waitFor()
    const usable_ms = performance.now() - before
    const drawn_ms = await page.evaluate<number>(
      `performance.getEntriesByName('first-contentful-paint')[0]?.startTime ?? 0`,
    )
    const { metrics } = await session.send('Performance.getMetrics')
    const script_s = metrics.find(({ name }) => name === 'ScriptDuration')?.value ?? 0
    return { usable_ms, drawn_ms, script_ms: script_s * 1000, sent_kb: bytes / 1000, requests }
  } finally {
    await context.close()
  }
}
