// The load of the HTTP benches: a few connections that stay open, one request under way on each. Requests are
// bytes made beforehand and answers are read only as far as needed (status, Content-Length), so that what is
// measured is the server and not its client. Everything ends: a call without an answer for half a minute
// fails.
import net from 'node:net'

export interface HttpAnswer {
  readonly status: number
  readonly body: string
}

export interface Load extends Disposable {
  /** On a free connection; there must be one. Anything but a 200 fails. */
  call(request: Buffer): Promise<HttpAnswer>
}

const longest_wait_ms = 30_000
const end_of_head = Buffer.from('\r\n\r\n')
const nothing = Buffer.alloc(0)

export interface RequestParts {
  readonly token?: string
  readonly body?: unknown
}

export function requestBytes(
  method: 'GET' | 'POST' | 'DELETE',
  address: string,
  { token, body }: RequestParts = {},
): Buffer {
  const text = body === undefined ? '' : JSON.stringify(body)
  const lines = [
    `${method} ${address} HTTP/1.1`,
    'Host: 127.0.0.1',
    ...(token === undefined ? [] : [`Authorization: Bearer ${token}`]),
    ...(body === undefined
      ? []
      : ['Content-Type: application/json', `Content-Length: ${Buffer.byteLength(text)}`]),
  ]
  return Buffer.from(`${lines.join('\r\n')}\r\n\r\n${text}`)
}

/** Undefined: bytes are missing. */
function readAnswer(bytes: Buffer): HttpAnswer | undefined {
  const end = bytes.indexOf(end_of_head)
  if (end < 0) return undefined
  const head = bytes.toString('latin1', 0, end).toLowerCase()
  const length = /\r\ncontent-length: *(\d+)/.exec(head)?.[1]
  if (length === undefined) throw new Error(`an answer without Content-Length: ${head}`)
  const whole = end + end_of_head.length + Number(length)
  if (bytes.length < whole) return undefined
  if (bytes.length > whole) throw new Error('more came than one answer')
  return {
    status: Number(head.slice(9, 12)),
    get body() {
      return bytes.toString('utf8', end + end_of_head.length)
    },
  }
}

interface Connection extends Load {
  readonly closed: boolean
}

async function connect(port: number): Promise<Connection> {
  const socket = net.connect({ port, host: '127.0.0.1', noDelay: true })
  let waiting: PromiseWithResolvers<HttpAnswer> | undefined
  let received: Buffer = nothing
  const fail = (error: Error): void => {
    socket.destroy()
    waiting?.reject(error)
    waiting = undefined
  }
  await new Promise<void>((resolve, reject) => socket.once('error', reject).once('connect', resolve))
  socket.on('error', fail)
  socket.on('close', () => fail(new Error('the server closed the connection')))
  socket.setTimeout(longest_wait_ms, () => {
    if (waiting) fail(new Error('no answer in time'))
  })
  socket.on('data', (chunk: Buffer) => {
    received = received.length === 0 ? chunk : Buffer.concat([received, chunk])
    try {
      const answer = readAnswer(received)
      if (!answer) return
      received = nothing
      const asked = waiting
      waiting = undefined
      if (answer.status === 200) asked?.resolve(answer)
      else asked?.reject(new Error(`answered ${answer.status}: ${answer.body.slice(0, 200)}`))
    } catch (error) {
      fail(error as Error)
    }
  })
  return {
    get closed() {
      return socket.destroyed
    },
    call(request) {
      waiting = Promise.withResolvers()
      socket.write(request)
      return waiting.promise
    },
    [Symbol.dispose]: () => void socket.destroy(),
  }
}

export async function openLoad(port: number, connections: number): Promise<Load> {
  const free = await Promise.all(Array.from({ length: connections }, () => connect(port)))
  const all = new Set(free)
  /** Servers close idle connections, so a closed one is replaced. */
  async function reopened(closed: Connection): Promise<Connection> {
    all.delete(closed)
    const fresh = await connect(port)
    all.add(fresh)
    return fresh
  }
  return {
    async call(request) {
      let connection = free.pop()
      if (!connection) throw new Error('more calls at a time than there are connections')
      try {
        if (connection.closed) connection = await reopened(connection)
        return await connection.call(request)
      } finally {
        free.push(connection)
      }
    },
    [Symbol.dispose]: () => all.forEach((connection) => connection[Symbol.dispose]()),
  }
}
