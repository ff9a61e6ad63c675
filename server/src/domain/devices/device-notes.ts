// Notes about devices. The audit log has their author and length, not their text: a password that was taken
// out of them must be gone.
import type { DeviceNotes } from '@hawser/contract/device-notes'
import { Failure } from '@hawser/contract/failures'
import { iso } from '../../kit/clock.ts'
import type { DeviceNotesRow } from '../../storage/device-notes.ts'
import type { StoresInTransaction } from '../../storage/stores.ts'
import type { With } from '../audit/parts.ts'
import type { Rules } from '../callers/rules.ts'

const shown = (row: DeviceNotesRow | undefined): DeviceNotes =>
  row
    ? { text: row.text, version: row.version, changed_at: row.changed_at, changed_by: row.changed_by }
    : { text: '', version: 0 }

const lengthOf = (text: string) => ({ characters: [...text].length })

export function deviceNotes({ stores, audit, clock }: With<'stores' | 'audit' | 'clock'>): Rules<'notes'> {
  /** Inside a transaction the device is locked, so that two first notes wait for each other. */
  async function mustFind(inside: Pick<StoresInTransaction, 'of'>, tenant_id: string, uid: string) {
    const device = await inside.of(tenant_id).devices.find(uid)
    if (!device) throw new Failure('notFound')
    return device
  }

  return {
    async get({ params: { uid } }, { tenant_id }) {
      await mustFind(stores, tenant_id, uid)
      return shown(await stores.of(tenant_id).deviceNotes.find(uid))
    },

    set: ({ params: { uid }, body }, caller) =>
      audit.change(caller, async (inside, record) => {
        const device = await mustFind(inside, caller.tenant_id, uid)
        const notes = inside.of(caller.tenant_id).deviceNotes
        const before = shown(await notes.find(uid))
        if (before.version !== body.version)
          throw new Failure('conflict', {
            message: `${before.changed_by ?? 'Somebody'} has changed the notes since you read them.`,
          })
        if (before.text === body.text) return before
        const row = {
          uid,
          tenant_id: caller.tenant_id,
          text: body.text,
          version: before.version + 1,
          changed_at: iso(clock.now()),
          changed_by: caller.kind === 'key' ? `API key ${caller.name}` : caller.username,
        }
        await notes.save(row)
        record({
          action: 'device.notes.updated',
          target: { kind: 'device', id: uid, name: device.name },
          before: { version: before.version, ...lengthOf(before.text) },
          after: { version: row.version, ...lengthOf(row.text) },
        })
        return shown(row)
      }),
  }
}
