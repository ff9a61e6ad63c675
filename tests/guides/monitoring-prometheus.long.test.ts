// Follows the guide about monitoring with a real Prometheus: it loads the scrape configuration and the rules
// as they are in deploy/, scrapes a real server, evaluates every rule without an error, and the alert for a
// server that is down fires when the server is stopped. Every expression of the dashboard gives something.
import { execFileSync, spawn } from 'node:child_process'
import { once } from 'node:events'
import { copyFileSync, mkdirSync, readFileSync, writeFileSync } from 'node:fs'
import net, { type AddressInfo } from 'node:net'
import path from 'node:path'
import { expect, test, vi } from 'vitest'
import { setUp, startProgram, temporaryFolder } from '../failures/program.ts'
import { eventually } from '../harness/eventually.ts'

vi.setConfig({ testTimeout: 300_000 })

const deploy = path.join(import.meta.dirname, '../../deploy')
const rules = path.join(deploy, 'prometheus/hawser.rules.yml')
const promtool = (...args: string[]): string => execFileSync('promtool', args, { encoding: 'utf8' })

interface Rule {
  readonly name: string
  readonly query: string
  readonly health: string
  readonly state: string
  readonly lastError?: string
}

async function freePort(): Promise<number> {
  const server = net.createServer()
  await new Promise<void>((resolve) => server.listen(0, '127.0.0.1', resolve))
  const { port } = server.address() as AddressInfo
  await new Promise((resolve) => server.close(resolve))
  return port
}

const alertNames = (): string[] =>
  [...readFileSync(rules, 'utf8').matchAll(/- alert: (\w+)/g)].map(([, name = '']) => name)

test('every alert fires on what it is for, as promtool tries it', () => {
  promtool('check', 'rules', rules)
  promtool('check', 'config', path.join(deploy, 'prometheus/prometheus.yml'))
  const tests = path.join(deploy, 'prometheus/hawser.rules.test.yml')
  promtool('test', 'rules', tests)
  const text = readFileSync(tests, 'utf8')
  for (const name of alertNames())
    expect(text, name).toMatch(new RegExp(`alertname: ${name}\\s+exp_alerts:\\s+- exp_labels`))
})

test('a Prometheus scrapes a server, evaluates every rule, and tells when the server is down', async () => {
  using folder = temporaryFolder()
  const [metrics, web] = [await freePort(), await freePort()]
  const data = path.join(folder.path, 'data')
  mkdirSync(data)
  await using program = await startProgram({ folder: data, env: { HAWSER_METRICS: `127.0.0.1:${metrics}` } })
  const olga = await setUp(program)
  await olga.api.devices.list({ query: {} })

  // As the guide says: the two files beside each other; here with another port and shorter times.
  const home = path.join(folder.path, 'prometheus')
  mkdirSync(home)
  copyFileSync(rules, path.join(home, 'hawser.rules.yml'))
  const config = readFileSync(path.join(deploy, 'prometheus/prometheus.yml'), 'utf8')
    .replace('localhost:9464', `127.0.0.1:${metrics}`)
    .replaceAll('15s', '1s')
  writeFileSync(path.join(home, 'prometheus.yml'), config)
  const prometheus = spawn(
    'prometheus',
    [
      `--config.file=${home}/prometheus.yml`,
      `--storage.tsdb.path=${home}/data`,
      `--web.listen-address=127.0.0.1:${web}`,
      '--log.level=warn',
    ],
    { stdio: 'ignore' },
  )
  const gone = once(prometheus, 'exit')
  try {
    const ask = async <T>(address: string): Promise<T> => {
      const answer = await fetch(`http://127.0.0.1:${web}/api/v1/${address}`)
      const body = (await answer.json()) as { status: string; data: T; error?: string }
      expect(body, address).toMatchObject({ status: 'success' })
      return body.data
    }
    const query = async (expression: string): Promise<unknown[]> =>
      (await ask<{ result: unknown[] }>(`query?query=${encodeURIComponent(expression)}`)).result
    const inTime = <T>(check: () => Promise<T>): Promise<T> => eventually(check, 120_000)

    await inTime(async () => expect(await query('up{job="hawser"} == 1')).toHaveLength(1))
    await inTime(async () => expect(await query('rate(process_cpu_seconds_total[1m])')).toHaveLength(1))

    // Every rule is evaluated, none with an error.
    const loaded = await inTime(async () => {
      const { groups } = await ask<{ groups: { rules: Rule[] }[] }>('rules')
      const all = groups.flatMap((group) => group.rules)
      expect(all.map(({ health }) => health)).toEqual(alertNames().map(() => 'ok'))
      return all
    })
    expect(loaded.map(({ name }) => name)).toEqual(alertNames())
    expect(loaded.filter(({ state }) => state !== 'inactive')).toEqual([])

    // Every metric that a rule or a panel names is there, unless it is only there in a cluster or with TLS.
    const names = new Set(await ask<string[]>('label/__name__/values'))
    const elsewhere = new Set(['hawser_nats_connected', 'hawser_tls_certificate_expiry_timestamp_seconds'])
    const { panels } = JSON.parse(readFileSync(path.join(deploy, 'grafana/hawser.json'), 'utf8')) as {
      panels: { title: string; targets: { expr: string }[] }[]
    }
    const expressions = panels.flatMap(({ title, targets }) =>
      targets.map(({ expr }) => [title, expr] as const),
    )
    expect(expressions.length).toBeGreaterThan(25)
    for (const [title, expression] of [
      ...expressions,
      ...loaded.map((rule) => [rule.name, rule.query] as const),
    ]) {
      const real = expression.replaceAll('$__rate_interval', '1m').replaceAll('$instance', '.*')
      for (const [name] of real.matchAll(/\b(?:hawser|nodejs|process)_\w+/g))
        expect(names.has(name) || elsewhere.has(name), `${title}: ${name}`).toBe(true)
      const found = await query(real)
      // What is shown only above zero may be nothing in a quiet server.
      if (!real.endsWith('> 0') && !loaded.some((rule) => rule.query === expression))
        expect(found.length, `${title}: ${real}`).toBeGreaterThan(0)
    }

    // The server goes, and the alert comes.
    program.child.kill('SIGTERM')
    await program.ended
    await inTime(async () => {
      const { alerts } = await ask<{ alerts: { labels: { alertname: string }; state: string }[] }>('alerts')
      expect(alerts.map(({ labels, state }) => [labels.alertname, state])).toContainEqual([
        'HawserDown',
        'firing',
      ])
    })
  } finally {
    prometheus.kill('SIGTERM')
    await gone
  }
})
