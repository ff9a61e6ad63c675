// A real container engine for a test: Debian's dockerd in a folder of its own, without any network, and an
// image made of the static busybox, since there is no registry. `await using docker = await startDocker()`;
// disposal stops everything and removes the folder. It needs root, as dockerd does. With `tls` it speaks TLS
// on TCP and only to those with a certificate of its authority.
import { spawn, type ChildProcess } from 'node:child_process'
import { once } from 'node:events'
import {
  chmodSync,
  chownSync,
  copyFileSync,
  createWriteStream,
  existsSync,
  mkdirSync,
  mkdtempSync,
  readFileSync,
  rmSync,
  symlinkSync,
  writeFileSync,
} from 'node:fs'
import net from 'node:net'
import os from 'node:os'
import path from 'node:path'
import { freePort, run } from '../../ssh/test/programs.ts'

export interface Docker extends AsyncDisposable {
  readonly folder: string
  /** As in a connector's address. */
  readonly socket: string
  /** On 127.0.0.1, with TLS if requested; 0: nowhere. */
  readonly port: number
  /** For a client with TLS. */
  readonly tls: { readonly ca: string; readonly cert: string; readonly key: string } | undefined
  /** Runs the command line's program; throws if it fails. */
  docker(...words: string[]): Promise<string>
  /** An idle container, until it is stopped; returns its id. */
  container(
    name: string,
    options?: { readonly image?: string; readonly flags?: readonly string[] },
  ): Promise<string>
  kill(): Promise<void>
  start(): Promise<void>
}

export const image = 'local/busybox:1'

export async function startDocker({
  tcp = false,
  tls = false,
}: { tcp?: boolean; tls?: boolean } = {}): Promise<Docker> {
  const folder = mkdtempSync(path.join(os.tmpdir(), 'hawser-docker-'))
  const at = (name: string): string => path.join(folder, name)
  const host = `unix://${at('docker.sock')}`
  const port = tcp || tls ? await freePort() : 0
  const material = tls ? await certificates(folder) : undefined
  const words = [
    '--iptables=false',
    '--ip6tables=false',
    '--bridge=none',
    '--shutdown-timeout=1',
    `--data-root=${at('data')}`,
    `--exec-root=${at('exec')}`,
    `--pidfile=${at('pid')}`,
    '-H',
    host,
    ...(port > 0 ? ['-H', `tcp://127.0.0.1:${port}`] : []),
    ...(tls
      ? [
          '--tlsverify',
          '--tlscacert',
          at('ca.pem'),
          '--tlscert',
          at('engine.pem'),
          '--tlskey',
          at('engine.key'),
        ]
      : ['--tls=false']),
  ]
  let daemon: ChildProcess | undefined

  async function docker(...asked: string[]): Promise<string> {
    const { status, stdout, stderr } = await run('docker', ['-H', host, ...asked])
    if (status !== 0) throw new Error(`docker ${asked.join(' ')}: ${stderr}`)
    return stdout.toString().trim()
  }

  async function start(): Promise<void> {
    const log = createWriteStream(at('log'), { flags: 'a' })
    await once(log, 'open')
    const child = spawn('dockerd', words, { stdio: ['ignore', log, log] })
    daemon = child
    const ended = once(child, 'exit').then(() => {
      throw new Error(`dockerd ended: ${readFileSync(at('log'), 'utf8').slice(-2_000)}`)
    })
    ended.catch(() => undefined)
    while (!(await isThere(at('docker.sock'))))
      await Promise.race([new Promise((resolve) => setTimeout(resolve, 100)), ended])
  }

  async function kill(): Promise<void> {
    const child = daemon
    daemon = undefined
    if (!child || child.exitCode !== null || child.signalCode !== null) return
    child.kill('SIGTERM')
    await once(child, 'exit')
  }

  await start()
  const ready: Docker = {
    folder,
    socket: host,
    port,
    tls: material,
    docker,
    container: async (name, { image: of = image, flags = [] } = {}) =>
      docker(
        'run',
        '-d',
        '--network',
        'none',
        '--stop-signal',
        'KILL',
        '--name',
        name,
        ...flags,
        of,
        'sleep',
        '1000000',
      ),
    kill,
    start,
    async [Symbol.asyncDispose]() {
      const all = daemon ? await docker('ps', '-aq').catch(() => '') : ''
      if (all) await docker('rm', '-f', ...all.split('\n')).catch(() => undefined)
      await kill()
      await unmountBelow(folder)
      rmSync(folder, { recursive: true, force: true, maxRetries: 10, retryDelay: 100 })
    },
  }
  try {
    await importImage(ready, image, [])
  } catch (error) {
    await ready[Symbol.asyncDispose]()
    throw error
  }
  return ready
}

