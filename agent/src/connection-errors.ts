// Why a call to the server failed, in a sentence for the person who set its address. Loaded only after a
// failure. Where the address may confuse HTTP with HTTPS, or name the SSH port, it probes the port first.
import http from 'node:http'
import tls from 'node:tls'

/** For one question to an unknown server. */
const limit_ms = 5_000

/** The error codes of Node and OpenSSL for an other side without TLS. */
const noTls =
  /^(EPROTO|ERR_SSL_(WRONG_VERSION_NUMBER|PACKET_LENGTH_TOO_LONG|HTTP_REQUEST|RECORD_LAYER_FAILURE))$/
/** The other side ended the connection, or does not speak HTTP. */
const noHttp = /^(ECONNRESET|EPIPE|HPE_\w+)$/

interface Failed extends Error {
  readonly code?: string
  /** The bytes that could not be parsed. */
  readonly rawPacket?: Buffer
}

export async function explained(error: Failed, address: string): Promise<Error> {
  const url = new URL(address)
  const code = codeOf(error)
  const sentence =
    (url.protocol === 'https:' ? await withoutTls(code, url) : await withTls(code, url, error)) ??
    sentenceOf(error, code, url)
  return sentence === undefined ? error : new Error(sentence, { cause: error })
}

/** When a name has several addresses, each has its own error, and the error for all has no code. */
const codeOf = (error: Failed): string =>
  error.code ??
  (error instanceof AggregateError ? (error.errors as Failed[])[0]?.code : undefined) ??
  error.name

async function withoutTls(code: string, url: URL): Promise<string | undefined> {
  if (!noTls.test(code)) return undefined
  return (await speaksHttp(url))
    ? `The server at ${url.host} speaks HTTP, not HTTPS: use http://${url.host}.`
    : `The service at ${url.host} does not speak HTTPS: use the address and the port of the web console.`
}

async function withTls(code: string, url: URL, { rawPacket }: Failed): Promise<string | undefined> {
  if (!noHttp.test(code)) return undefined
  if (rawPacket?.subarray(0, 4).toString() === 'SSH-')
    return `An SSH server listens at ${url.host}: use the address and the port of the web console.`
  return (await speaksTls(url))
    ? `The server at ${url.host} speaks HTTPS, not HTTP: use https://${url.host}.`
    : undefined
}

/** Servers and proxies answer plain HTTP on their TLS port with a 400; ours ends the connection. */
export async function plainRefused(status: number, address: string): Promise<string | undefined> {
  const url = new URL(address)
  if (status !== 400 || url.protocol !== 'http:' || !(await speaksTls(url))) return undefined
  return `The server at ${url.host} speaks HTTPS, not HTTP: use https://${url.host}.`
}

function sentenceOf(error: Failed, code: string, url: URL): string | undefined {
  if (code === 'ECONNREFUSED') return `Nothing listens at ${url.host}: the connection was refused.`
  if (code === 'ENOTFOUND' || code === 'EAI_AGAIN')
    return `The name ${url.hostname} cannot be resolved. Check the name, and that this device is online.`
  if (code === 'EHOSTUNREACH' || code === 'ENETUNREACH') return `${url.hostname} cannot be reached from here.`
  if (code === 'ETIMEDOUT' || code === 'TimeoutError' || code === 'ABORT_ERR')
    return `${url.host} does not answer.`
  if (/CERT|SIGNATURE/.test(code))
    return `The certificate of ${url.host} is not accepted: ${error.message} (check the clock of this device)`
  return error.message === '' ? `The call to ${url.host} failed: ${code}.` : undefined
}

function speaksHttp({ hostname, port }: URL): Promise<boolean> {
  return new Promise((resolve) => {
    const asked = http.request({
      hostname: bare(hostname),
      port: port || 443,
      path: '/healthcheck',
      agent: false,
    })
    asked.setTimeout(limit_ms, () => asked.destroy(new Error('no answer')))
    asked.on('response', (response) => {
      response.destroy()
      resolve(true)
    })
    asked.on('error', () => resolve(false))
    asked.end()
  })
}

/** Sends nothing, so that the certificate does not matter. */
function speaksTls({ hostname, port }: URL): Promise<boolean> {
  return new Promise((resolve) => {
    const socket = tls.connect({ host: bare(hostname), port: Number(port) || 80, rejectUnauthorized: false })
    const done = (answer: boolean) => () => {
      resolve(answer)
      socket.destroy()
    }
    socket.setTimeout(limit_ms, done(false))
    socket.on('secureConnect', done(true))
    socket.on('error', done(false))
  })
}

/** A URL has brackets around an IPv6 address; connect takes none. */
const bare = (hostname: string): string => hostname.replace(/^\[(.*)\]$/, '$1')
