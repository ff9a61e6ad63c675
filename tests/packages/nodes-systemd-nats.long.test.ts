// The unit of deploy/systemd for several nodes under a real systemd, as the guide about many cores installs
// it: two nodes share one port, and are restarted one after the other while the port answers.
import { writeFileSync } from 'node:fs'
import path from 'node:path'
import { afterAll, beforeAll, describe, expect, test, vi } from 'vitest'
import { isRoot } from '../../agent/test/device.ts'
import { onlyAsRoot } from '../../agent/test/modes.ts'
import { root } from '../../packages/bundle.ts'
import { freePort } from '../../ssh/test/programs.ts'
import { eventually } from '../clients/way.ts'
import { blocksOf } from '../guides/blocks.ts'
import { startNats } from '../harness/nats.ts'
import { freshDatabase } from '../harness/postgres.ts'
import { startSystemd, type SystemdMachine } from '../harness/systemd.ts'

vi.setConfig({ testTimeout: 300_000, hookTimeout: 300_000 })

/** The block of the guide that begins with this text. */
function block(beginning: string): string {
  const found = blocksOf('docs/guides/many-cores.md').find(({ text }) => text.startsWith(beginning))
  if (!found) throw new Error(`the guide has no block that begins with ${beginning}`)
  return found.text
}

describe.runIf(isRoot)(`the unit for several nodes (${onlyAsRoot})`, () => {
  const opened = new AsyncDisposableStack()
  let [machine, url]: [SystemdMachine, string] = [] as never
  async function sh(line: string): Promise<string> {
    const { status, printed } = await machine.run('sh', '-ec', `cd /opt/hawser\n${line}`)
    expect(status, `${line}\n${printed}`).toBe(0)
    return printed
  }
  const pidOf = async (node: number): Promise<string> =>
    (await sh(`systemctl show hawser@${node} --value --property=MainPID`)).trim()
  /** The ports are those of the unit: nothing else on this machine has them. */
  const isReady = (node: number): Promise<string> =>
    sh(`curl -sSf http://127.0.0.1:910${node}/metrics | grep '^hawser_ready 1'`)

  beforeAll(async () => {
    const nats = opened.use(await startNats())
    machine = opened.use(await startSystemd(root))
    const http = await freePort()
    url = `http://127.0.0.1:${http}`
    const settings = {
      HAWSER_REUSE_PORT: 'on',
      HAWSER_DATABASE: await freshDatabase(),
      HAWSER_NATS: nats.url,
      HAWSER_SECRET: '6f'.repeat(32),
      HAWSER_HTTP: `127.0.0.1:${http}`,
      HAWSER_SSH: `127.0.0.1:${await freePort()}`,
      HAWSER_DRAIN: '0',
    }
    const lines = Object.entries(settings).map(([name, value]) => `${name}=${value}\n`)
    writeFileSync(path.join(machine.root, 'etc/hawser.env'), lines.join(''), { mode: 0o600 })
    await sh('useradd --system --home-dir /var/lib/hawser hawser')
    await sh('npm run build')
  })
  afterAll(() => opened.disposeAsync())

  test('two nodes start from it, with the same ports and a user of their own', async () => {
    await sh(block('cp deploy/systemd/hawser@.service'))
    for (const node of [1, 2]) await eventually(() => isReady(node))
    expect((await fetch(`${url}/healthcheck`)).status).toBe(200)
    const pids = [await pidOf(1), await pidOf(2)]
    expect(new Set(pids).size).toBe(2)
    for (const pid of pids) expect(await sh(`stat --format=%U /proc/${pid}`)).toBe('hawser\n')
    expect(await sh('stat --format="%a %F" /var/lib/hawser/1/node.sock')).toBe('600 socket\n')
  })

  test('they are restarted one after the other, and the port answers all the time', async () => {
    const before = [await pidOf(1), await pidOf(2)]
    const restarted = new AbortController()
    let answered = 0
    const asking = (async () => {
      while (!restarted.signal.aborted) {
        const { status } = await machine.run(
          'curl',
          '-sS',
          '--retry',
          '3',
          '--retry-all-errors',
          `${url}/info`,
        )
        expect(status).toBe(0)
        answered += 1
      }
    })()
    await sh(block('for node in 1 2'))
    restarted.abort()
    await asking
    expect(answered).toBeGreaterThan(0)
    for (const node of [1, 2]) expect(await pidOf(node)).not.toBe(before[node - 1])
  })
})
