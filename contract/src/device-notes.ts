// Markdown notes about a device, which members read and operators write. A save names the version that it
// changes, so that nobody overwrites what they have not seen.
import Type, { type Static } from './type.ts'
import { member } from './access.ts'
import { sample } from './examples.ts'
import { DeviceUid, Timestamp } from './fields.ts'
import { operation } from './operation.ts'

export const longestNotes = 16_384

export const DeviceNotes = Type.Object({
  text: Type.String({ description: 'Markdown; empty: there are none.' }),
  version: Type.Integer({ description: 'Counts the changes; 0: there never was one.' }),
  changed_at: Type.Optional(Timestamp),
  changed_by: Type.Optional(Type.String({ description: 'The user or the API key that wrote them last.' })),
})
export type DeviceNotes = Static<typeof DeviceNotes>

const params = Type.Object({ uid: DeviceUid })
const path = '/api/devices/:uid/notes'

export const notes = {
  get: operation({
    title: 'Get device notes',
    summary: 'The notes about the device.',
    method: 'GET',
    path,
    access: member('observer'),
    params,
    answer: DeviceNotes,
    failures: [],
    example: { params: { uid: sample.device } },
  }),

  set: operation({
    title: 'Update device notes',
    summary:
      'Replaces the notes about the device. `version` is the one that was read; if somebody has changed them since, ' +
      'nothing is saved.',
    method: 'PUT',
    path,
    access: member('operator'),
    audit: 'device.notes.updated',
    largestBody: 128 * 1024,
    params,
    body: Type.Object({
      text: Type.String({ maxLength: longestNotes }),
      version: Type.Integer({ minimum: 0, maximum: 2_000_000_000 }),
    }),
    answer: DeviceNotes,
    failures: ['conflict'],
    example: {
      params: { uid: sample.device },
      body: { text: '# On the north pier\n\n- key in the **harbour office**', version: 0 },
    },
  }),
}
