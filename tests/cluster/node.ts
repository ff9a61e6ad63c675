// A node of a cluster in a process of its own, which can be killed, and started again on its folder.
import { spawn, type ChildProcess } from 'node:child_process'
import { once } from 'node:events'
import { mkdtempSync, rmSync } from 'node:fs'
import os from 'node:os'
import path from 'node:path'
import { createInterface } from 'node:readline'
import type { Cluster } from './cluster.ts'

export interface Node extends AsyncDisposable {
  readonly url: string
  readonly sshPort: number
  readonly child: ChildProcess
  /** Kills it, and waits until it is dead. */
  kill(): Promise<void>
}

export interface NodeOptions {
  /** Its data folder, which stays; else one of its own. */
  readonly folder?: string
}

export async function startNode(
  { database, env }: Pick<Cluster, 'database' | 'env'>,
  options: NodeOptions = {},
): Promise<Node> {
  const data = options.folder ?? mkdtempSync(path.join(os.tmpdir(), 'hawser-node-'))
  const child = spawn(process.execPath, [path.join(import.meta.dirname, '../../hawser.ts'), 'serve'], {
    env: {
      PATH: process.env['PATH'],
      HAWSER_HTTP: '127.0.0.1:0',
      HAWSER_SSH: '127.0.0.1:0',
      HAWSER_DATA: data,
      HAWSER_DATABASE: database,
      HAWSER_RATE_LIMIT: '0/10',
      ...env,
    },
    stdio: ['ignore', 'pipe', 'inherit'],
  })
  const ports = new Map<string, number>()
  for await (const line of createInterface(child.stdout)) {
    const { event, port } = JSON.parse(line) as { event: string; port?: number }
    if (port !== undefined) ports.set(event, port)
    if (ports.has('http.listening') && ports.has('ssh.listening')) break
  }
  child.stdout.resume()
  const kill = async (): Promise<void> => {
    if (child.exitCode !== null || child.signalCode !== null) return
    child.kill('SIGKILL')
    await once(child, 'exit')
  }
  return {
    url: `http://127.0.0.1:${ports.get('http.listening')}`,
    sshPort: ports.get('ssh.listening')!,
    child,
    kill,
    async [Symbol.asyncDispose]() {
      await kill()
      if (options.folder === undefined) rmSync(data, { recursive: true, force: true })
    },
  }
}
