// Asks a silent peer for a sign of life; any packet is one. After some questions without one the
// connection ends.
import { Reason, SshError } from '../errors.ts'
import type { Transport } from '../transport/transport.ts'
import type { ConnectionOptions } from './types.ts'

/** The reason for a connection that we have stopped reading. */
export const tooMuchUnread = 'Too much unread data is waiting here.'

export function keepalive(
  transport: Transport,
  { keepalive_ms, mostUnanswered }: Pick<ConnectionOptions, 'keepalive_ms' | 'mostUnanswered'>,
  ask: (name: string) => void,
): () => void {
  if (keepalive_ms === 0) return () => undefined
  let seen = transport.received
  let unanswered = 0
  const timer = setInterval(() => {
    if (transport.received !== seen) unanswered = 0
    else if (unanswered >= mostUnanswered) {
      const why = transport.reading ? 'The peer does not answer.' : tooMuchUnread
      transport.end(new SshError(Reason.connectionLost, why))
    }
    if (transport.received === seen) {
      unanswered += 1
      ask('keepalive@openssh.com')
    }
    seen = transport.received
  }, keepalive_ms).unref()
  return () => clearInterval(timer)
}