/** A small system: busybox, root and pilot, and other files of this machine by path. */
export function rootfs(folder: string, more: readonly string[] = []): string {
  const root = path.join(folder, 'rootfs')
  rmSync(root, { recursive: true, force: true })
  for (const each of ['bin', 'etc', 'root', 'home/pilot', 'tmp', 'proc', 'dev', 'sys'])
    mkdirSync(path.join(root, each), { recursive: true })
  chownSync(path.join(root, 'home/pilot'), 1000, 1000)
  chmodSync(path.join(root, 'tmp'), 0o1777)
  copyFileSync('/bin/busybox', path.join(root, 'bin/busybox'))
  writeFileSync(
    path.join(root, 'etc/passwd'),
    'root:x:0:0:root:/root:/bin/sh\npilot:x:1000:1000:pilot:/home/pilot:/bin/bash\n',
  )
  writeFileSync(path.join(root, 'etc/group'), 'root:x:0:\npilot:x:1000:\ncrew:x:2000:pilot\n')
  for (const file of more) {
    mkdirSync(path.dirname(path.join(root, file)), { recursive: true })
    copyFileSync(file, path.join(root, file))
  }
  return root
}

export async function importImage(
  docker: Pick<Docker, 'folder' | 'docker'>,
  name: string,
  more: readonly string[],
): Promise<void> {
  const root = rootfs(docker.folder, more)
  const { stdout } = await run('/bin/busybox', ['--list'])
  for (const tool of stdout.toString().trim().split('\n')) {
    const link = path.join(root, 'bin', tool)
    if (!existsSync(link)) symlinkSync('busybox', link)
  }
  const tar = path.join(docker.folder, 'image.tar')
  const packed = await run('tar', ['-C', root, '-cf', tar, '.'])
  if (packed.status !== 0) throw new Error(packed.stderr)
  await docker.docker('import', '--change', 'CMD ["sh"]', tar, name)
  rmSync(tar)
}

/** An engine that had no time to stop its containers leaves its mounts behind. */
async function unmountBelow(folder: string): Promise<void> {
  const points = readFileSync('/proc/mounts', 'utf8')
    .split('\n')
    .map((line) => line.split(' ')[1] ?? '')
  for (const point of points.filter((each) => each.startsWith(`${folder}/`)).toReversed())
    await run('umount', ['-l', point])
}

export async function isThere(socket: string): Promise<boolean> {
  return new Promise((resolve) => {
    const line = net.connect(socket)
    line.once('connect', () => resolve(true)).once('error', () => resolve(false))
    line.once('connect', () => line.destroy())
  })
}

/** For the engine at 127.0.0.1 and its client; as files and as text. */
export async function certificates(folder: string, name = ''): Promise<NonNullable<Docker['tls']>> {
  const file = (each: string): string => path.join(folder, `${name}${each}`)
  const openssl = async (...words: string[]): Promise<void> => {
    const { status, stderr } = await run('openssl', words)
    if (status !== 0) throw new Error(stderr)
  }
  const key = ['-newkey', 'ec', '-pkeyopt', 'ec_paramgen_curve:prime256v1', '-nodes']
  await openssl(
    'req',
    '-x509',
    ...key,
    '-keyout',
    file('ca.key'),
    '-out',
    file('ca.pem'),
    '-days',
    '2',
    '-subj',
    `/CN=${name}authority`,
  )
  for (const [each, extensions] of [
    ['engine', 'subjectAltName=IP:127.0.0.1\nextendedKeyUsage=serverAuth\n'],
    ['client', 'extendedKeyUsage=clientAuth\n'],
  ] as const) {
    writeFileSync(file(`${each}.ext`), extensions)
    await openssl(
      'req',
      ...key,
      '-keyout',
      file(`${each}.key`),
      '-out',
      file(`${each}.csr`),
      '-subj',
      `/CN=${each}`,
    )
    const authority = ['-CA', file('ca.pem'), '-CAkey', file('ca.key'), '-CAcreateserial']
    const signed = [
      'x509',
      '-req',
      '-in',
      file(`${each}.csr`),
      ...authority,
      '-out',
      file(`${each}.pem`),
      '-days',
      '2',
    ]
    await openssl(...signed, '-extfile', file(`${each}.ext`))
  }
  const text = (each: string): string => readFileSync(file(each), 'utf8')
  return { ca: text('ca.pem'), cert: text('client.pem'), key: text('client.key') }
}
