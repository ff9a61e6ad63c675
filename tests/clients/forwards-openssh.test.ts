// What the real OpenSSH client forwards through the gateway: ports and socket files, from the person's
// machine to what the device can reach and back, and what is said when nothing is there to reach. The agents
// of the field know only half of it; the other half fails cleanly.
import { chmodSync, existsSync } from 'node:fs'
import { once } from 'node:events'
import net from 'node:net'
import { afterAll, beforeAll, describe, expect, test } from 'vitest'
import { randomBytes } from 'node:crypto'
import { roundTrip, startEcho, whenListening } from '../../ssh/test/peers.ts'
import { freePort } from '../../ssh/test/programs.ts'
import { eventually, sharedOldAgent, sharedWay, type How, type Running } from './way.ts'

const way = sharedWay()
const bytes = randomBytes(1_000_003)
let echo: Awaited<ReturnType<typeof startEcho>>
beforeAll(async () => {
  echo = await startEcho()
})
afterAll(() => echo[Symbol.dispose]())

const told = ['LogLevel=INFO', 'ExitOnForwardFailure=yes']
/** A client that forwards and does nothing else, until it listens there. */
async function forwarding(
  flags: readonly string[],
  listening: net.NetConnectOpts,
  how: How = {},
): Promise<Running> {
  const client = way.start(undefined, { ...how, settings: told, flags: ['-N', ...flags] })
  await eventually(async () => whenListening(listening))
  return client
}
/** What comes back through the socket file for what is sent. */
async function exchange(path: string, sent: Buffer): Promise<Buffer> {
  const socket = net.connect({ path, allowHalfOpen: true })
  const parts: Buffer[] = []
  socket.end(sent)
  for await (const chunk of socket as AsyncIterable<Buffer>) parts.push(chunk)
  return Buffer.concat(parts)
}
/** Nothing comes back: the connection ends at once, in one way or another. */
const endsAtOnce = async (to: net.NetConnectOpts): Promise<void> => {
  const socket = net.connect(to).on('error', () => undefined)
  socket.resume()
  await once(socket, 'close')
  expect(socket.bytesRead).toBe(0)
}

describe('-L', () => {
  test('a port here leads to one that the device reaches, for many at once', async () => {
    const port = await freePort()
    await using client = await forwarding(['-L', `127.0.0.1:${port}:localhost:${echo.port}`], {
      port,
      host: '127.0.0.1',
    })
    const back = await Promise.all(Array.from({ length: 10 }, async () => roundTrip(port, bytes)))
    expect(back.every((one) => one.equals(bytes))).toBe(true)
    expect(client.stderr()).not.toContain('failed')
  })

  test('where nothing listens the client is told so, and goes on', async () => {
    const [port, nothing] = [await freePort(), await freePort()]
    await using client = await forwarding(['-L', `127.0.0.1:${port}:127.0.0.1:${nothing}`], {
      port,
      host: '127.0.0.1',
    })
    await endsAtOnce({ port, host: '127.0.0.1' })
    await client.until(/open failed: connect failed: Connection refused/)
    expect(client.child.exitCode).toBe(null)
  })

  test('a name that nobody has is told as such', async () => {
    const { status, stderr } = await way.ssh(undefined, {
      settings: told,
      flags: ['-W', 'nowhere.invalid:1'],
    })
    expect(status).toBe(255)
    expect(stderr).toContain('open failed: connect failed: Name or service not known')
  })

  test('socket files: one here leads to one on the device', async () => {
    const [here, there] = [way.where.file('here.sock'), way.there('there.sock')]
    const server = net
      .createServer({ allowHalfOpen: true }, (socket) => void socket.pipe(socket))
      .listen(there)
    await once(server, 'listening')
    // The user of the device may not be us.
    chmodSync(there, 0o666)
    try {
      await using client = await forwarding(['-L', `${here}:${there}`], { path: here })
      expect((await exchange(here, bytes)).equals(bytes)).toBe(true)
      expect(client.stderr()).not.toContain('failed')
    } finally {
      server.close()
    }
  })

  test('a socket file that is not there is told as such', async () => {
    const here = way.where.file('nothing.sock')
    await using client = await forwarding(['-L', `${here}:${way.there('nothing')}`], { path: here })
    await endsAtOnce({ path: here })
    await client.until(/open failed: connect failed: No such file or directory/)
  })
})

