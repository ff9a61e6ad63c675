// A container engine for tests that need none: a small HTTP server that says of itself what a real one does
// and lists the containers that a test shows, in the clear or over TLS with client certificates, or misbehaves as told. A real one
// is in docker.ts. The certificates were made for these tests and guard nothing; they are good for 127.0.0.1
// from 2020 to 2120.
import { createHash } from 'node:crypto'
import { once } from 'node:events'
import http from 'node:http'
import https from 'node:https'
import type { AddressInfo } from 'node:net'

const pem = (label: string, lines: string[]): string =>
  `-----BEGIN ${label}-----\n${lines.join('\n')}\n-----END ${label}-----\n`

export const certificates = {
  ca: pem('CERTIFICATE', [
    'MIIBajCCARCgAwIBAgIUTE0i0tyqnVoinoCkm4HdnSJKbDswCgYIKoZIzj0EAwIwGjEYMBYGA1UEAwwPSGFyYm91ciB0ZXN0IENBMCAXDTIwMDEwMTAw',
    'MDAwMFoYDzIxMjAwMTAxMDAwMDAwWjAaMRgwFgYDVQQDDA9IYXJib3VyIHRlc3QgQ0EwWTATBgcqhkjOPQIBBggqhkjOPQMBBwNCAASDKlVwSgumXle3',
    'zKIcTCkebdR2u8+U/DiBD37AIxQ8CFOyNnB4j9iXGyAR8GvY6+iC189u4dPMFPkc1K+kElR2ozIwMDAPBgNVHRMBAf8EBTADAQH/MB0GA1UdDgQWBBRf',
    'V0SQt5cJS5P0VwvAX7+5gjCcRjAKBggqhkjOPQQDAgNIADBFAiEAwk/XFbI8sKPIQ02YHyR6K3eAhsJeyGGQQj/9ugZGIWsCIB1Y/qVmd5IiZZcVSoEt',
    'AtzbuJaEbWB2IxOek6eeoKkV',
  ]),
  engineCert: pem('CERTIFICATE', [
    'MIIBeDCCAR6gAwIBAgIUWS7SB7hh29sFDtOLJ9IMoN1+fDswCgYIKoZIzj0EAwIwGjEYMBYGA1UEAwwPSGFyYm91ciB0ZXN0IENBMCAXDTIwMDEwMTAw',
    'MDAwMFoYDzIxMjAwMTAxMDAwMDAwWjARMQ8wDQYDVQQDDAZlbmdpbmUwWTATBgcqhkjOPQIBBggqhkjOPQMBBwNCAATs7tBst65601H0sh7xFESOvwQX',
    'QAkrxrIhh8qck+VeFKOQ+ywCbdeNBUHsj6NsvtiANPoD+ywbU0sS1NZbzTcLo0kwRzAPBgNVHREECDAGhwR/AAABMBMGA1UdJQQMMAoGCCsGAQUFBwMB',
    'MB8GA1UdIwQYMBaAFF9XRJC3lwlLk/RXC8Bfv7mCMJxGMAoGCCqGSM49BAMCA0gAMEUCIQCv/8IoIqtA6O1x8XNGLCwtTPrJWa/fVPOWME5M61pppAIg',
    'KHuFT0gHkU1yzXy21zHbcENQetrKMP4OOLjVU5Oi+xU=',
  ]),
  engineKey: pem('PRIVATE KEY', [
    'MIGHAgEAMBMGByqGSM49AgEGCCqGSM49AwEHBG0wawIBAQQg6v7sMq5sUAEeXCRK8rWZyVWIDxjK8pT1p8bH3yWviC2hRANCAATs7tBst65601H0sh7x',
    'FESOvwQXQAkrxrIhh8qck+VeFKOQ+ywCbdeNBUHsj6NsvtiANPoD+ywbU0sS1NZbzTcL',
  ]),
  clientCert: pem('CERTIFICATE', [
    'MIIBZjCCAQ2gAwIBAgIUR1pAovFUkIjpsWcue6djEzmqUlswCgYIKoZIzj0EAwIwGjEYMBYGA1UEAwwPSGFyYm91ciB0ZXN0IENBMCAXDTIwMDEwMTAw',
    'MDAwMFoYDzIxMjAwMTAxMDAwMDAwWjARMQ8wDQYDVQQDDAZoYXdzZXIwWTATBgcqhkjOPQIBBggqhkjOPQMBBwNCAARKsMc2yKvERarKjODcUXnt+zWg',
    '+VQMOO6jU7Upw/RvwM5r8f/hjnidXA9UPOBA1bZ90JLWefHuvHo885k2VdsQozgwNjATBgNVHSUEDDAKBggrBgEFBQcDAjAfBgNVHSMEGDAWgBRfV0SQ',
    't5cJS5P0VwvAX7+5gjCcRjAKBggqhkjOPQQDAgNHADBEAiBzJBzwbX2j0BE5R7epH+bEqvpbm9VQ32bA49lS64pwTAIgX8/KAWylxzXcWZ5/H6nnF+wr',
    '3o5mHZI+iT12kkp5npk=',
  ]),
  clientKey: pem('PRIVATE KEY', [
    'MIGHAgEAMBMGByqGSM49AgEGCCqGSM49AwEHBG0wawIBAQQgNIBGCCU9bFPDDnuC3AcL0GAz+Vs7sla6im+cifcsJzyhRANCAARKsMc2yKvERarKjODc',
    'UXnt+zWg+VQMOO6jU7Upw/RvwM5r8f/hjnidXA9UPOBA1bZ90JLWefHuvHo885k2VdsQ',
  ]),
} as const

