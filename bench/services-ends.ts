// A program for bench/services.ts, which starts it twice: once as the web program on the device, once as all
// browsers. Requests are fixed bytes on plain sockets, and answers are counted by their length, so that what
// is measured is not this end. Each way sees the same answers, whose first one says how long they are.
import { createHash } from 'node:crypto'
import { once } from 'node:events'
import http, { type IncomingMessage, type ServerResponse } from 'node:http'
import net, { type Socket } from 'node:net'
import { percentile } from './kit.ts'
import { takeOrders } from './programs.ts'

export type EndsOrder =
  /** Answers with its port. */
  | { readonly do: 'serve' }
  | (To & { readonly do: 'requests'; readonly connections: number; readonly seconds: number })
  | (To & { readonly do: 'latency'; readonly count: number })
  | (To & { readonly do: 'download' | 'upload'; readonly bytes: number })
  | (To & { readonly do: 'open'; readonly count: number })
  | { readonly do: 'close' }

export interface To {
  readonly port: number
  /** Lines of the head behind the first one. */
  readonly headers: readonly string[]
}

export interface Latency {
  readonly p50: number
  readonly p99: number
}

const small = Buffer.from('x'.repeat(512))
const block = Buffer.alloc(64 * 1024)
const longest_ms = 120_000
const webSocketGuid = '258EAFA5-E914-47DA-95CA-C5AB0DC85B11'
const webSocketKey = 'dGhlIHNhbXBsZSBub25jZQ=='
/** Concurrent openings. */
const atOnce = 16

// ---- the program on the device

async function serve(): Promise<{ port: number }> {
  const server = http.createServer((request, response) => {
    if (request.method === 'PUT') return take(request, response)
    if (request.url !== '/') return give(response, Number(request.url!.slice(1)))
    response.writeHead(200, { 'Content-Type': 'text/plain', 'Content-Length': small.length })
    response.end(small)
  })
  server.on('upgrade', ({ headers }: IncomingMessage, socket: Socket) => {
    const accept = createHash('sha1').update(`${headers['sec-websocket-key']}${webSocketGuid}`)
    socket.on('error', () => undefined)
    socket.write(
      'HTTP/1.1 101 Switching Protocols\r\nConnection: Upgrade\r\nUpgrade: websocket\r\n' +
        `Sec-WebSocket-Accept: ${accept.digest('base64')}\r\n\r\n`,
    )
    socket.on('end', () => socket.end())
    socket.resume()
  })
  server.keepAliveTimeout = longest_ms
  server.listen(0, '127.0.0.1')
  await once(server, 'listening')
  return { port: (server.address() as net.AddressInfo).port }
}

function give(response: ServerResponse, bytes: number): void {
  response.writeHead(200, { 'Content-Type': 'application/octet-stream', 'Content-Length': bytes })
  let left = bytes
  const more = (): void => {
    while (left > 0) {
      const part = left < block.length ? block.subarray(0, left) : block
      left -= part.length
      if (!response.write(part)) return void response.once('drain', more)
    }
    response.end()
  }
  more()
}

function take(request: IncomingMessage, response: ServerResponse): void {
  let taken = 0
  request.on('data', (chunk: Buffer) => void (taken += chunk.length))
  request.once('end', () => {
    const text = String(taken)
    response.writeHead(200, { 'Content-Type': 'text/plain', 'Content-Length': text.length })
    response.end(text)
  })
}

// ---- the browsers

async function connect(port: number): Promise<Socket> {
  const socket = net.connect({ port, host: '127.0.0.1', noDelay: true })
  await once(socket, 'connect')
  socket.on('error', () => undefined)
  return socket.setTimeout(longest_ms, () => socket.destroy())
}

const headOf = (first: string, headers: readonly string[]): Buffer =>
  Buffer.from(`${[`${first} HTTP/1.1`, ...headers].join('\r\n')}\r\n\r\n`)

const gone = (): Error => new Error('the connection was closed')

/** The length of an answer with its head, by its first bytes; undefined: its head is not whole. */
function lengthOf(bytes: Buffer): number | undefined {
  const end = bytes.indexOf('\r\n\r\n')
  if (end < 0) return undefined
  const head = bytes.toString('latin1', 0, end)
  const length = /\r\ncontent-length: *(\d+)/i.exec(head)?.[1]
  if (!head.startsWith('HTTP/1.1 200 ') || length === undefined)
    throw new Error(`not the expected answer: ${bytes.toString('latin1', 0, 1_000)}`)
  return end + 4 + Number(length)
}