describe('-R', () => {
  const say = (port: number | string): string =>
    `bash -c 'exec 3<>/dev/tcp/127.0.0.1/${port} && echo hello >&3 && head -n 1 <&3'`

  test('a port on the device leads to one here', async () => {
    const port = await freePort()
    await using client = await forwarding(['-R', `${port}:127.0.0.1:${echo.port}`], {
      port,
      host: '127.0.0.1',
    })
    expect((await roundTrip(port, bytes)).equals(bytes)).toBe(true)
    expect((await way.ssh(say(port))).stdout.toString()).toBe('hello\n')
    // With the client the port is gone.
    await client[Symbol.asyncDispose]()
    await eventually(async () =>
      expect(whenListening({ port, host: '127.0.0.1' })).rejects.toThrow('ECONNREFUSED'),
    )
  })

  test('the device finds a free one for whoever asks for port 0', async () => {
    await using client = way.start(undefined, {
      settings: told,
      flags: ['-N', '-R', `0:127.0.0.1:${echo.port}`],
    })
    const port = await client.until(/Allocated port (\d+) for remote forward/)
    expect((await way.ssh(say(port))).stdout.toString()).toBe('hello\n')
  })

  test('without a destination the device has a way out through the person’s machine, by SOCKS', async () => {
    await using client = way.start(undefined, { settings: told, flags: ['-N', '-R', '0'] })
    const port = await client.until(/Allocated port (\d+) for remote forward/)
    expect((await throughSocks(Number(port), 'localhost', echo.port, bytes)).equals(bytes)).toBe(true)
  })

  test.each([
    ['that is taken', () => echo.port],
    ['that is root’s', () => 80],
  ])('a port %s is refused', async (_, port) => {
    const { status, stderr } = await way.ssh(undefined, {
      settings: told,
      flags: ['-N', '-R', `${port()}:127.0.0.1:${echo.port}`],
    })
    expect(status).toBe(255)
    expect(stderr).toContain(`remote port forwarding failed for listen port ${port()}`)
  })

  test('a socket file on the device leads here, and is gone afterwards', async () => {
    const there = way.there('back.sock')
    await using client = await forwarding(['-R', `${there}:127.0.0.1:${echo.port}`], { path: there })
    expect((await exchange(there, bytes)).equals(bytes)).toBe(true)
    client.child.kill()
    await eventually(() => expect(existsSync(there)).toBe(false))
  })

  test('a socket file where the user may not write is refused', async () => {
    const { status, stderr } = await way.ssh(undefined, {
      settings: told,
      flags: ['-N', '-R', `/proc/back.sock:127.0.0.1:${echo.port}`],
    })
    expect(status).toBe(255)
    expect(stderr).toContain('remote port forwarding failed')
  })
})

describe('-D', () => {
  test('whoever speaks SOCKS reaches what the device reaches, by address and by name', async () => {
    const port = await freePort()
    await using client = await forwarding(['-D', `127.0.0.1:${port}`], { port, host: '127.0.0.1' })
    for (const host of ['127.0.0.1', 'localhost'])
      expect((await throughSocks(port, host, echo.port, bytes)).equals(bytes)).toBe(true)
    await expect(throughSocks(port, '127.0.0.1', await freePort(), bytes)).rejects.toThrow()
    await client.until(/open failed: connect failed: Connection refused/)
  })
})

describe('-W', () => {
  test('input and output of the client are a connection from the device', async () => {
    const { status, stdout } = await way.ssh(undefined, {
      flags: ['-W', `127.0.0.1:${echo.port}`],
      input: bytes,
    })
    expect(status).toBe(0)
    expect(stdout.equals(bytes)).toBe(true)
  })

  test('where nothing listens it ends with what happened', async () => {
    const { status, stderr } = await way.ssh(undefined, {
      settings: told,
      flags: ['-W', `127.0.0.1:${await freePort()}`],
    })
    expect(status).toBe(255)
    expect(stderr).toContain('open failed: connect failed: Connection refused')
  })
})

