// The cost of evidence, in one run: the audit log on a call that changes something, masking on a terminal and
// on a file transfer, following and hashing a transfer, indexing an hour of a busy session, and queries
// next to grep. Words choose a part:
//   npm run bench -- evidence audit paths search       parts, all unless stated
//   … postgres=postgres://user@host/database           the audit log on PostgreSQL, too; the database must be empty
//   … shown=16 moved=128 rounds=5                      MiB on a terminal and of a transfer, turns
//   … hours=100 times=20                               hours that are searched, tries of a query
// Audit: a firewall rule is created and removed, call by call in turns with and without the log: through the
// rules alone, and over HTTP as a program does it. Each figure is the median time of a call; databases are
// on disk. What the other parts do is said in evidence-paths.ts and search.ts, which alone has more figures
// and a thousand hours.
import { mkdtempSync, rmSync } from 'node:fs'
import os from 'node:os'
import path from 'node:path'
import { firewall } from '../server/src/domain/access/firewall.ts'
import { audit, type Audit } from '../server/src/domain/audit/audit.ts'
import type { KeyCaller } from '../server/src/domain/callers/callers.ts'
import { openDatabase } from '../server/src/storage/database.ts'
import { stores } from '../server/src/storage/stores.ts'
import { signIn } from './access-world.ts'
import { pathRows } from './evidence-paths.ts'
import { unaudited } from './evidence-server.ts'
import { owner, plantFleet, plantOwner, tenant_id } from './fleet.ts'
import { atMost, compare, line, percentile, table, type Row } from './kit.ts'
import { openLoad, requestBytes } from './load.ts'
import { ask, freePort, startProcess } from './programs.ts'
import { searchRows } from './search.ts'

const rounds = 5
const callsInRound = 100
/** Before the other side has its turn. */
const callsInTurn = 10

const body = {
  action: 'deny',
  active: true,
  priority: 1,
  source_ip: '^192\\.0\\.2\\.',
  username: '^root$',
  filter: { hostname: '^shop-' },
} as const

const caller: KeyCaller = {
  kind: 'key',
  name: 'bench',
  created_by: owner.id,
  exp: undefined,
  tenant_id,
  role: 'owner',
  source: '192.0.2.1',
  host: 'hawser.test',
  secure: true,
}

/** Two calls that change something: add a rule, and remove it. */
type Pair = () => Promise<void>

async function turns(
  turn: (audited: boolean) => Promise<Pair>,
): Promise<{ with: number[]; without: number[] }> {
  const figures = { with: [] as number[], without: [] as number[] }
  for (let round = -1; round < rounds; round++) {
    const times = { with: [] as number[], without: [] as number[] }
    for (let calls = 0; calls < callsInRound; calls += callsInTurn)
      for (const side of ['with', 'without'] as const) {
        const pair = await turn(side === 'with')
        // The first call of a turn finds the other side's pages in the caches.
        await pair()
        for (let call = 0; call < callsInTurn; call++) {
          const before = performance.now()
          await pair()
          times[side].push((performance.now() - before) / 2)
        }
      }
    // The first round warms up.
    if (round >= 0)
      for (const side of ['with', 'without'] as const)
        figures[side].push(percentile(Float64Array.from(times[side]).toSorted(), 50))
  }
  return figures
}

function rowOf(what: string, figures: { with: number[]; without: number[] }, aim: boolean): Row {
  const compared = compare(figures.with, figures.without)
  return line(what, 'ms', compared, aim ? atMost(1.1, compared.ratio) : undefined)
}

async function auditRows(name: string, url: string): Promise<Row[]> {
  const folder = mkdtempSync(path.join(os.tmpdir(), 'hawser-evidence-'))
  try {
    const opening = { url, folder, now: () => new Date().toISOString(), onError: () => undefined }
    const rows: Row[] = []
    {
      if (url === '') await plantFleet(folder, 0, () => undefined)
      await using opened = await openDatabase(opening)
      const all = stores(opened)
      if (url !== '') await plantOwner(all, new Date().toISOString())
      const pairOf = (log: Audit): Pair => {
        const rules = firewall({ stores: all, audit: log, onDeactivated: () => undefined })
        return async () => {
          const { id } = await rules.create({ params: {}, query: {}, body }, caller)
          await rules.remove({ params: { id }, query: {}, body: undefined }, caller)
        }
      }
      const audited = pairOf(audit({ stores: all, clock: { now: Date.now } }))
      const bare = pairOf(unaudited(all))
      const figures = await turns(async (wanted) => (wanted ? audited : bare))
      rows.push(rowOf(`${name}: a change with its entry / without, the rules alone`, figures, false))
    }
    await using server = startProcess(
      [process.execPath, '--single-threaded-gc', 'bench/evidence-server.ts'],
      {},
      { ipc: true },
    )
    const { port } = await ask<{ port: number }>(server, {
      start: {
        HAWSER_DATA: folder,
        HAWSER_DATABASE: url,
        HAWSER_HTTP: `127.0.0.1:${await freePort()}`,
        HAWSER_SSH: `127.0.0.1:${await freePort()}`,
        HAWSER_RATE_LIMIT: '0/10',
      },
    })
    const token = await signIn(port)
    using load = await openLoad(port, 1)
    const create = requestBytes('POST', '/api/firewall/rules', { token, body })
    const figures = await turns(async (audited) => {
      await ask(server, { audited })
      return async () => {
        const { id } = JSON.parse((await load.call(create)).body) as { id: string }
        await load.call(requestBytes('DELETE', `/api/firewall/rules/${id}`, { token }))
      }
    })
    rows.push(rowOf(`${name}: the same over HTTP`, figures, true))
    return rows
  } finally {
    rmSync(folder, { recursive: true, force: true })
  }
}

const parts = ['audit', 'paths', 'search'] as const

export default async function evidence(...words: string[]): Promise<void> {
  const option = (name: string): string | undefined =>
    words.find((word) => word.startsWith(`${name}=`))?.slice(name.length + 1)
  const number = (name: string, usual: number): number => Math.max(1, Number(option(name) ?? usual) || usual)
  const named = words.filter((word) => !word.includes('='))
  const unknown = named.find((word) => !(parts as readonly string[]).includes(word))
  if (unknown !== undefined) throw new Error(`evidence: "${unknown}" is not a part (${parts.join(', ')})`)
  const wants = (part: (typeof parts)[number]): boolean => named.length === 0 || named.includes(part)
  const rows: Row[] = []
  if (wants('audit')) {
    rows.push(...(await auditRows('SQLite', '')))
    const url = option('postgres')
    if (url !== undefined) rows.push(...(await auditRows('PostgreSQL', url)))
  }
  if (wants('paths'))
    rows.push(
      ...(await pathRows({
        shown_mib: number('shown', 16),
        moved_mib: number('moved', 128),
        rounds: number('rounds', 5),
      })),
    )
  if (wants('search'))
    rows.push(...(await searchRows(`hours=${number('hours', 100)}`, `times=${number('times', 20)}`)))
  table(rows)
}
