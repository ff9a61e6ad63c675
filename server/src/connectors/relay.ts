// A connection to a port of a container by the engine's exec API: a program of the container connects there,
// and its input and output are the connection. So nothing of the server's own network is opened, whatever
// addresses an engine names.
import { Duplex } from 'node:stream'
import { startExec, type EngineClient, type Exec } from '@hawser/engine'

/** The programs that images bring for it, the most usual first. Host and port are arguments, never text of it. */
const script = `
for name in nc ncat netcat; do command -v $name >/dev/null 2>&1 && exec $name "$0" "$1"; done
command -v socat >/dev/null 2>&1 && exec socat - "TCP:$0:$1"
command -v bash >/dev/null 2>&1 && exec bash -c 'exec 3<>"/dev/tcp/$0/$1" || exit 1; cat <&3 & cat >&3; kill $! 2>/dev/null' "$0" "$1"
exit 127`
const noProgram = 127

class NotRelayed extends Error {
  readonly why: 'unsupported' | 'closed' | 'failed'
  constructor(why: NotRelayed['why']) {
    super(`The container could not connect: ${why}.`)
    this.why = why
  }
}

/** The user is the one of the image. */
export async function relayTo(
  client: EngineClient,
  { container, port }: { readonly container: string; readonly port: number },
  signal: AbortSignal,
): Promise<Duplex> {
  const command = ['/bin/sh', '-c', script, '127.0.0.1', String(port)]
  return new Relay(await startExec(client, { container, command, user: '' }, signal))
}

class Relay extends Duplex {
  readonly #exec: Exec
  readonly #output: AsyncIterator<{ readonly stream: 0 | 1; readonly bytes: Buffer }>
  #isSilent = true

  constructor(exec: Exec) {
    super()
    this.#exec = exec
    this.#output = exec.output[Symbol.asyncIterator]()
  }

  override _read(): void {
    this.#next().catch((error: Error) => this.destroy(error))
  }

  async #next(): Promise<void> {
    for (;;) {
      const next = await this.#output.next()
      if (next.done === true) return this.#end()
      const { value } = next
      // Programs complain on the stream of errors, which says nothing that a browser could use.
      if (value.stream !== 0) continue
      this.#isSilent = false
      return void this.push(value.bytes)
    }
  }

  async #end(): Promise<void> {
    if (this.destroyed) return
    if (!this.#isSilent) return void this.push(null)
    const status = await this.#exec.exit().catch(() => undefined)
    this.destroy(
      new NotRelayed(status === noProgram ? 'unsupported' : status === undefined ? 'failed' : 'closed'),
    )
  }

  override _write(bytes: Buffer, _: BufferEncoding, done: (error?: Error | null) => void): void {
    void this.#exec.write(bytes).then((taken) => done(taken ? null : new NotRelayed('failed')))
  }

  override _final(done: () => void): void {
    this.#exec.endInput()
    done()
  }

  override _destroy(error: Error | null, done: (error?: Error | null) => void): void {
    this.#exec.close()
    done(error)
  }
}
