// The windows of all channels of one connection. A window is a promise to hold as much for the peer as it may
// send before somebody reads, so that all of them together must be what one connection may make us hold.
// Every channel has a small one at least. What is above that comes out of what all share, to its users:
// a channel whose reader keeps up gets twice as much with every window that passes, until it has the largest,
// or as much as is left for the others; one whose reader is slow gives back half of it with every step. Of
// what is shared, one half is for that alone; the other half also lets the first few channels begin with a
// larger window.

export interface Windows {
  /** For a channel that is about to be opened. */
  open(): Window
  /** The bound of all windows together. */
  readonly most_bytes: number
}

export interface Window {
  /** Sent by the peer before anything is read. */
  readonly size_bytes: number
  /**
   * Notes read bytes. Returns what the peer may send in addition, 0 while it is not worth a message. The
   * window grows only if it may.
   */
  taken(bytes: number, mayGrow?: boolean): number
  close(): void
}

export interface WindowsOptions {
  readonly largest_bytes: number
  readonly mostChannels: number
}

const least_bytes = 32 * 1024
const first_bytes = 256 * 1024
const shared_bytes = 8 * 1024 * 1024
/** A new window takes at most this part of what is left. */
const firstPart = 8
/** The window is opened again in steps of this part of it. */
const creditSteps = 8
/** A window grows if a step of it is read within this time. */
const quick_ms = 500

export function windowsOf({ largest_bytes, mostChannels }: WindowsOptions): Windows {
  const least = Math.min(least_bytes, largest_bytes)
  let free_bytes = shared_bytes

  return {
    most_bytes: shared_bytes + mostChannels * least,
    open() {
      const forFirst = Math.max(0, Math.floor((free_bytes - shared_bytes / 2) / firstPart))
      /** Taken out of the shared memory. */
      let extra_bytes = Math.min(first_bytes, largest_bytes, least + forFirst) - least
      let read_bytes = 0
      let given_at: number | undefined
      let closed = false
      free_bytes -= extra_bytes

      /** Negative: the window shrinks. */
      const change = (mayGrow: boolean): number => {
        const now = performance.now()
        const before = given_at
        given_at = now
        if (closed || before === undefined) return 0
        const quick = now - before < quick_ms
        // Nobody has more than is left for the others.
        const left = mayGrow ? Math.max(0, Math.floor((free_bytes - extra_bytes) / 2)) : 0
        const grown = quick
          ? Math.min(read_bytes, largest_bytes - least - extra_bytes, left)
          : -Math.min(read_bytes, Math.ceil(extra_bytes / 2))
        extra_bytes += grown
        free_bytes -= grown
        return grown
      }
      return {
        get size_bytes() {
          return least + extra_bytes
        },
        taken(bytes, mayGrow = true) {
          read_bytes += bytes
          if (read_bytes < (least + extra_bytes) / creditSteps) return 0
          const credit = change(mayGrow) + read_bytes
          read_bytes = 0
          return credit
        },
        close() {
          if (closed) return
          closed = true
          free_bytes += extra_bytes
        },
      }
    },
  }
}
