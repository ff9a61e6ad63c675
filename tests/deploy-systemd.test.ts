// The nightly backup of deploy/systemd: systemd understands the units, and the command in them makes a backup
// that can be restored. (The unit of the server itself is not started here.)
import { existsSync, mkdtempSync, readFileSync, rmSync, writeFileSync } from 'node:fs'
import os from 'node:os'
import path from 'node:path'
import { expect, test } from 'vitest'
import { run } from '../ssh/test/programs.ts'
import { startService } from './harness/service.ts'

const root = path.join(import.meta.dirname, '..')
const backup = path.join(root, 'deploy/systemd/hawser-backup.service')
const nightly = path.join(root, 'deploy/systemd/hawser-backup.timer')

test('systemd finds nothing wrong with the units of the nightly backup', async () => {
  const folder = mkdtempSync(path.join(os.tmpdir(), 'hawser-units-'))
  try {
    // The program must be there, and this clone is not in /opt.
    const copies = [backup, nightly].map((unit) => path.join(folder, path.basename(unit)))
    for (const [at, unit] of [backup, nightly].entries())
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
