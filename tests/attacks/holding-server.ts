// A program for attacks on memory: an SSH server on our own package that lets everybody in, opens every
// channel and reads nothing. It prints its port, and at SIGUSR2, after collecting garbage, how many bytes it
// has in use.
import net, { type AddressInfo } from 'node:net'
import { acceptConnection, generatePrivateKey } from '../../ssh/src/index.ts'

const hostKeys = [generatePrivateKey('ed25519')]

async function serve(socket: net.Socket): Promise<void> {
  const connection = await acceptConnection(socket, {
    hostKeys,
    methods: ['none'],
    authenticate: () => Promise.resolve('accept'),
    channelTypes: ['session'],
    globalRequests: 'all',
  })
  for await (const opening of connection.channels) opening.accept()
}

process.on('SIGUSR2', () => {
  globalThis.gc?.()
  // What a first collection lets go of, a second one frees.
  setImmediate(report)
})

function report(): void {
  globalThis.gc?.()
  const { heapUsed, arrayBuffers, external } = process.memoryUsage()
  console.log(`holding ${heapUsed + Math.max(arrayBuffers, external)}`)
}
const listener = net.createServer(
  { noDelay: true },
  (socket) => void serve(socket.on('error', () => undefined)).catch(() => undefined),
)
listener.listen(0, '127.0.0.1', () => console.log(`listening on ${(listener.address() as AddressInfo).port}`))
