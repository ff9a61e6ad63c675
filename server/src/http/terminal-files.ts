// Files of a terminal, on a WebSocket of their own, one request after the other
// (contract/src/terminals.ts has the protocol). Nothing is buffered but what is on its way: each side is read
// no faster than the other takes it, and the browser learns an upload's progress.
import { Failure } from '@hawser/contract/failures'
import { FileRequest, mostMessage_bytes, mostUntaken_bytes } from '@hawser/contract/terminals'
import type { BrowserTerminal } from '../gateway/login/browser.ts'
import { readMessage, type Message, type MessageSocket } from './message-socket.ts'
import { checker } from './validate.ts'

const fits = checker(FileRequest)
/** The browser hears of an upload's progress in steps of this. */
const step_bytes = mostUntaken_bytes / 8

export async function serveFiles(line: MessageSocket, { files, ended }: BrowserTerminal): Promise<void> {
  await using remote = await files()
  const over = ended.then((): never => {
    throw new Failure('unavailable', { message: 'The terminal is closed.' })
  })
  // A request under way learns of it from the device.
  over.catch(() => undefined)
  for (;;) {
    const message = await Promise.race([line.next(), over])
    if (!message) return
    const wish = readMessage(message, fits, mostMessage_bytes) as FileRequest
    if (wish.kind === 'get') await get(wish.path)
    else if (wish.kind === 'put') await put(wish)
    else await answer(wish)
  }

  async function answer(wish: Exclude<FileRequest, { kind: 'get' | 'put' }>): Promise<void> {
    try {
      if (wish.kind === 'list') {
        using folder = await remote.list(wish.path)
        const { path, entries, more } = folder
        return await line.say({ kind: 'folder', path, entries, more })
      }
      if (wish.kind === 'make') await remote.makeFolder(wish.path)
      else if (wish.kind === 'move') await remote.move(wish.path, wish.to)
      else await remote.remove(wish.path)
      await line.say({ kind: 'done' })
    } catch (error) {
      if (!(error instanceof Failure)) throw error
      await line.say({ kind: 'error', message: error.message })
    }
  }

  async function get(path: string): Promise<void> {
    const { size, changed_at, bytes } = await remote.read(path)
    await line.say({ kind: 'file', size, changed_at })
    let left = false
    void line.closed.then(() => (left = true))
    for await (const piece of bytes) {
      await line.send(piece)
      if (left) return
    }
    await line.say({ kind: 'end' })
  }

  async function put(wish: FileRequest & { kind: 'put' }): Promise<void> {
    const { path, size, replace, expected, upload: id } = wish
    async function* incoming(from: number): AsyncGenerator<Buffer> {
      // Asked for the first time when the file is open there.
      await line.say({ kind: 'ready', from })
      let taken = from
      let told = from
      while (taken < size) {
        const message = await line.next()
        if (!message) return
        if (isStop(message)) throw new UploadStopped()
        if (!message.binary || message.bytes.length === 0 || taken + message.bytes.length > size)
          throw new Failure('invalid', { message: 'A message of the browser was not understood.' })
        yield message.bytes
        taken += message.bytes.length
        if (taken - told < step_bytes && taken < size) continue
        told = taken
        await line.say({ kind: 'taken', bytes: taken })
      }
    }
    try {
      await remote.write(path, incoming, { size, replace, expected, id })
    } catch (error) {
      if (error instanceof UploadStopped) return line.say({ kind: 'stopped' })
      if (!(error instanceof Failure) || error.kind !== 'conflict') throw error
      // The file is as it was: the person is asked, and may wish it again.
      return line.say({ kind: 'error', message: error.message, exists: true })
    }
    await line.say({ kind: 'done' })
  }
}

class UploadStopped extends Error {}

const isStop = ({ bytes, binary }: Message): boolean =>
  !binary && bytes.length < 64 && bytes.toString() === '{"kind":"stop"}'
