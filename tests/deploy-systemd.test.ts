// The units of deploy/systemd for the nightly backup and for several nodes: systemd understands them, and the
// command of the backup makes one that can be restored. (The unit of the server itself is not started here.)
import { existsSync, mkdtempSync, readFileSync, rmSync, writeFileSync } from 'node:fs'
import os from 'node:os'
import path from 'node:path'
import { expect, test } from 'vitest'
import { run } from '../ssh/test/programs.ts'
import { readConfig } from '../server/src/config.ts'
import { startService } from './harness/service.ts'

const root = path.join(import.meta.dirname, '..')
const backup = path.join(root, 'deploy/systemd/hawser-backup.service')
const nightly = path.join(root, 'deploy/systemd/hawser-backup.timer')
const node = path.join(root, 'deploy/systemd/hawser@.service')

test('systemd finds nothing wrong with the units', async () => {
  const folder = mkdtempSync(path.join(os.tmpdir(), 'hawser-units-'))
  try {
    // The program must be there, and this clone is not in /opt.
    const copies = [backup, nightly, node].map((unit) => path.join(folder, path.basename(unit)))
    for (const [at, unit] of [backup, nightly, node].entries())
      writeFileSync(copies[at] ?? '', readFileSync(unit, 'utf8').replaceAll('/opt/hawser', root))
    const { status, stderr } = await run('systemd-analyze', ['verify', ...copies])
    expect([status, stderr]).toEqual([0, ''])
  } finally {
    rmSync(folder, { recursive: true, force: true })
  }
})

test('the command in the unit makes a backup of a running server', async () => {
  await using service = await startService()
  const folder = mkdtempSync(path.join(os.tmpdir(), 'hawser-nightly-'))
  try {
    const line = /^ExecStart=(.*)$/m.exec(readFileSync(backup, 'utf8'))
    const command = line?.[1]?.replace('/var/backups/hawser', folder).replace('/opt/hawser', root) ?? ''
    const { status, stderr } = await run('sh', ['-c', `cd '${root}' && exec ${command}`], undefined, {
      HAWSER_DATA: service.folder,
    })
    expect([status, stderr]).toEqual([0, ''])
    for (const name of ['hawser.db', 'master.key']) expect(existsSync(path.join(folder, name))).toBe(true)
  } finally {
    rmSync(folder, { recursive: true, force: true })
  }
})

test('the settings in the unit of a node are ones that the server takes', () => {
  const unit = readFileSync(node, 'utf8').replaceAll('%i', '3')
  const env = Object.fromEntries(
    [...unit.matchAll(/^Environment=(\w+)=(.*)$/gm)].map(([, name = '', value = '']) => [name, value]),
  )
  expect(readConfig(env)).toMatchObject({
    HAWSER_DATA: '/var/lib/hawser/3',
    HAWSER_NODE_ADDRESS: { path: '/var/lib/hawser/3/node.sock' },
    HAWSER_METRICS: { host: '127.0.0.1', port: 9103 },
  })
})