/** Reads one answer, and returns its length. */
function answerOn(socket: Socket): Promise<number> {
  const { promise, resolve, reject } = Promise.withResolvers<number>()
  let [first, length, came] = [Buffer.alloc(0), undefined as number | undefined, 0]
  const over = (): void => reject(gone())
  const take = (chunk: Buffer): void => {
    came += chunk.length
    try {
      if (length === undefined) {
        first = Buffer.concat([first, chunk])
        length = lengthOf(first)
      }
    } catch (error) {
      return reject(error)
    }
    if (length === undefined || came < length) return
    socket.off('data', take)
    socket.off('close', over)
    resolve(length)
  }
  socket.on('data', take)
  socket.once('close', over)
  return promise
}

/** Asks again with each answer until the time is over; returns how many came. */
function repeat(socket: Socket, request: Buffer, length: number, until: number): Promise<number> {
  const { promise, resolve, reject } = Promise.withResolvers<number>()
  let [answers, came] = [0, 0]
  socket.once('close', () => reject(gone()))
  socket.on('data', (chunk: Buffer) => {
    came += chunk.length
    if (came < length) return
    if (came > length) return reject(new Error('an answer has another length than the first one'))
    answers += 1
    came = 0
    if (performance.now() < until) socket.write(request)
    else resolve(answers)
  })
  socket.write(request)
  return promise
}

async function lengthOfFirst(socket: Socket, request: Buffer): Promise<number> {
  const answer = answerOn(socket)
  socket.write(request)
  return answer
}

async function requests({ port, headers, connections, seconds }: Order<'requests'>): Promise<object> {
  const request = headOf('GET /', headers)
  const sockets = await Promise.all(Array.from({ length: connections }, async () => connect(port)))
  const lengths = await Promise.all(sockets.map(async (socket) => lengthOfFirst(socket, request)))
  const started = performance.now()
  const until = started + seconds * 1000
  const counts = await Promise.all(
    sockets.map(async (socket, index) => repeat(socket, request, lengths[index]!, until)),
  )
  const took_s = (performance.now() - started) / 1000
  for (const socket of sockets) socket.destroy()
  const count = counts.reduce((sum, one) => sum + one, 0)
  return { count, perSecond: count / took_s }
}

async function latency({ port, headers, count }: Order<'latency'>): Promise<Latency> {
  const request = headOf('GET /', headers)
  const socket = await connect(port)
  const length = await lengthOfFirst(socket, request)
  const times = new Float64Array(count)
  for (let index = 0; index < count; index += 1) {
    const before = performance.now()
    await repeat(socket, request, length, 0)
    times[index] = performance.now() - before
    socket.removeAllListeners('data').removeAllListeners('close')
  }
  socket.destroy()
  times.sort()
  return { p50: percentile(times, 50), p99: percentile(times, 99) }
}

async function transfer({ do: way, port, headers, bytes }: Order<'download' | 'upload'>): Promise<object> {
  const socket = await connect(port)
  const started = performance.now()
  const answer = answerOn(socket)
  if (way === 'download') socket.write(headOf(`GET /${bytes}`, headers))
  else {
    socket.write(headOf('PUT /', [...headers, `Content-Length: ${bytes}`]))
    for (let left = bytes; left > 0; left -= block.length)
      if (!socket.write(left < block.length ? block.subarray(0, left) : block) && !socket.destroyed)
        await Promise.race([once(socket, 'drain'), answer])
  }
  await answer
  socket.destroy()
  return { took_ms: performance.now() - started }
}

type Order<Name> = EndsOrder & { readonly do: Name }

const webSockets: Socket[] = []

async function openWebSocket(port: number, headers: readonly string[]): Promise<void> {
  const socket = await connect(port)
  socket.write(
    headOf('GET /', [
      ...headers,
      'Connection: Upgrade',
      'Upgrade: websocket',
      'Sec-WebSocket-Version: 13',
      `Sec-WebSocket-Key: ${webSocketKey}`,
    ]),
  )
  const [answer] = (await once(socket, 'data')) as [Buffer]
  const text = answer.toString('latin1')
  if (!text.startsWith('HTTP/1.1 101 ')) throw new Error(`no WebSocket: ${text.slice(0, 1_000)}`)
  webSockets.push(socket.setTimeout(0).resume())
}

/** Up to the first refusal. */
async function open({ port, headers, count }: Order<'open'>): Promise<object> {
  let [waiting, refused]: [number, string | undefined] = [count, undefined]
  const before = webSockets.length
  const opener = async (): Promise<void> => {
    while (waiting > 0) {
      waiting -= 1
      try {
        await openWebSocket(port, headers)
      } catch (error) {
        refused ??= String(error)
        waiting = 0
      }
    }
  }
  await Promise.all(Array.from({ length: atOnce }, opener))
  return { opened: webSockets.length - before, refused }
}

takeOrders(async (order: EndsOrder) => {
  if (order.do === 'serve') return serve()
  if (order.do === 'requests') return requests(order)
  if (order.do === 'latency') return latency(order)
  if (order.do === 'open') return open(order)
  if (order.do === 'close') {
    for (const socket of webSockets.splice(0)) socket.destroy()
    return {}
  }
  return transfer(order)
})
