// The parts of bench/evidence.ts that need whole paths, through gateway, tunnel and agent: what masking costs
// a terminal and a file transfer, and what part of a transfer it is to follow its SFTP and to hash its file.
// Figures are processor time for a MiB, of all threads of the server; each side is a session of its own, in
// turns. Masking is a setting of the namespace. SFTP is always followed, so that is measured alone: the same
// inspector gets the packets of the same download in this process, and hashes here, too.
import { spawn } from 'node:child_process'
import { once } from 'node:events'
import { globSync, mkdtempSync, readFileSync, rmSync, writeFileSync } from 'node:fs'
import os from 'node:os'
import path from 'node:path'
import { client } from '@hawser/contract/client'
import { sftpInspector } from '../ssh/src/sftp/inspector.ts'
import { Open, Sftp, Status } from '../ssh/src/sftp/protocol.ts'
import { Writer } from '../ssh/src/wire.ts'
import { buildWorld, type Agent, type World } from './access-world.ts'
import { tenant_id } from './fleet.ts'
import { atMost, compare, inTurns, line, type Row } from './kit.ts'
import { clientArgs, plainLogin, runClient, zeros, type Destination } from './openssh.ts'
import { root } from './programs.ts'

export interface PathOptions {
  /** Shown on a terminal in a turn. */
  readonly shown_mib: number
  /** Transferred in a turn. */
  readonly moved_mib: number
  readonly rounds: number
}

const mib = 1024 * 1024
/** The request size of OpenSSH's client. */
const piece_bytes = 32 * 1024

export async function pathRows(options: PathOptions): Promise<Row[]> {
  const folder = mkdtempSync(path.join(os.tmpdir(), 'hawser-evidence-'))
  try {
    await using world = await buildWorld({ folder, before: plainLogin(folder), profiles: undefined })
    const agent = await world.startAgent('gantry')
    const api = client({ url: `http://127.0.0.1:${world.server.port}`, token: world.token })
    const mask = (mask_secrets: boolean) =>
      api.namespaces.edit({ params: { tenant: tenant_id }, body: { settings: { mask_secrets } } })
    await api.namespaces.setSessionRecord({ params: { tenant: tenant_id }, body: { session_record: true } })
    return [
      await terminalRow(folder, world, agent, mask, options),
      ...(await transferRows(folder, world, agent, mask, options)),
    ]
  } finally {
    rmSync(folder, { recursive: true, force: true })
  }
}

type Mask = (on: boolean) => Promise<unknown>

/** For a MiB of this work, in milliseconds. */
async function cost_ms({ server }: World, size_mib: number, work: () => Promise<unknown>): Promise<number> {
  const before = server.cpu_s()
  await work()
  return ((server.cpu_s() - before) * 1000) / size_mib
}

/** The sources of this repository, some of which have texts of secrets. */
function textFile(folder: string, bytes: number): string {
  const sources = globSync('{server,ssh,agent}/src/**/*.ts', { cwd: root }).map((file) =>
    readFileSync(path.join(root, file)),
  )
  const all = Buffer.concat(sources)
  const file = path.join(folder, 'shown.txt')
  writeFileSync(file, Buffer.alloc(bytes, all))
  return file
}

async function terminalRow(
  folder: string,
  world: World,
  agent: Agent,
  mask: Mask,
  { shown_mib, rounds }: PathOptions,
): Promise<Row> {
  const file = textFile(folder, shown_mib * mib)
  const side = (on: boolean) => async (): Promise<number> => {
    await mask(on)
    return cost_ms(world, shown_mib, () => runClient(['-tt', ...clientArgs(agent.through), `cat ${file}`]))
  }
  const sides = { masked: side(true), unmasked: side(false) }
  await inTurns(sides, 1)
  const { masked, unmasked } = await inTurns(sides, rounds)
  return line('a recorded terminal, masked / not: processor', 'ms/MiB', compare(masked, unmasked))
}

