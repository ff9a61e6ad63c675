// The service of deploy/systemd under a real systemd, as the guide for self-hosting installs it: a user of
// its own, and a clone that the service can only read. What `npm run build` made is served. A console of
// other sources never is: after an upgrade without a build the service stops and says what to do.
import { readFileSync, rmSync, writeFileSync } from 'node:fs'
import path from 'node:path'
import { afterAll, beforeAll, describe, expect, test, vi } from 'vitest'
import { isRoot } from '../../agent/test/device.ts'
import { onlyAsRoot } from '../../agent/test/modes.ts'
import { root } from '../../packages/bundle.ts'
import { freePort } from '../../ssh/test/programs.ts'
import { eventually } from '../clients/way.ts'
import { startSystemd, type SystemdMachine } from '../harness/systemd.ts'

vi.setConfig({ testTimeout: 180_000 })

describe.runIf(isRoot)(`the service (${onlyAsRoot})`, () => {
  let [machine, url]: [SystemdMachine, string] = [] as never
  /** Runs a line of the guide in the clone; it must succeed. */
  async function sh(line: string): Promise<string> {
    const { status, printed } = await machine.run('sh', '-c', `cd /opt/hawser && ${line}`)
    expect(status, `${line}\n${printed}`).toBe(0)
    return printed
  }
  const journal = (): Promise<string> => sh('journalctl -u hawser --no-pager --output=cat')
  const state = async (name: string): Promise<string> =>
    (await sh(`systemctl show hawser --value --property=${name}`)).trim()
  const clone = (...names: string[]): string => path.join(machine.root, 'opt/hawser', ...names)

  beforeAll(async () => {
    machine = await startSystemd(root)
    const [http, ssh] = [await freePort(), await freePort()]
    url = `http://127.0.0.1:${http}`
    const settings = `HAWSER_HTTP=127.0.0.1:${http}\nHAWSER_SSH=127.0.0.1:${ssh}\nHAWSER_URL=${url}\nHAWSER_DRAIN=0\n`
    writeFileSync(path.join(machine.root, 'etc/hawser.env'), settings)
    // As a fresh clone is.
    rmSync(clone('dist'), { recursive: true, force: true })
    await sh('useradd --system --home-dir /var/lib/hawser hawser')
    await sh('cp deploy/systemd/hawser.service /etc/systemd/system/ && systemctl daemon-reload')
  }, 60_000)
  afterAll(() => machine[Symbol.asyncDispose]())

  test('systemd finds nothing wrong with the unit', async () => {
    expect(await sh('systemd-analyze verify hawser.service')).toBe('')
  })

  test('without `npm run build` it stops, says what to do, and is not restarted', async () => {
    await sh('systemctl enable --now hawser')
    await eventually(async () => expect(await state('ActiveState')).toBe('failed'))
    expect(await journal()).toContain(
      'The web console of this version has not been built: run `npm run build` in /opt/hawser, then start again.',
    )
    expect(await state('NRestarts')).toBe('0')
  })

  test('after `npm run build` the set-up link leads to the console', async () => {
    await sh('npm run build && systemctl start hawser')
    const link = await eventually(async () => {
      const found = /http:\S+\/setup\?code=\S+/.exec(await journal())?.[0]
      expect(found).toBeDefined()
      return found ?? ''
    })
    const page = await fetch(link)
    expect([page.status, page.headers.get('content-type')]).toEqual([200, 'text/html; charset=utf-8'])
    const assets = [...(await page.text()).matchAll(/(?:src|href)="(\/assets\/[^"]+)"/g)].map(
      ([, name]) => name ?? '',
    )
    expect(assets.length).toBeGreaterThan(1)
    for (const asset of assets) expect((await fetch(url + asset)).status, asset).toBe(200)
    expect((await fetch(`${url}/agent/hawser-agent-linux-arm64.tar.gz`, { method: 'HEAD' })).status).toBe(200)
  })

  test('it is one process of its own user, in a clone that it cannot write to, and complains of nothing', async () => {
    const pid = await state('MainPID')
    expect(await sh('cat /sys/fs/cgroup/system.slice/hawser.service/cgroup.procs')).toBe(`${pid}\n`)
    expect(await sh(`stat --format=%U /proc/${pid}`)).toBe('hawser\n')
    expect(await sh(`readlink /proc/${pid}/exe`)).toContain('/node')
    const touched = await machine.run('nsenter', '--target', pid, '--mount', 'touch', '/opt/hawser/new')
    expect(touched.printed).toContain('Read-only file system')
    const lines = (await journal()).split('\n').filter((line) => line.startsWith('{'))
    const levels = lines.map((line) => (JSON.parse(line) as { level: string }).level)
    expect([...new Set(levels)]).toEqual(['info'])
    expect(await journal()).not.toContain('EROFS')
  })

  test('after an upgrade the old console is not served: it stops until the new one is built', async () => {
    const page = clone('console/index.html')
    writeFileSync(page, readFileSync(page, 'utf8').replace(/<title>.*<\/title>/, '<title>Newer</title>'))
    await sh('systemctl restart hawser')
    await eventually(async () => expect(await state('ActiveState')).toBe('failed'))
    await expect(fetch(url)).rejects.toThrow()
    // `npm start` would build it, but not where it cannot write.
    const readOnly = 'mount --bind /opt/hawser /mnt && mount -o remount,bind,ro /mnt && cd /mnt && npm start'
    const started = await machine.run(
      'unshare',
      '--mount',
      'env',
      'HAWSER_DATA=/tmp/data',
      'sh',
      '-c',
      readOnly,
    )
    expect(started.status).toBe(1)
    expect(started.printed).toMatch(/The web console cannot be built: .*EROFS/)
    expect(started.printed).toContain('Run `npm run build` in /mnt as a user who may write there')
    await sh('npm run build && systemctl restart hawser')
    const served = await eventually(async () => (await fetch(url)).text())
    expect(served).toContain('<title>Newer</title>')
  })

  test('packages that are older than package-lock.json stop it as well', async () => {
    const file = clone('package-lock.json')
    writeFileSync(file, `${readFileSync(file, 'utf8')}\n`)
    await sh('systemctl restart hawser')
    await eventually(async () => expect(await state('ActiveState')).toBe('failed'))
    expect(await journal()).toContain('the packages in /opt/hawser are old: run `npm ci` and `npm run build`')
  })
})
