// The SFTP of a device that lies about its files: it answers what a test says, and what an honest device
// with one empty folder would where the test says nothing.
import type { Session } from '@hawser/ssh'
import { packetsOf, Sftp, Status } from '../../ssh/src/sftp/protocol.ts'
import { Reader, Writer } from '../../ssh/src/wire.ts'

/** How the device answers; `undefined`: honestly. */
export type Lie = (type: number, id: number, asked: Reader) => Writer | undefined

export const reply = (type: number, id: number): Writer => new Writer(1_024).byte(type).uint32(id)
export const status = (id: number, code: number, text = ''): Writer =>
  reply(Sftp.status, id).uint32(code).string(text).string('')
/** Entries of a folder, as `ls` would show them; no attributes but the mode. */
export function names(id: number, all: readonly string[], mode = 0o100_644): Writer {
  const packet = reply(Sftp.name, id).uint32(all.length)
  for (const name of all) packet.string(name).string('').uint32(4).uint32(mode)
  return packet
}

function honest(type: number, id: number): Writer {
  if (type === Sftp.realpath) return names(id, ['/home'])
  if (type === Sftp.opendir || type === Sftp.open) return reply(Sftp.handle, id).string('h')
  if (type === Sftp.readdir || type === Sftp.read) return status(id, Status.eof)
  if (type === Sftp.stat) return reply(Sftp.attrs, id).uint32(5).uint64(1n).uint32(0o100_644)
  if (type === Sftp.lstat) return reply(Sftp.attrs, id).uint32(4).uint32(0o040_755)
  return status(id, Status.ok)
}

export const lyingSftp =
  (lie: Lie) =>
  async (channel: Session['channel']): Promise<void> => {
    for await (const packet of packetsOf(channel)) {
      const fields = new Reader(packet)
      const type = fields.byte()
      const id = fields.uint32()
      const said =
        type === Sftp.init
          ? new Writer().byte(Sftp.version).uint32(3)
          : (lie(type, id, fields) ?? honest(type, id))
      await channel.write(new Writer(said.length + 4).string(said.bytes()).bytes())
    }
  }
