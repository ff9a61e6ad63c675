// Streams that are done with a buffer when its write has called back, so that the writer may use its memory
// again (@hawser/ssh does). The streams of a session are such if their carrier is. The key is a registered
// symbol: no stream has it by accident, and neither package needs the other.
import { Socket } from 'node:net'
import type { Duplex } from 'node:stream'

/** Declares that a stream does not hold a buffer after the callback of its write. */
export const releasesBuffers: unique symbol = Symbol.for('hawser.releasesBuffers')

/** True of sockets, whose bytes are then in the kernel, and of streams that declare it. */
export function isReleasing(stream: Duplex | (Duplex & { readonly [releasesBuffers]: boolean })): boolean {
  return stream instanceof Socket || (releasesBuffers in stream && stream[releasesBuffers])
}
