// A process that changes firewall rules through the real rule and the real audit log until it is killed. It
// prints `ready` when the first change is written. audit-kill-nine.long.test.ts runs it.
import { randomUUID } from 'node:crypto'
import type { KeyCaller } from '../../server/src/domain/callers/callers.ts'
import { firewall } from '../../server/src/domain/access/firewall.ts'
import { audit } from '../../server/src/domain/audit/audit.ts'
import { openDatabase } from '../../server/src/storage/database.ts'
import { stores } from '../../server/src/storage/stores.ts'

const [folder = '', tenant_id = '', url = ''] = process.argv.slice(2)
const opened = await openDatabase({
  url,
  folder,
  now: () => new Date().toISOString(),
  onError: () => undefined,
})
const all = stores(opened)
const rules = firewall({
  stores: all,
  audit: audit({ stores: all, clock: { now: Date.now } }),
  onDeactivated: () => undefined,
})
const caller: KeyCaller = {
  kind: 'key',
  name: 'writer',
  created_by: 'nobody',
  exp: undefined,
  tenant_id,
  role: 'owner',
  source: '127.0.0.1',
  host: '',
  secure: false,
}
const body = {
  action: 'deny',
  active: true,
  priority: 1,
  source_ip: '.*',
  filter: { hostname: '.*' },
} as const

async function write(): Promise<void> {
  for (;;) {
    const { id } = await rules.create(
      { params: {}, query: {}, body: { ...body, username: randomUUID() } },
      caller,
    )
    process.stdout.write('ready\n')
    const params = { id }
    await rules.update({ params, query: {}, body: { ...body, username: randomUUID() } }, caller)
    await rules.remove({ params, query: {}, body: undefined }, caller)
  }
}
await Promise.all(Array.from({ length: 4 }, write))
