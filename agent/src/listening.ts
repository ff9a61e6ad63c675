// The TCP ports on which this device listens, and the programs behind them, as the kernel lists them. The
// agent sees the programs of its own user; as root, those of everybody. The search is bounded and yields to
// everything else. Names of programs are text of strangers.
import { createReadStream, readdirSync, readFileSync, readlinkSync } from 'node:fs'
import { readdir } from 'node:fs/promises'
import { endianness } from 'node:os'
import { setImmediate as turn } from 'node:timers/promises'
import {
  longestListening_bytes,
  mostListening,
  type ListeningAnswer,
  type ListeningPort,
} from '@hawser/contract/tunnel'
import { plainAddress } from './services-setting.ts'

interface ListeningSocket {
  readonly address: string
  readonly port: number
  readonly inode: string
}

const mostProcesses = 4_096
const mostFiles = 4_096
const slice_ms = 4
/** The kernel lists sockets that listen before all others. */
const longestTable_bytes = 1024 * 1024
const longestProgram = 64
const frame_bytes = 64

export async function listeningPorts(proc = '/proc'): Promise<ListeningAnswer> {
  let tables: ListeningSocket[][]
  try {
    // The second is missing where IPv6 is disabled.
    tables = [await socketsIn(`${proc}/net/tcp`), await socketsIn(`${proc}/net/tcp6`).catch(() => [])]
  } catch {
    return { refused: 'failed' }
  }
  const sockets = new Map(tables.flat().map((each) => [`${each.port} ${each.address}`, each]))
  const sorted = [...sockets.values()]
    .toSorted((a, b) => a.port - b.port || (a.address < b.address ? -1 : 1))
    .slice(0, mostListening)
  const programs = await programsOf(
    proc,
    sorted.map(({ inode }) => inode),
  )
  let left_bytes = longestListening_bytes - frame_bytes
  const ports: ListeningPort[] = []
  for (const { address, port, inode } of sorted) {
    const row = { address, port, program: programs.get(inode) ?? '' }
    left_bytes -= Buffer.byteLength(JSON.stringify(row)) + 1
    if (left_bytes < 0) break
    ports.push(row)
  }
  return { ports }
}

/** Local address and port, remote ones, state 0A (listening), five more columns, inode. */
const row = /^ *\d+: ([\dA-F]{8}|[\dA-F]{32}):([\dA-F]{4}) [\dA-F:]+ 0A(?: +\S+){5} +(\d+)/gm

async function socketsIn(file: string): Promise<ListeningSocket[]> {
  let table = ''
  for await (const piece of createReadStream(file, { encoding: 'latin1', end: longestTable_bytes - 1 }))
    table += piece as string
  return Array.from(table.matchAll(row), ([, address = '', port = '', inode = '']) => ({
    address: readAddress(address),
    port: Number.parseInt(port, 16),
    inode,
  }))
}

/** The kernel prints each 32 bits as a number of this machine. */
function readAddress(hex: string): string {
  const bytes = Buffer.from(hex, 'hex')
  if (endianness() === 'LE') bytes.swap32()
  if (bytes.length === 4) return bytes.join('.')
  return plainAddress(bytes.toString('hex').match(/.{4}/g)!.join(':'))
}

/** By the inode of a socket. */
async function programsOf(proc: string, inodes: readonly string[]): Promise<Map<string, string>> {
  const missing = new Set(inodes)
  const found = new Map<string, string>()
  let since = performance.now()
  for (const pid of await processes(proc)) {
    for (const file of quietly(() => readdirSync(`${proc}/${pid}/fd`), []).slice(0, mostFiles)) {
      const link = quietly(() => readlinkSync(`${proc}/${pid}/fd/${file}`), '')
      const inode = /^socket:\[(\d+)\]$/.exec(link)?.[1] ?? ''
      if (missing.delete(inode)) found.set(inode, programOf(proc, pid))
      if (missing.size === 0) return found
      if (performance.now() - since < slice_ms) continue
      await turn()
      since = performance.now()
    }
  }
  return found
}

/** Process 1 last: it also holds sockets that it has opened for the services that it starts. */
async function processes(proc: string): Promise<string[]> {
  const names = await readdir(proc).catch((): string[] => [])
  const pids = names.filter((name) => /^\d+$/.test(name) && name !== '1').slice(0, mostProcesses - 1)
  return [...pids, '1']
}

function programOf(proc: string, pid: string): string {
  const name = quietly(() => readFileSync(`${proc}/${pid}/comm`, 'utf8'), '')
  const printable = name.replaceAll(/[^\p{L}\p{N}\p{P}\p{S} ]/gu, '').trim()
  // Node names its main thread like this.
  return [...printable.replace(/-MainThread$/, '')].slice(0, longestProgram).join('')
}

/** Processes end while they are looked at, and those of others may not be read. */
function quietly<T>(read: () => T, otherwise: T): T {
  try {
    return read()
  } catch {
    return otherwise
  }
}
