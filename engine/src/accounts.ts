// The users of a container, read from its own files by the engine's archive API, which needs no program in
// the container. A container without /etc/passwd has root and nobody else. An archive is POSIX tar; of one
// file it is: optional entries with more about it, a block of 512 bytes (size in octal at 124, type at 156,
// where a link leads at 157), the bytes.
import path from 'node:path'
import { EngineFailure, type EngineClient } from './client.ts'
import { readShadow, accountState, today_days } from './shadow.ts'

export interface ContainerAccount {
  readonly name: string
  readonly uid: number
  /** In the engine's notation. */
  readonly execUser: string
  readonly home: string
  readonly shell: string
}

const largest_bytes = 1024 * 1024
const mostLinks = 8
const defaultShell = '/bin/sh'
/** Allowed in names by every system, and plain to the engine and a shell. */
const possible = /^[A-Za-z_][A-Za-z0-9_.-]{0,63}$/

export async function findAccount(
  client: EngineClient,
  container: string,
  user: string,
): Promise<ContainerAccount | undefined> {
  if (!possible.test(user)) return undefined
  const text = await readContainerFile(client, container, '/etc/passwd')
  if (text === undefined)
    return user === 'root'
      ? { name: 'root', uid: 0, execUser: '0', home: '/', shell: defaultShell }
      : undefined
  // name : password : uid : gid : about : home : shell
  for (const line of text.split('\n')) {
    const [name, , uid = '', gid = '', , home = '', shell = ''] = line.trimEnd().split(':')
    if (name !== user || !/^\d{1,10}$/.test(uid) || !/^\d{1,10}$/.test(gid)) continue
    return {
      name,
      uid: Number(uid),
      execUser: name,
      home: home.startsWith('/') ? home : '/',
      shell: shell || defaultShell,
    }
  }
  return undefined
}

const noShells = new Set(['nologin', 'false'])
/** Only root may log in while one of these exists. */
const noLogin = ['/run/nologin', '/etc/nologin']

/** By the rules of every other machine; undefined: the account is open. The reason is for the log. */
export async function closedBecause(
  client: EngineClient,
  container: string,
  account: ContainerAccount,
): Promise<string | undefined> {
  if (noShells.has(path.posix.basename(account.shell))) return 'no login shell'
  if (account.uid !== 0)
    for (const file of noLogin)
      if ((await readContainerFile(client, container, file)) !== undefined) return 'no logins now'
  const entry = readShadow((await findShadow(client, container, account.name)) ?? '')
  return entry && accountState(entry, today_days(Date.now())).closed
}

export async function findShadow(
  client: EngineClient,
  container: string,
  user: string,
): Promise<string | undefined> {
  const text = await readContainerFile(client, container, '/etc/shadow')
  return text?.split('\n').find((line) => line.startsWith(`${user}:`))
}

/** Undefined: there is no such file. */
export async function readContainerFile(
  client: EngineClient,
  container: string,
  file: string,
): Promise<string | undefined> {
  let where = file
  for (let links = 0; links < mostLinks; links += 1) {
    let archive: Buffer
    try {
      archive = await client.bytes(
        `/containers/${container}/archive?path=${encodeURIComponent(where)}`,
        largest_bytes,
      )
    } catch (error) {
      if (error instanceof EngineFailure && error.status === 404) return undefined
      throw error
    }
    const entry = firstEntry(archive)
    if (!entry) return undefined
    if (entry.link === undefined) return entry.bytes.toString('utf8')
    where = path.posix.resolve(path.posix.dirname(where), entry.link)
  }
  return undefined
}

function firstEntry(archive: Buffer): { bytes: Buffer; link: string | undefined } | undefined {
  const block = 512
  for (let at = 0; at + block <= archive.length;) {
    const head = archive.subarray(at, at + block)
    const type = String.fromCharCode(head[156]!)
    const size = Number.parseInt(head.toString('latin1', 124, 136), 8)
    if (!Number.isSafeInteger(size) || size < 0) return undefined
    at += block
    if (type === '0' || type === '\0') return { bytes: archive.subarray(at, at + size), link: undefined }
    if (type === '2')
      return { bytes: Buffer.alloc(0), link: head.toString('utf8', 157, 257).replace(/\0.*$/s, '') }
    // Only entries that describe the next one may come before it.
    if (!'xgLK'.includes(type)) return undefined
    at += Math.ceil(size / block) * block
  }
  return undefined
}
