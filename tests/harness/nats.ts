// A real NATS server for tests, on a free port of 127.0.0.1, which can be stopped and started again on the
// same port.
import { spawn, type ChildProcess } from 'node:child_process'
import { once } from 'node:events'
import { connect } from 'node:net'
import { setTimeout as wait } from 'node:timers/promises'
import { freePort } from '../../ssh/test/programs.ts'

export interface Nats extends AsyncDisposable {
  readonly url: string
  stop(): Promise<void>
  start(): Promise<void>
}

export async function startNats(): Promise<Nats> {
  const port = await freePort()
  let child: ChildProcess | undefined

  async function start(): Promise<void> {
    const started = spawn('nats-server', ['-a', '127.0.0.1', '-p', String(port), '--no_advertise'], {
      stdio: 'ignore',
    })
    child = started
    for (;;) {
      if (started.exitCode !== null) throw new Error(`nats-server ended with ${started.exitCode}`)
      if (await answers(port)) return
      await wait(20)
    }
  }
  async function stop(): Promise<void> {
    if (!child || child.exitCode !== null || child.signalCode !== null) return
    const ended = once(child, 'exit')
    child.kill('SIGKILL')
    await ended
  }
  await start()
  return { url: `nats://127.0.0.1:${port}`, start, stop, [Symbol.asyncDispose]: stop }
}

async function answers(port: number): Promise<boolean> {
  const socket = connect(port, '127.0.0.1')
  try {
    await once(socket, 'connect')
    return true
  } catch {
    return false
  } finally {
    socket.destroy()
  }
}
