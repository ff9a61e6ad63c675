// Which inherited descriptors an agent closes at its start.
import { spawnSync } from 'node:child_process'
import { mkdtempSync, rmSync, writeFileSync } from 'node:fs'
import os from 'node:os'
import path from 'node:path'
import { expect, test } from 'vitest'

test('inherited descriptors are closed, and certificates that Node may be reading are not', () => {
  const folder = mkdtempSync(path.join(os.tmpdir(), 'hawser-descriptors-'))
  const [authority, other] = [path.join(folder, 'authority.pem'), path.join(folder, 'other')]
  for (const file of [authority, other]) writeFileSync(file, '')
  const program = `
    const { closeInherited } = await import(${JSON.stringify(path.join(import.meta.dirname, 'children.ts'))})
    const { readdirSync, readlinkSync } = await import('node:fs')
    closeInherited()
    const target = (fd) => { try { return readlinkSync('/proc/self/fd/' + fd) } catch { return '' } }
    console.log(JSON.stringify(readdirSync('/proc/self/fd').map(target)))`
  try {
    // As a script leaves them. Node itself hides the first few from its children.
    const shell = 'exec 70<"$1" 71<"$2"; exec "$3" --input-type=module -e "$4"'
    const words = [authority, other, process.execPath, program]
    const { stdout } = spawnSync('/bin/bash', ['-c', shell, 'bash', ...words], {
      stdio: ['ignore', 'pipe', 'inherit'],
      // Not as NODE_EXTRA_CA_CERTS: Node would warn of a file without certificates.
      env: { ...process.env, NODE_EXTRA_CA_CERTS: '', SSL_CERT_FILE: authority },
      encoding: 'utf8',
    })
    const open = JSON.parse(stdout) as string[]
    expect([authority, other].map((file) => open.includes(file))).toEqual([true, false])
  } finally {
    rmSync(folder, { recursive: true, force: true })
  }
})
