// Connections to a host and a port that a device reaches, in the ways that agents know: ours by a protocol of
// their own, with the server's approval; those of ShellHub by their HTTP proxy, on a stream of a version 2
// tunnel or on a picked-up WebSocket.
import type { Duplex } from 'node:stream'
import {
  targetRefusals,
  type TargetAddress,
  type TargetAnswer,
  type TargetRefusal,
} from '@hawser/contract/tunnel'
import { multistream } from '@hawser/mux'
import { hostAndPort } from '../kit/address.ts'
import { Unreachable } from './tunnel.ts'

/** `unsupported`: the agent has no way to connect to a target. */
export type WhyNoTarget = TargetRefusal | 'unsupported'

const known: ReadonlySet<string> = new Set<WhyNoTarget>([...targetRefusals, 'unsupported'])
const spelled = 'target: '

/** Its message is the reason, which also passes between nodes. */
export class TargetRefused extends Unreachable {
  readonly why: WhyNoTarget
  constructor(why: WhyNoTarget) {
    super(`${spelled}${why}`)
    this.why = why
  }
}

/** The refusal that another node has reported, or the error itself. */
export function asTargetRefused(error: unknown): unknown {
  if (!(error instanceof Unreachable) || !error.message.startsWith(spelled)) return error
  const why = error.message.slice(spelled.length)
  return known.has(why) ? new TargetRefused(why as WhyNoTarget) : error
}

const longestAnswer_bytes = 4_096
const longestHead_bytes = 8_192

/** Reads the answer of an agent of ours off the stream; throws TargetRefused. */
export async function readTargetAnswer(stream: Duplex, signal: AbortSignal): Promise<void> {
  const answer = (await readObject(stream, signal)) as Partial<Record<'open' | 'refused', unknown>> &
    Partial<TargetAnswer>
  if (answer.open === true) return
  const why = String(answer.refused)
  throw new TargetRefused(known.has(why) ? (why as WhyNoTarget) : 'failed')
}

/** The answer of an agent of ShellHub, which has only a text for what failed. */
export async function readShellHubAnswer(stream: Duplex, signal: AbortSignal): Promise<void> {
  const { status, error } = (await readObject(stream, signal)) as { status?: unknown; error?: unknown }
  if (status !== 'ok') throw new TargetRefused(refusalIn(typeof error === 'string' ? error : ''))
}

async function readObject(stream: Duplex, signal: AbortSignal): Promise<object> {
  const answer: unknown = JSON.parse(await multistream.readLine(stream, longestAnswer_bytes, signal))
  if (typeof answer !== 'object' || answer === null) throw new TargetRefused('failed')
  return answer
}

/** The words of Go's network errors. */
function refusalIn(text: string): TargetRefusal {
  if (/connection refused/.test(text)) return 'closed'
  if (/timeout|timed out/.test(text)) return 'timeout'
  return /no route|unreachable|no such host/.test(text) ? 'unreachable' : 'failed'
}

/** Asks an agent behind a picked-up WebSocket, which is an HTTP server there. */
export async function connectByHttp(
  stream: Duplex,
  target: TargetAddress,
  signal: AbortSignal,
): Promise<void> {
  const place = hostAndPort(target)
  stream.write(`CONNECT /http/proxy/${place} HTTP/1.1\r\nHost: ${place}\r\nUser-Agent: Hawser\r\n\r\n`)
  const lines: string[] = []
  for (let left = longestHead_bytes; ; left -= lines.at(-1)!.length) {
    if (left <= 0) throw new TargetRefused('failed')
    const line = (await multistream.readLine(stream, longestAnswer_bytes, signal)).replace(/\r$/, '')
    if (line === '') break
    lines.push(line)
  }
  const status = /^HTTP\/1\.[01] (\d{3})(?: |$)/.exec(lines[0] ?? '')?.[1]
  if (status === '200') return
  throw new TargetRefused(status === '404' || status === '405' ? 'unsupported' : 'closed')
}
