// The server's order to end all that runs for people, because the device was rejected or removed, or its
// namespace deleted. The agent holds sessions while the server is away, so without the order it would take
// the end of its tunnel for an outage. The order is a signature with the server's pinned key (server-key.ts)
// over the nonce of the agent's last request for a tunnel: neither a proxy nor a stranger at the server's
// address can give one, and an old one is worth nothing.
import { hangUp_ms, hangUpText } from '@hawser/contract/tunnel'
import { isSigned } from './server-key.ts'

/** The answer leaves before the server stops to wait for it. */
const patience_ms = hangUp_ms / 2

/** Whether the server with this pinned key (its blob) has signed the order. */
export async function isOrder(
  signature: unknown,
  { uid, nonce }: { readonly uid: string; readonly nonce: string },
  pinned: Buffer | undefined,
): Promise<boolean> {
  return isSigned(hangUpText(uid, nonce), signature, pinned)
}

/** A program that ignores SIGHUP is killed later, and delays nothing. */
export async function inTime(ending: readonly Promise<void>[]): Promise<void> {
  const late = Promise.withResolvers<void>()
  const timer = setTimeout(late.resolve, patience_ms)
  await Promise.race([Promise.all(ending), late.promise])
  clearTimeout(timer)
}
