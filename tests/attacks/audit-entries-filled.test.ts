// An administrator switches recording off and fills the same change with long values, so that the entry in the audit
// log is too large. It then named no field at all. An entry that is too large keeps all names and all short values,
// and has the length and the SHA-256 of the longest ones; so has its message to a syslog receiver.
import { hash } from 'node:crypto'
import { expect, test } from 'vitest'
import { canonicalJson } from '@hawser/contract/audit-chain'
import { sample } from '@hawser/contract/examples'
import { messageOf } from '../../server/src/receivers/syslog.ts'
import { startPlace } from '../harness/place.ts'

const params = { tenant: sample.tenant }
const filler = (seed: string) => ({
  connection_announcement: String.fromCodePoint(1 + (seed.charCodeAt(0) % 7)).repeat(4096),
  accept_env: Array.from({ length: 64 }, (_, i) => `${seed}${i}`.padEnd(50, 'X')),
  mask_after: Array.from({ length: 20 }, (_, i) => `${seed}${i}`.toLowerCase().padEnd(32, 'q')),
})

test('a change that is filled with long values still says what it switched', async () => {
  await using place = await startPlace()
  const edit = (settings: object) => place.administrator.namespaces.edit({ params, body: { settings } })
  const former = filler('A')
  await edit({ ...former, session_record: true, mask_secrets: true })
  await edit({ ...filler('B'), session_record: false, mask_secrets: false, invite_outsiders: true })

  const { body } = await place.owner.audit.list({ query: { action: 'namespace.updated', limit: 10 } })
  const entry = body.entries.toSorted((one, other) => one.seq - other.seq).at(-1)!
  const switched = { session_record: false, mask_secrets: false, invite_outsiders: true }
  const digest = {
    length: former.connection_announcement.length,
    sha256: hash('sha256', former.connection_announcement),
  }
  const shown = {
    before: {
      session_record: true,
      mask_secrets: true,
      invite_outsiders: false,
      connection_announcement: digest,
    },
    after: switched,
    truncated: true,
  }
  expect(entry.detail).toMatchObject(shown)
  expect(Object.keys(entry.detail['after'] as object)).toContain('accept_env')
  expect(canonicalJson(entry.detail).length).toBeLessThanOrEqual(16 * 1024)

  const message = messageOf('hawser.example', entry)
  expect(message.length).toBeLessThanOrEqual(8192)
  const { detail } = JSON.parse(message.slice(message.indexOf(' {') + 1)) as { detail: object }
  expect(detail).toMatchObject({ after: switched, truncated: true })
})
