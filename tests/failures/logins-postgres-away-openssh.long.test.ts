// Logins by SSH while PostgreSQL is away: a login waits for it for a few seconds, and whoever is not let in
// reads why, whatever they have to show and whether or not there is such a device.
import { afterAll, beforeAll, expect, test, vi } from 'vitest'
import { sample } from '@hawser/contract/examples'
import { run } from '../../ssh/test/programs.ts'
import { openWay, type How, type Way } from '../clients/way.ts'
import { until } from '../harness/eventually.ts'
import { startLinkTo } from '../harness/link.ts'
import { freshDatabase } from '../harness/postgres.ts'

vi.setConfig({ testTimeout: 60_000, hookTimeout: 120_000 })

const opened = new AsyncDisposableStack()
let link: Awaited<ReturnType<typeof startLinkTo>>
let way: Way

beforeAll(async () => {
  link = opened.use(await startLinkTo(await freshDatabase()))
  way = opened.use(await openWay({}, { database: link.url }))
})
afterAll(() => opened.disposeAsync())

const takeAway = (): void => {
  link.refuse(true)
  link.cut()
}

const sentence = /The service cannot check logins right now; try again in a moment \(reference [0-9a-z-]+\)/i

test('everybody is told that logins cannot be checked', async () => {
  takeAway()
  try {
    const ways: How[] = [{}, { device: 'nobody-has-this' }, way.saying('pilot')]
    const outcomes = await Promise.all(ways.map((how) => way.ssh('true', how)))
    for (const { status, stderr } of outcomes) {
      expect(status).toBe(255)
      expect(stderr).toMatch(sentence)
      expect(stderr).not.toContain('Internal error')
    }
    const joining = await run('ssh', [
      '-N',
      '-R',
      '0:localhost:22',
      ...way.args(),
      `${sample.tenant}@127.0.0.1`,
    ])
    expect(joining.stderr).toContain('The service cannot check logins right now; try again in a moment')
  } finally {
    link.refuse(false)
  }
})

test('a login that comes while the database is away for a moment is let in', async () => {
  expect((await way.ssh('true')).status).toBe(0)
  // However long this machine takes, the login has waited for no time at all.
  using _ = way.service.clock.stop()
  takeAway()
  await using running = way.start('echo here', { flags: ['-v'] })
  await running.until(/(Offering public key)/)
  const before = link.opened
  await until(() => link.opened > before + 1)
  link.refuse(false)
  expect(await running.status).toBe(0)
  expect(running.stdout()).toBe('here\n')
})
