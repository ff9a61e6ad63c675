// Fetches an agent's archive from the server, and continues one that was interrupted. No more is written than
// the signed statement says, and nothing of it is used before its hash is right.
import { createHash } from 'node:crypto'
import { createReadStream, createWriteStream, existsSync, readdirSync, rmSync, statSync } from 'node:fs'
import http from 'node:http'
import https from 'node:https'
import path from 'node:path'
import { Transform } from 'node:stream'
import { pipeline } from 'node:stream/promises'
import { defined } from '@hawser/contract/defined'
import type { Release } from '@hawser/contract/releases'

/** The server is busy, or the connection was lost: another attempt may work. */
export class FetchFailed extends Error {
  override readonly name = 'FetchFailed'
  readonly retryAfter_s: number | undefined
  constructor(message: string, retryAfter_s?: number) {
    super(message)
    this.retryAfter_s = retryAfter_s
  }
}

const silent_ms = 60_000
const ending = '.part'

/** Returns the file with the archive. */
export async function fetchArchive(
  server: string,
  release: Release,
  folder: string,
  signal: AbortSignal,
): Promise<string> {
  const file = path.join(folder, `${release.sha256}${ending}`)
  for (const name of readdirSync(folder))
    if (name.endsWith(ending) && name !== path.basename(file)) rmSync(path.join(folder, name))
  if (sizeOf(file) > release.size) rmSync(file)
  if (sizeOf(file) < release.size) await append(server, release, file, signal)
  const hash = createHash('sha256')
  for await (const part of createReadStream(file)) hash.update(part as Buffer)
  if (sizeOf(file) === release.size && hash.digest('hex') === release.sha256) return file
  rmSync(file)
  throw new FetchFailed('the archive is not the release that the server signed')
}

const sizeOf = (file: string): number => (existsSync(file) ? statSync(file).size : 0)

async function append(server: string, release: Release, file: string, signal: AbortSignal): Promise<void> {
  const have = sizeOf(file)
  const url = `${server}/agent/hawser-agent-linux-${release.arch}.tar.gz?sha256=${release.sha256}`
  const response = await get(url, have, signal)
  try {
    const status = response.statusCode ?? 0
    if (status !== 200 && status !== 206) {
      const wait = Number(response.headers['retry-after'])
      throw new FetchFailed(`the server answered ${status}`, Number.isFinite(wait) ? wait : undefined)
    }
    const begin = status === 206 ? have : 0
    let bytes = begin
    const bounded = new Transform({
      transform(part: Buffer, _encoding, done) {
        bytes += part.length
        done(bytes > release.size ? new FetchFailed('the server sent more than it signed') : null, part)
      },
    })
    await pipeline(response, bounded, createWriteStream(file, { flags: begin > 0 ? 'a' : 'w', mode: 0o600 }))
    if (bytes < release.size) throw new FetchFailed('the connection was lost')
  } catch (error) {
    response.destroy()
    if (isLost(error)) throw new FetchFailed('the connection was lost')
    // The agent must not fill the disk. An interrupted download continues later.
    if (!(error instanceof FetchFailed) && !signal.aborted) rmSync(file, { force: true })
    throw error
  }
}

/** Errors of the network. A device whose link comes and goes sees all of them. */
const lost =
  /^(E(CONNRESET|CONNREFUSED|TIMEDOUT|PIPE|NOTFOUND|AI_AGAIN|NETUNREACH|NETDOWN|HOSTUNREACH)|ERR_STREAM_PREMATURE_CLOSE)$/
const isLost = (error: unknown): boolean => lost.test((error as NodeJS.ErrnoException).code ?? '')

function get(url: string, from: number, signal: AbortSignal): Promise<http.IncomingMessage> {
  const { request } = url.startsWith('https:') ? https : http
  const range = from > 0 ? `bytes=${from}-` : undefined
  const headers = defined({ 'user-agent': 'hawser-agent', range })
  return new Promise((resolve, reject) => {
    const asked = request(url, { headers, signal, agent: false }, resolve)
    asked.setTimeout(silent_ms, () => asked.destroy(new FetchFailed('the server stopped answering')))
    asked.on('error', (error) => reject(isLost(error) ? new FetchFailed('the connection was lost') : error))
    asked.end()
  })
}