describe.each([1, 2] as const)('a device of the field, with a tunnel of version %i', (version) => {
  const old = sharedOldAgent(way, version)

  test('-L and -D bring everything back, also to a client that has closed its sending side', async () => {
    const [port, socks] = [await freePort(), await freePort()]
    const flags = ['-L', `127.0.0.1:${port}:127.0.0.1:${echo.port}`, '-D', `127.0.0.1:${socks}`]
    await using client = await forwarding(flags, { port: socks, host: '127.0.0.1' }, { device: old.name })
    const sent = randomBytes(3_000_000)
    for (const back of [
      await takeBack(port, sent),
      await throughSocks(socks, '127.0.0.1', echo.port, sent, sent.length),
    ])
      expect([back.length, back.equals(sent)]).toEqual([sent.length, true])
    expect(client.stderr()).not.toContain('failed')
  })

  test('-L tells the client when the other end has closed', async () => {
    const server = net
      .createServer(
        (socket) =>
          void socket
            .on('error', () => undefined)
            .resume()
            .end(bytes),
      )
      .listen(0, '127.0.0.1')
    await once(server, 'listening')
    try {
      const port = await freePort()
      const to = `127.0.0.1:${port}:127.0.0.1:${(server.address() as net.AddressInfo).port}`
      await using client = await forwarding(['-L', to], { port, host: '127.0.0.1' }, { device: old.name })
      expect((await roundTrip(port, Buffer.from('give'))).equals(bytes)).toBe(true)
      expect(client.stderr()).not.toContain('failed')
    } finally {
      server.close()
    }
  })

  test('-R is refused, and the session goes on for whoever does not mind', async () => {
    const flags = ['-R', `${await freePort()}:127.0.0.1:${echo.port}`]
    const strict = await way.ssh('echo in', { device: old.name, settings: told, flags })
    expect([strict.stdout.toString(), strict.status]).toEqual(['', 255])
    expect(strict.stderr).toContain('remote port forwarding failed for listen port')
    const easy = await way.ssh('echo in', { device: old.name, settings: ['LogLevel=INFO'], flags })
    expect(easy.stderr).toContain('remote port forwarding failed for listen port')
    expect([easy.stdout.toString(), easy.status]).toEqual(['in\n', 0])
  })

  test('socket files are refused', async () => {
    const here = way.where.file(`old-${version}.sock`)
    await using client = await forwarding(
      ['-L', `${here}:${way.there('nothing')}`],
      { path: here },
      { device: old.name },
    )
    await endsAtOnce({ path: here })
    await client.until(/open failed: unknown channel type/)
  })
})

/** What an echo brings back until it is all there; it waits for an end that does not reach it. */
async function takeBack(port: number, sent: Buffer): Promise<Buffer> {
  const socket = net.connect({ port, host: '127.0.0.1', allowHalfOpen: true })
  const parts: Buffer[] = []
  socket.end(sent)
  for await (const chunk of socket as AsyncIterable<Buffer>) {
    parts.push(chunk)
    if (socket.bytesRead >= sent.length) break
  }
  return Buffer.concat(parts)
}

/**
 * SOCKS 5 by hand (RFC 1928): no authentication, CONNECT to a name, then all is sent, and what comes back is
 * returned when it is enough or ends.
 */
async function throughSocks(
  proxy: number,
  host: string,
  port: number,
  sent: Buffer,
  enough = Infinity,
): Promise<Buffer> {
  const socket = net.connect({ port: proxy, host: '127.0.0.1', allowHalfOpen: true })
  const isAddress = net.isIPv4(host)
  const name = isAddress
    ? Buffer.from(host.split('.').map(Number))
    : Buffer.concat([Buffer.from([host.length]), Buffer.from(host)])
  const target = Buffer.concat([
    Buffer.from([5, 1, 0, isAddress ? 1 : 3]),
    name,
    Buffer.from([port >> 8, port & 0xff]),
  ])
  socket.write(Buffer.concat([Buffer.from([5, 1, 0]), target]))
  let got = Buffer.alloc(0)
  let begun = false
  for await (const chunk of socket as AsyncIterable<Buffer>) {
    got = Buffer.concat([got, chunk])
    // Two bytes answer the greeting, ten the request.
    if (begun && got.length >= enough) break
    if (begun || got.length < 12) continue
    if (got[1] !== 0 || got[3] !== 0) throw new Error(`the proxy says ${got.subarray(0, 12).toString('hex')}`)
    begun = true
    got = got.subarray(12)
    socket.end(sent)
  }
  if (!begun) throw new Error('the proxy hung up')
  return got
}
