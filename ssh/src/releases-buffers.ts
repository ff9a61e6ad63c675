// Streams that are done with a buffer when its write has called back. Packets for such a stream are sealed in
// memory that is used again; for every other stream each packet gets memory of its own. A stream that keeps
// or hands on what was written to it must not say this of itself: the peer would get the bytes of another
// packet. The key is a symbol, so that no stream says it by accident, and a registered one, so that a package
// that does not depend on this one can say it.
import { Socket } from 'node:net'
import type { Duplex } from 'node:stream'

/** Declares that a stream does not hold a buffer after the callback of its write. */
export const releasesBuffers: unique symbol = Symbol.for('hawser.releasesBuffers')

/** A stream that does not hold a buffer after the callback of its write. */
export interface ReleasesBuffers {
  readonly [releasesBuffers]: boolean
}

/** True of sockets, whose bytes are then in the kernel, and of streams that declare it. */
export function isReleasing(stream: Duplex | (Duplex & ReleasesBuffers)): boolean {
  return stream instanceof Socket || (releasesBuffers in stream && stream[releasesBuffers])
}
