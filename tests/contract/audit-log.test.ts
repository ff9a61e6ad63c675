// Reading the audit log: pages and filters, who may, exports that `hawser audit verify` checks without a
// server, and every way to tamper with one. And what is never in it: secrets, whichever field they were in.
import { writeFileSync } from 'node:fs'
import path from 'node:path'
import type { AuditEntry, AuditFilter, AuditHead } from '@hawser/contract/audit'
import { sample } from '@hawser/contract/examples'
import { describe, expect, test, vi } from 'vitest'
import { checkExport } from '../../cli/src/commands/audit.ts'
import { CliError } from '../../cli/src/errors.ts'
import { openDesk } from '../../cli/test/program.ts'
import { runCommand } from '../../server/src/commands/admin.ts'
import { sharedPlace } from '../harness/place.ts'
import { cases, humblest, request } from './cases.ts'
import { openStage } from './stage.ts'

vi.setConfig({ testTimeout: 60_000 })

const refused = (status: number) => ({ status })
const place = sharedPlace()
const device = { uid: sample.device }

describe('the log', () => {
  test('says who changed what, from where, and with which request', async () => {
    const answer = await place.operator.devices.rename({ params: device, body: { name: 'derrick' } })
    const { entries } = (await place.owner.audit.list({ query: { limit: 1 } })).body
    expect(entries[0]).toMatchObject({
      tenant_id: sample.tenant,
      action: 'device.updated',
      actor: { kind: 'user', id: sample.operator.id, name: sample.operator.username },
      source: '127.0.0.1',
      request_id: answer.headers.get('x-request-id'),
      target: { kind: 'device', id: sample.device, name: 'crane-1' },
      detail: { before: { name: 'crane-1' }, after: { name: 'derrick' } },
    })
  })

  test('names an API key, and has nothing of a refused or idle call', async () => {
    const newest = async () => (await place.owner.audit.list({ query: { limit: 1 } })).body.entries[0]
    await place.key.devices.rename({ params: device, body: { name: 'boom' } })
    const before = await newest()
    expect(before?.actor).toEqual({ kind: 'api-key', id: sample.apiKeyName, name: sample.apiKeyName })
    await place.key.devices.rename({ params: device, body: { name: 'boom' } })
    await expect(
      place.observer.devices.rename({ params: device, body: { name: 'jib' } }),
    ).rejects.toMatchObject(refused(403))
    expect(await newest()).toEqual(before)
  })

  test('has filters and pages', async () => {
    for (const tag of ['one', 'two', 'three'].map((name) => `${name}-tag`))
      await place.owner.devices.setTags({ params: device, body: { tags: [tag] } })
    type Query = AuditFilter & { before?: number | undefined; after?: number | undefined; limit?: number }
    const list = async (query: Query) => (await place.owner.audit.list({ query })).body
    const tags = await list({ action: 'device.tags.' })
    expect(tags.entries.length).toBeGreaterThanOrEqual(3)
    const [first, second] = tags.entries
    expect((await list({ action: 'device.tags.', limit: 1 })).next).toBe(first?.seq)
    expect((await list({ action: 'device.tags.', limit: 1, before: first?.seq })).entries).toEqual([second])
    expect((await list({ after: second?.seq, action: 'device.tags.' })).entries).toEqual([first])
    expect((await list({ actor: sample.owner.username, target: sample.device })).entries).toContainEqual(
      first,
    )
    expect((await list({ source: '192.0.2.99' })).entries).toEqual([])
    expect((await list({ to: '2001-01-01T00:00:00Z' })).entries).toEqual([])
    for (const query of [{ from: 'yesterday' }, { limit: 501 }, { action: 'Device' }, { before: -1 }])
      await expect(list(query)).rejects.toMatchObject(refused(400))
  })

  test('of another namespace is out of reach', async () => {
    const { entries } = (await place.stranger.audit.list({ query: { limit: 500 } })).body
    for (const entry of entries) expect(entry.tenant_id).toBe(sample.otherTenant)
    for (const client of [place.observer, place.operator, place.device])
      for (const read of [
        () => client.audit.list({ query: {} }),
        () => client.audit.head({}),
        () => client.audit.export({ query: {} }),
      ])
        await expect(read()).rejects.toMatchObject(refused(403))
  })

  test('has refused sign-ins of people, and of nobody else', async () => {
    const wrong = { username: sample.observer.username, password: 'hunter-two' }
    for (const body of [wrong, wrong, { username: 'hunter-two', password: 'hunter-two' }])
      await expect(place.api().users.login({ body })).rejects.toThrow()
    await place.rooms.auditedRefusals.settled()
    const { entries } = (await place.owner.audit.list({ query: { action: 'user.sign-in.refused' } })).body
    expect(entries).toHaveLength(1)
    expect(entries[0]).toMatchObject({
      actor: { kind: 'anonymous' },
      target: { id: sample.observer.id, name: sample.observer.username },
      detail: { reason: 'password', method: 'password' },
    })
    place.clock.forward(61_000)
    await place.rooms.auditedRefusals.settled()
    const more = (await place.owner.audit.list({ query: { action: 'user.sign-in.refused' } })).body.entries
    expect(more.map(({ detail }) => detail['repeated'])).toEqual([1, undefined])
  })

  test('has commands of the administrator, without their arguments', async () => {
    await runCommand(place.rooms, {
      words: 'user password',
      given: [sample.observer.username, 'canary-password'],
    })
    const lines = await runCommand(place.rooms, { words: 'audit', given: [] })
    expect(lines.join('\n')).toContain('admin.command')
    expect(lines.join('\n')).not.toContain('canary')
    const here = await runCommand(place.rooms, { words: 'audit', given: [sample.namespace, '5'] })
    expect(here[0]).toContain('user.password.changed')
    expect(here).toHaveLength(5)
  })
})

