// The child behind errands.ts: takes the rights of the user before it hears of anything, then connects and
// listens as it is told and hands the sockets over. Ends when the agent is gone or lets go of it, and takes
// its socket files along.
import type net from 'node:net'
import { errandsHere, type Errand, type Report } from './errands.ts'
import { readRights, takeRights } from './rights.ts'

takeRights(readRights(process.argv.slice(2)))

const errands = errandsHere()

function report(said: Report, socket?: net.Socket): void {
  if (process.connected) process.send!(said, socket, {}, () => undefined)
  else socket?.destroy()
}

async function run({ errand, file }: Errand): Promise<net.Socket | undefined> {
  if (errand === 'connect') return errands.connect(file)
  if (errand === 'listen') await errands.listen(file, (socket) => report({ arrived: file }, socket))
  else await errands.stop(file)
  return undefined
}

process.on('message', (asked: Errand) => {
  run(asked).then(
    (socket) => report({ number: asked.number, done: true }, socket),
    (error: NodeJS.ErrnoException) => report({ number: asked.number, failure: error.code ?? 'EIO' }),
  )
})
process.once('disconnect', () => {
  void (async () => {
    await errands[Symbol.asyncDispose]()
    process.exit(0)
  })()
})
