// A real ACME server for tests: pebble, by Let's Encrypt, with its DNS server, in which every name leads to
// 127.0.0.1 unless a test says otherwise. Go builds both once from its module proxy, at a fixed version; the
// folder is kept for the next run, and is whole or not there at all.
import { execFile, spawn, type ChildProcess } from 'node:child_process'
import { once } from 'node:events'
import { existsSync, mkdirSync, mkdtempSync, readFileSync, renameSync, rmSync } from 'node:fs'
import path from 'node:path'
import tls from 'node:tls'
import { promisify } from 'node:util'
import { freePort, type Folder } from '../../ssh/test/programs.ts'
import { makeAuthority } from './authority.ts'

const version = 'v2.10.1'
const cache = path.join(import.meta.dirname, '../../node_modules/.cache/hawser-tests')

export interface Pebble extends AsyncDisposable {
  /** For HAWSER_ACME_DIRECTORY; this process trusts its certificate. */
  readonly directory: string
  /** For http-01 challenges, instead of port 80. */
  readonly httpPort: number
  /** Points a name to another address than 127.0.0.1; undefined: resets it. */
  pointTo(name: string, address: string | undefined): Promise<void>
  /** Certificates since its start, by its log. */
  issued(): number
  stop(): Promise<void>
}

export async function startPebble(where: Folder, validity_s: number): Promise<Pebble> {
  const bin = await programs()
  const authority = await makeAuthority(where)
  const own = await authority.issue('pebble', 'IP:127.0.0.1')
  tls.setDefaultCACertificates([...tls.getCACertificates('default'), readFileSync(authority.file, 'utf8')])
  const [port, management, dns, dnsManagement, httpPort, tlsPort] = await Promise.all(
    Array.from({ length: 6 }, freePort),
  )
  const config = where.write(
    'pebble.json',
    JSON.stringify({
      pebble: {
        listenAddress: `127.0.0.1:${port}`,
        managementListenAddress: `127.0.0.1:${management}`,
        certificate: own.chain,
        privateKey: own.key,
        httpPort,
        tlsPort,
        externalAccountBindingRequired: false,
        retryAfter: { authz: 1, order: 1 },
        profiles: { default: { description: 'for tests', validityPeriod: validity_s } },
      },
    }),
  )
  let said = ''
  const start = (program: string, args: string[]): ChildProcess => {
    const child = spawn(path.join(bin, program), args, {
      env: { ...process.env, PEBBLE_VA_NOSLEEP: '1' },
      stdio: ['ignore', 'pipe', 'pipe'],
    })
    for (const stream of [child.stdout, child.stderr])
      stream?.on('data', (chunk: Buffer) => void (said += chunk.toString()))
    return child
  }
  const children = [
    start(
      'pebble-challtestsrv',
      Object.entries({
        defaultIPv4: '127.0.0.1',
        defaultIPv6: '',
        dnsserver: `127.0.0.1:${dns}`,
        management: `127.0.0.1:${dnsManagement}`,
        http01: '',
        https01: '',
        tlsalpn01: '',
        doh: '',
      }).flatMap(([name, value]) => [`-${name}`, value]),
    ),
    start('pebble', ['-config', config, '-dnsserver', `127.0.0.1:${dns}`]),
  ]
  const directory = `https://127.0.0.1:${port}/dir`
  for (const address of [directory, `http://127.0.0.1:${dnsManagement}/`])
    while (
      !(await fetch(address).then(
        () => true,
        () => false,
      ))
    ) {
      if (children.some(({ exitCode }) => exitCode !== null)) throw new Error(`pebble ended: ${said}`)
      await new Promise((resolve) => setTimeout(resolve, 50))
    }
  async function stop(): Promise<void> {
    for (const child of children) {
      if (child.exitCode !== null || child.signalCode !== null) continue
      const ended = once(child, 'exit')
      child.kill('SIGKILL')
      await ended
    }
  }
  return {
    directory,
    httpPort: httpPort ?? 0,
    async pointTo(name, address) {
      const body = JSON.stringify({ host: `${name}.`, ...(address ? { addresses: [address] } : {}) })
      await fetch(`http://127.0.0.1:${dnsManagement}/${address ? 'add-a' : 'clear-a'}`, {
        method: 'POST',
        body,
      })
    },
    issued: () => said.match(/Issued certificate serial/g)?.length ?? 0,
    stop,
    [Symbol.asyncDispose]: stop,
  }
}

async function programs(): Promise<string> {
  const bin = path.join(cache, `pebble-${version}`)
  if (existsSync(bin)) return bin
  mkdirSync(cache, { recursive: true })
  const building = mkdtempSync(path.join(cache, 'building-'))
  try {
    const module = 'github.com/letsencrypt/pebble/v2/cmd'
    await promisify(execFile)(
      'go',
      ['install', `${module}/pebble@${version}`, `${module}/pebble-challtestsrv@${version}`],
      { env: { ...process.env, GOBIN: building, PATH: `${process.env['PATH']}:/usr/local/go/bin` } },
    )
    renameSync(building, bin)
  } catch (error) {
    // Another process was first, and its folder is as good.
    if (!existsSync(bin)) throw error
  } finally {
    rmSync(building, { recursive: true, force: true })
  }
  return bin
}
