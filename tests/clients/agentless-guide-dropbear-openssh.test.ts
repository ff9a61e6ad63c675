// The lines of docs/guides/without-an-agent.md that connect a device, and the one that install.sh prints on a
// 32-bit machine, run as they stand there: only the names, the key and the ports are those of the test, and the
// server's host key is taken without asking.
import { readFileSync } from 'node:fs'
import path from 'node:path'
import { beforeAll, expect, test } from 'vitest'
import { sample } from '@hawser/contract/examples'
import { run } from '../../ssh/test/programs.ts'
import { opensshMachine, password, sharedHarbour } from './agentless.ts'
import { watch } from './way.ts'

const harbour = sharedHarbour()
const guide = async (): Promise<string> =>
  readFileSync(path.join(import.meta.dirname, '../../docs/guides/without-an-agent.md'), 'utf8')

/** What install.sh prints where there is no agent. `linux32` makes the kernel say that it is a 32-bit one. */
async function printed(): Promise<string> {
  const { url } = harbour.service
  const script = await fetch(`${url}/install.sh?tenant_id=${sample.tenant}&preferred_hostname=pi`)
  return (await run('linux32', ['sh', '-s'], await script.text())).stderr
}

const written: Readonly<Record<string, readonly [RegExp, () => Promise<string>]>> = {
  'by hand, OpenSSH': [/^(ssh -N .+)$/m, guide],
  'by hand, Dropbear': [/^(dbclient -N .+)$/m, guide],
  'a unit of systemd': [/^ExecStart=\/usr\/bin\/(ssh -N (?:.+\\\n)*.+)$/m, guide],
  'a loop': [/^while :; do (dbclient .+); sleep 5; done$/m, guide],
  'a loop on OpenWrt': [/^\(while :; do (ssh .+); sleep 5; done\) &$/m, guide],
  'install.sh': [/^ {2}(ssh -N .+)$/m, printed],
}
/** What is added so that nothing of this machine is asked or changed. */
const quiet: Readonly<Record<string, readonly string[]>> = {
  ssh: ['-F', 'none', '-o', 'UserKnownHostsFile=/dev/null', '-o', 'StrictHostKeyChecking=no'],
  dbclient: ['-y', '-y'],
}

beforeAll(async () => {
  const { stdout } = await run('dropbearkey', ['-t', 'ed25519', '-f', harbour.where.file('droplet')])
  harbour.where.write('droplet.pub', /^\S+ AAAA\S+/m.exec(stdout.toString())![0])
  await harbour.enrol('droplet')
})

test.each(Object.entries(written))('%s', async (what, [pattern, page]) => {
  const [, written = ''] = pattern.exec(await page()) ?? []
  // Where there is nothing but Dropbear, its client is also called ssh.
  const line = what.endsWith('OpenWrt') ? written.replace(/^ssh/, 'dbclient') : written
  const [program = '', ...words] = line.replaceAll('\\\n', ' ').trim().split(/\s+/)
  expect(Object.keys(quiet)).toContain(program)
  const key = harbour.where.file(program === 'ssh' ? 'gate' : 'droplet')
  await using machine = await opensshMachine()
  const name = what.toLowerCase().replaceAll(/\W+/g, '-')
  const here: Readonly<Record<string, string>> = {
    '2222': String(harbour.service.sshPort),
    '0:localhost:22': `0:127.0.0.1:${machine.port}`,
    '~/.ssh/hawser': key,
    '%h/.ssh/hawser': key,
    '/etc/hawser.key': key,
    '/root/.ssh/hawser': key,
    '<tenant>.<name>@<server>': `${sample.tenant}.${name}@127.0.0.1`,
    [`${sample.tenant}.pi@hawser.test`]: `${sample.tenant}.${name}@127.0.0.1`,
  }
  const given = words.map((word) => here[word] ?? word)
  expect(given.join(' ')).not.toMatch(/[<>~%]|localhost/)
  await using client = watch(program, [...quiet[program]!, ...given], { HOME: harbour.where.path })
  const device = await harbour.arrived(machine)
  await harbour.owner.devices.accept({ params: { uid: device.uid } })
  expect((await harbour.ssh(name, 'echo in', { password })).stdout.toString()).toBe('in\n')
  expect(client.child.exitCode).toBe(null)
})