/** For a client with TLS. */
export const clientTls = { ca: certificates.ca, cert: certificates.clientCert, key: certificates.clientKey }

/** A part of Docker's info. */
export const engineInfo = {
  ID: '7TRN:IPZB:QYBB:VPBQ:UMPP:KARE:6ZNR:XE6T:7EWV:PKF4:ZOJD:TPYS',
  Driver: 'overlay2',
  DriverStatus: [['Backing Filesystem', 'extfs']],
  Containers: 14,
  ContainersRunning: 3,
  ContainersPaused: 1,
  ContainersStopped: 10,
  Images: 508,
  Plugins: { Volume: ['local'], Network: ['bridge', 'host'], Authorization: [], Log: ['json-file'] },
  MemoryLimit: true,
  SwapLimit: false,
  CpuCfsPeriod: true,
  CpuCfsQuota: true,
  CPUShares: true,
  CPUSet: true,
  PidsLimit: true,
  OperatingSystem: 'Debian GNU/Linux 12 (bookworm)',
  NCPU: 4,
  Swarm: { NodeID: '', LocalNodeState: 'inactive' },
}

export interface TestEngine extends AsyncDisposable {
  readonly port: number
  /** Requests in order: method, path and the Host header. */
  readonly asked: { method: string; path: string; host: string }[]
  /** Sets the containers, newest first, and notifies followers. */
  show(containers: readonly TestContainer[]): void
}

export interface TestContainer {
  readonly id: string
  readonly name: string
  readonly running?: boolean
}

/** 64 hex digits, made of a word. */
export const containerId = (word: string): string => createHash('sha256').update(word).digest('hex')

export interface TestEngineOptions {
  /** TLS, only for certificates of ours. */
  secure?: boolean
  host?: string
  answer?: http.RequestListener
}

const json = (response: http.ServerResponse, body: unknown): void =>
  void response.setHeader('content-type', 'application/json').end(JSON.stringify(body))

export async function startEngine({
  secure = false,
  host = '127.0.0.1',
  answer,
}: TestEngineOptions = {}): Promise<TestEngine> {
  const asked: TestEngine['asked'] = []
  const followers = new Set<http.ServerResponse>()
  let containers: readonly TestContainer[] = []
  const listener: http.RequestListener = (request, response) => {
    asked.push({ method: request.method ?? '', path: request.url ?? '', host: request.headers.host ?? '' })
    if (answer) answer(request, response)
    else if (request.url === '/info') json(response, engineInfo)
    else if (request.url === '/version')
      json(response, { ApiVersion: '1.41', Arch: 'amd64', Version: '20.10.24' })
    else if (request.url?.startsWith('/containers/json'))
      json(
        response,
        containers.map(({ id, name, running = true }) => ({
          Id: id,
          Names: [`/${name}`],
          Image: 'local/busybox:1',
          State: running ? 'running' : 'exited',
        })),
      )
    else if (request.url?.startsWith('/events')) {
      response.writeHead(200, { 'content-type': 'application/json' }).flushHeaders()
      followers.add(response)
      response.once('close', () => followers.delete(response))
    } else response.writeHead(404).end()
  }
  const { engineCert: cert, engineKey: key, ca } = certificates
  const server = secure
    ? https.createServer({ cert, key, ca, requestCert: true, rejectUnauthorized: true }, listener)
    : http.createServer(listener)
  // Some tests give up in the middle of a handshake.
  server.on('tlsClientError', () => undefined)
  server.listen(0, host)
  await once(server, 'listening')
  return {
    port: (server.address() as AddressInfo).port,
    asked,
    show(now) {
      containers = now
      for (const follower of followers) follower.write('{"status":"start"}\n')
    },
    async [Symbol.asyncDispose]() {
      server.closeAllConnections()
      server.close()
      await once(server, 'close')
    },
  }
}
