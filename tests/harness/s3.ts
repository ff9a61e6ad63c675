// A real S3-compatible store for a test: Debian's OpenStack Swift with its S3 face, four small servers on
// free ports of this machine with their data in a temporary folder. It checks signatures: who does not know
// the secret is refused. The proxy, which is what clients speak to, can be stopped and started again on its
// port.
import { spawn, spawnSync, type ChildProcess } from 'node:child_process'
import { once } from 'node:events'
import { mkdirSync, mkdtempSync, rmSync, writeFileSync } from 'node:fs'
import net from 'node:net'
import os from 'node:os'
import path from 'node:path'
import { setTimeout as pause } from 'node:timers/promises'
import { freePort } from '../../ssh/test/programs.ts'

export interface Store extends AsyncDisposable {
  readonly endpoint: string
  readonly accessKey: string
  readonly secretKey: string
  /** For a server that stores its recordings there. */
  env(bucket: string): Record<string, string>
  stop(): Promise<void>
  start(): Promise<void>
}

const secretKey = 'of-the-tests-only'
const patience_ms = 60_000

export async function startStore(): Promise<Store> {
  const folder = mkdtempSync(path.join(os.tmpdir(), 'hawser-swift-'))
  const user = os.userInfo().username
  mkdirSync(path.join(folder, 'disks/only'), { recursive: true })
  const [account = 0, container = 0, object = 0, proxy = 0] = await Promise.all(
    Array.from({ length: 4 }, freePort),
  )
  const inner = { account, container, object }
  const common = (port: number): string =>
    `[DEFAULT]\nbind_ip = 127.0.0.1\nbind_port = ${port}\nworkers = 0\nuser = ${user}\nswift_dir = ${folder}\nlog_level = ERROR\n`
  for (const [kind, port] of Object.entries(inner))
    writeFileSync(
      path.join(folder, `${kind}.conf`),
      `${common(port)}devices = ${folder}/disks\nmount_check = false\ndisable_fallocate = true
[pipeline:main]\npipeline = ${kind}-server\n[app:${kind}-server]\nuse = egg:swift#${kind}\n`,
    )
  writeFileSync(path.join(folder, 'proxy.conf'), common(proxy) + proxyParts)
  // Debian’s own: another one on the path does not know its packages.
  const rings = spawnSync('/usr/bin/python3', ['-c', ringMaker, folder, JSON.stringify(inner)], {
    encoding: 'utf8',
  })
  if (rings.status !== 0) throw new Error(`the rings of the store could not be made: ${rings.stderr}`)

  const run = (kind: string): ChildProcess =>
    spawn(`swift-${kind}-server`, [path.join(folder, `${kind}.conf`)], {
      stdio: ['ignore', 'ignore', 'inherit'],
    })
  const end = async (child: ChildProcess): Promise<void> => {
    if (child.exitCode !== null || child.signalCode !== null) return
    child.kill('SIGKILL')
    await once(child, 'exit')
  }
  const servers = Object.keys(inner).map(run)
  let front: ChildProcess | undefined
  const store: Store = {
    endpoint: `http://127.0.0.1:${proxy}`,
    accessKey: 'hawser:tests',
    secretKey,
    env: (bucket) => ({
      HAWSER_RECORDINGS: `s3://${bucket}/kept`,
      HAWSER_S3_ENDPOINT: store.endpoint,
      HAWSER_S3_ACCESS_KEY: store.accessKey,
      HAWSER_S3_SECRET_KEY: secretKey,
    }),
    async start() {
      front = run('proxy')
      await answering(proxy)
    },
    async stop() {
      if (front) await end(front)
    },
    async [Symbol.asyncDispose]() {
      await store.stop()
      await Promise.all(servers.map(end))
      rmSync(folder, { recursive: true, force: true })
    },
  }
  try {
    await Promise.all(Object.values(inner).map(answering))
    await store.start()
    return store
  } catch (error) {
    await store[Symbol.asyncDispose]()
    throw error
  }
}

/** A cache is required but not needed: nobody listens at its address. */
const proxyParts = `[pipeline:main]
pipeline = catch_errors cache listing_formats s3api tempauth slo proxy-server
[filter:catch_errors]
use = egg:swift#catch_errors
[filter:cache]
use = egg:swift#memcache
memcache_servers = 127.0.0.1:1
[filter:listing_formats]
use = egg:swift#listing_formats
[filter:s3api]
use = egg:swift#s3api
location = us-east-1
[filter:tempauth]
use = egg:swift#tempauth
user_hawser_tests = ${secretKey} .admin
[filter:slo]
use = egg:swift#slo
[app:proxy-server]
use = egg:swift#proxy
account_autocreate = true
`

/** The place of each kind of thing: the only disk. */
const ringMaker = `
import json, sys
from swift.common.ring import RingBuilder
folder, ports = sys.argv[1], json.loads(sys.argv[2])
for kind, port in ports.items():
    builder = RingBuilder(4, 1, 0)
    builder.add_dev({'id': 0, 'region': 1, 'zone': 1, 'ip': '127.0.0.1', 'port': port, 'replication_ip': '127.0.0.1',
                     'replication_port': port, 'device': 'only', 'weight': 1, 'meta': ''})
    builder.rebalance()
    builder.get_ring().save('%s/%s.ring.gz' % (folder, kind))
`

async function answering(port: number): Promise<void> {
  for (const started = performance.now(); performance.now() - started < patience_ms; await pause(50)) {
    const socket = net.connect(port, '127.0.0.1')
    const there = await new Promise<boolean>((resolve) =>
      socket.once('connect', () => resolve(true)).once('error', () => resolve(false)),
    )
    socket.destroy()
    if (there) return
  }
  throw new Error(`the store does not answer on port ${port}`)
}
