// `hawser recording verify`: checks one file without a server, and prints whose session it was, its length,
// its end, and the key that signed it, for people to compare.
import { open } from 'node:fs/promises'
import { Failure } from '@hawser/contract/failures'
import { verifyJournal } from '../recording/verify.ts'
import type { Reading } from '../recording/storage/storage.ts'

export async function verifyFile(
  file: string,
  key: string | undefined,
): Promise<{ sound: boolean; lines: string[] }> {
  const handle = await open(file, 'r').catch((cause: unknown) => {
    throw new Failure('invalid', { message: `The file ${file} cannot be read.`, cause })
  })
  const reading: Reading = {
    size: async () => (await handle.stat()).size,
    async at(offset, length) {
      const { buffer, bytesRead } = await handle.read(Buffer.allocUnsafe(length), 0, length, offset)
      return buffer.subarray(0, bytesRead)
    },
    [Symbol.asyncDispose]: () => handle.close(),
  }
  await using journal = reading
  const verdict = await verifyJournal(journal, key)
  if (!verdict.sound)
    return { sound: false, lines: [`${verdict.unfinished ? 'Unfinished' : 'CHANGED'}: ${verdict.why}.`] }
  const { header, end } = verdict
  return {
    sound: true,
    lines: [
      'The recording is as it was written.',
      `Session: ${header.session_uid} (terminal ${header.channel})`,
      `Namespace: ${header.tenant_id}`,
      `Device: ${header.device_uid}`,
      `User: ${header.username}`,
      `Person: ${header.person ?? 'unknown'}`,
      `Started: ${header.started_at}`,
      `Ended: ${end.ended_at} (${end.ending})`,
      `Output: ${end.output_bytes} bytes`,
      `Signed by: ${header.key}${key === undefined ? ' (compare it with `hawser admin recording key`)' : ''}`,
    ],
  }
}