async function transferRows(
  folder: string,
  world: World,
  agent: Agent,
  mask: Mask,
  { moved_mib, rounds }: PathOptions,
): Promise<Row[]> {
  const file = zeros(folder, moved_mib * mib)
  const side = (on: boolean) => async (): Promise<number> => {
    await mask(on)
    return cost_ms(world, moved_mib, () => download(agent.through, file))
  }
  const sides = { usual: side(true), unmasked: side(false), inspector: async () => inspected_ms(moved_mib) }
  await inTurns(sides, 1)
  const { usual, unmasked, inspector } = await inTurns(sides, rounds)
  const masking = compare(usual, unmasked)
  return [
    line('a transfer, masked / not: processor', 'ms/MiB', masking, atMost(1.03, masking.ratio)),
    line('following and hashing / the whole transfer: processor', 'ms/MiB', compare(inspector, usual)),
  ]
}

/** For a MiB of a download that is followed and hashed, in milliseconds. */
function inspected_ms(size_mib: number): number {
  let sha256: string | undefined
  const inspector = sftpInspector({ done: (operation) => (sha256 = operation.sha256) })
  const packet = (type: number, id: number, fields: (writer: Writer) => Writer): Buffer =>
    new Writer().string(fields(new Writer().byte(type).uint32(id)).bytes()).bytes()
  const count = (size_mib * mib) / piece_bytes
  const status = (id: number, code: number): Buffer =>
    packet(Sftp.status, id, (writer) => writer.uint32(code).string('').string(''))
  // Made before, as if they came from the tunnel; all answers have the same data.
  const requests = Array.from({ length: count + 1 }, (_, at) =>
    packet(Sftp.read, at + 1, (writer) =>
      writer
        .string('h')
        .uint64(BigInt(at * piece_bytes))
        .uint32(piece_bytes),
    ),
  )
  const answer = packet(Sftp.data, 0, (writer) => writer.string(Buffer.alloc(piece_bytes)))
  const before = process.cpuUsage()
  inspector.pass(
    'near',
    packet(Sftp.open, 0, (writer) => writer.string('/zeros').uint32(Open.read).uint32(0)),
  )
  inspector.pass(
    'far',
    packet(Sftp.handle, 0, (writer) => writer.string('h')),
  )
  for (const [at, request] of requests.entries()) {
    inspector.pass('near', request)
    answer.writeUInt32BE(at + 1, 5)
    inspector.pass('far', at < count ? answer : status(at + 1, Status.eof))
  }
  inspector.pass(
    'near',
    packet(Sftp.close, 0, (writer) => writer.string('h')),
  )
  inspector.pass('far', status(0, Status.ok))
  const { user, system } = process.cpuUsage(before)
  if (sha256 === undefined) throw new Error('the inspector did not follow the file to its end')
  return (user + system) / 1000 / size_mib
}

/** Downloads and discards a file. */
async function download(from: Destination, file: string): Promise<void> {
  const { port, user, keys } = from
  const settings = [
    'StrictHostKeyChecking=no',
    'UserKnownHostsFile=/dev/null',
    'LogLevel=ERROR',
    'IdentitiesOnly=yes',
    'BatchMode=yes',
  ].flatMap((one) => ['-o', one])
  const args = ['-q', '-F', 'none', '-i', keys.file, '-P', String(port), ...settings]
  const child = spawn('sftp', [...args, '-b', '-', `${user}@127.0.0.1`], {
    stdio: ['pipe', 'ignore', 'pipe'],
  })
  child.stdin.end(`get ${file} ${file}.fetched\n`)
  let complaint = ''
  child.stderr.setEncoding('utf8').on('data', (chunk: string) => (complaint += chunk))
  const [status] = (await once(child, 'close')) as [number | null]
  rmSync(`${file}.fetched`, { force: true })
  if (status !== 0) throw new Error(`sftp ended with ${status}: ${complaint}`)
}
