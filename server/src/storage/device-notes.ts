// Notes about devices of one namespace; deleted with the device.
import type { Selectable } from 'kysely'
import { locked, type NamespaceContext } from './context.ts'
import type { Tables } from './tables.ts'

export type DeviceNotesRow = Selectable<Tables['device_notes']>

export function deviceNotesStore(context: NamespaceContext) {
  const find = (uid: string): Promise<DeviceNotesRow | undefined> =>
    locked(context, context.select('device_notes').selectAll().where('uid', '=', uid)).executeTakeFirst()
  /** Ignores devices of other namespaces. */
  async function save(row: Omit<DeviceNotesRow, 'tenant_id'>): Promise<void> {
    const { uid, text, version, changed_at, changed_by } = row
    if (!(await context.select('devices').select('id').where('uid', '=', uid).executeTakeFirst())) return
    const change = { text, version, changed_at, changed_by }
    await context
      .insert('device_notes', { uid, ...change })
      .onConflict((taken) => taken.columns(['uid', 'tenant_id']).doUpdateSet(change))
      .execute()
  }
  return {
    find,
    save,
    /** Puts a replaced device's notes before its successor's, and cuts what is too long. */
    async moveToDevice(from: string, to: string, longest: number): Promise<void> {
      const [old, own] = [await find(from), await find(to)]
      if (!old?.text) return
      const text = [old.text, own?.text].filter(Boolean).join('\n\n')
      const version = Math.max(old.version, own?.version ?? 0) + 1
      await save({ ...old, uid: to, version, text: [...text].slice(0, longest).join('') })
    },
  }
}