/** As a file gives them. */
async function* linesOf(text: string): AsyncGenerator<string> {
  for (const line of text.split('\n')) if (line !== '') yield line
}

describe('an export', () => {
  const desk = openDesk()
  const verify = async (text: string, ...more: string[]) => {
    const file = path.join(desk.folder, 'export.ndjson')
    writeFileSync(file, text)
    return desk.hawser(['audit', 'verify', file, ...more])
  }
  const exported = async (): Promise<string> => (await place.owner.audit.export({ query: {} })).body

  test('is verified without the server', async () => {
    const text = await exported()
    const { code, stdout } = await verify(text)
    expect(stdout).toMatch(/^\d+ entries, 1 to \d+, are as they were written/)
    expect(code).toBe(0)
    const entries = text.trim().split('\n')
    expect(JSON.parse(entries.at(-2) ?? '')).toMatchObject({ action: 'audit.exported' })
  })

  test('that somebody has tampered with is found, however', async () => {
    const lines = (await exported()).trim().split('\n')
    const middle = Math.floor(lines.length / 2)
    const changed = (at: number, change: (entry: AuditEntry) => AuditEntry): string =>
      lines
        .map((line, i) => (i === at ? JSON.stringify(change(JSON.parse(line) as AuditEntry)) : line))
        .join('\n')
    const head = (change: Partial<AuditHead>): string => {
      const last = JSON.parse(lines.at(-1) ?? '') as { head: AuditHead }
      return [...lines.slice(0, -1), JSON.stringify({ head: { ...last.head, ...change } })].join('\n')
    }
    const tampered: Record<string, string> = {
      'a changed name': changed(middle, (entry) => ({ ...entry, actor: { ...entry.actor, name: 'eve' } })),
      'a changed detail': changed(middle, (entry) => ({ ...entry, detail: { after: 'nothing' } })),
      'a changed moment': changed(0, (entry) => ({ ...entry, at: '2001-01-01T00:00:00.000Z' })),
      'an entry less': lines.toSpliced(middle, 1).join('\n'),
      'an entry twice': lines.toSpliced(middle, 0, lines[middle] ?? '').join('\n'),
      'two entries exchanged': lines
        .toSpliced(middle, 2, lines[middle + 1] ?? '', lines[middle] ?? '')
        .join('\n'),
      'no beginning': lines.slice(2).join('\n'),
      // The head says that the log begins where the cut export does.
      'a beginning that the head was changed for': head({
        first_seq: 3,
        first_hash: (JSON.parse(lines[1] ?? '') as AuditEntry).hash,
      })
        .split('\n')
        .slice(2)
        .join('\n'),
      'no end': lines.toSpliced(-2, 1).join('\n'),
      'no head': lines.slice(0, -1).join('\n'),
      'another head': head({ seq: 1 }),
      'another moment of signing': head({ signed_at: '2001-01-01T00:00:00.000Z' }),
      'another key': head({ public_key: Buffer.alloc(32, 7).toString('base64') }),
      'no JSON': `${lines[0]}\nnothing\n`,
      'an empty file': '',
    }
    for (const [what, text] of Object.entries(tampered))
      await expect(checkExport(linesOf(text)), what).rejects.toThrow(CliError)
    expect((await verify(tampered['a changed name'] ?? '')).stderr).toMatch(
      /^hawser: Line \d+: entry \d+ was changed/,
    )
    await checkExport(linesOf(lines.join('\n')))
  })

  test('that was rewritten does not have the head that was kept', async () => {
    const kept = path.join(desk.folder, 'head.json')
    const head = (await place.owner.audit.head({})).body
    writeFileSync(kept, JSON.stringify(head))
    const text = await exported()
    expect((await verify(text, '--head', kept, '--key', head.public_key)).code).toBe(0)
    const elsewhere = (await place.stranger.audit.export({ query: {} })).body
    expect((await verify(elsewhere, '--head', kept)).code).toBe(1)
    expect((await verify(text, '--key', Buffer.alloc(32).toString('base64'))).code).toBe(1)
    writeFileSync(kept, JSON.stringify({ ...head, hash: 'f'.repeat(64) }))
    expect((await verify(text, '--head', kept)).stderr).toContain('is not a head signed by a server')
  })

  test('that cannot be read is no bug of the program', async () => {
    const absent = path.join(desk.folder, 'absent')
    for (const given of [[absent], [desk.folder], [absent, '--head', absent]]) {
      const { code, stderr } = await desk.hawser(['audit', 'verify', ...given])
      expect(stderr).toMatch(/^hawser: \S+ cannot be read: \S+/)
      expect(code).toBe(2)
    }
  })

  test('for a spreadsheet holds no formulas', async () => {
    await place.owner.namespaces.edit({
      params: { tenant: sample.tenant },
      body: { settings: { connection_announcement: `=cmd|calc;=cmd|'/c calc'!A1;@SUM(1)` } },
    })
    await place.enrol({ hostname: '-2.3' })
    const { body } = await place.owner.audit.exportCsv({ query: {} })
    expect(body.split('\r\n')[0]).toBe(
      'seq,at,action,actor_kind,actor_id,actor_name,source,request_id,target_kind,target_id,target_name,detail,hash',
    )
    for (const cell of body.matchAll(/(?<=^|,)"([^"]|"")*"/gm)) expect(cell[0]).not.toMatch(/^"[=+\-@\t\r]/)
    expect(body).toContain('calc')
    for (const cell of body.split(/[;\t\n]/)) expect(cell).not.toMatch(/^[=+\-@]/)
    desk[Symbol.dispose]()
  })
})

test('no secret of any example is in the log, in the database or in an export', async () => {
  await using stage = await openStage()
  const known = [
    sample.owner.password,
    sample.apiKey,
    sample.mfaSecret,
    sample.draftSecret,
    sample.recoveryCode,
    sample.activationToken,
    sample.recoveryToken,
    sample.confirmToken,
    sample.undoToken,
    sample.mfaToken,
    sample.setupCode,
    sample.enrolmentToken,
    sample.pairingCode,
    sample.pairingSecret,
    ...Object.values(sample.resetCodes),
  ]
  const secret = /password|secret|token|code|^key$|recovery_code|signature/
  const found = new Set(known)
  for (const one of cases) {
    await stage.reset()
    if (one.id === 'system.setup') continue
    const sent = request(one, stage)
    for (const [name, value] of Object.entries((sent.json ?? {}) as Record<string, unknown>))
      if (secret.test(name) && typeof value === 'string' && value.length > 4) found.add(value)
    const got = await stage.send({ ...sent, by: humblest(one, stage.cast) })
    // What was made and is shown once: API keys, tokens, codes.
    for (const [name, value] of Object.entries((got.body ?? {}) as Record<string, unknown>))
      if (/^(token|secret|code)$/.test(name) && typeof value === 'string' && value.length > 4)
        found.add(value)
    await stage.service.rooms.background.settled()
    await stage.service.rooms.auditedRefusals.settled()
    const rows = JSON.stringify(
      await stage.service.rooms.database.db.selectFrom('audit_entries').selectAll().execute(),
    )
    for (const value of found) expect(rows, `${one.id}: ${value}`).not.toContain(value)
  }
  expect(found.size).toBeGreaterThan(20)
})
