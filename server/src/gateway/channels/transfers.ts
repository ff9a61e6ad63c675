// Notes SFTP transfers and forwarded connections in a session's record. Bytes are inspected as they pass,
// without a delay. Unreadable SFTP passes, and the record says so; where the namespace restricts files, it
// does not pass.
import {
  ProtocolError,
  readPath,
  readTcpForward,
  sftpInspector,
  type Chunk,
  type Opening,
  type SftpOperation,
  type Side,
  type Tap,
} from '@hawser/ssh'
import type { SessionPolicy } from '../../domain/access/session-policy.ts'
import type { SessionEventLog } from '../../domain/sessions/session-events.ts'
import type { HashThread } from './hash-thread.ts'
import type { LivePolicy } from './live-policy.ts'

export interface TransferParts {
  readonly events: Pick<SessionEventLog, 'add'>
  mask(text: string): string
  readonly policy: LivePolicy
  /** Absent: files are hashed on this thread. */
  readonly hashing?: Pick<HashThread, 'hash'> | undefined
}

export interface SftpWatch {
  /** The bytes that pass instead; undefined: they pass as they are. Throws at what must not pass. */
  filter(from: Side, chunk: Chunk): readonly Uint8Array[] | undefined
  /** Why the channel had to end; undefined: it did not. */
  readonly failure: string | undefined
  end(): void
}

/** `onForbidden`: the policy has changed so that the channel must end, with a sentence for the client. */
export function watchSftp(
  { events, mask, policy, hashing }: TransferParts,
  onForbidden: (why: string) => void,
): SftpWatch {
  const restrictions = policy.rules().files
  const isRestricted = restrictions.reads !== undefined || restrictions.writes !== undefined
  let isFollowed = true
  let failure: string | undefined
  const unread = (why: string): void =>
    void events.add({ kind: 'unread', subject: 'sftp', outcome: 'partial', why: mask(why) })
  const inspector = sftpInspector({
    restrictions,
    done: (operation) => void events.add(eventOf(operation, mask)),
    lost: unread,
    ...(hashing ? { hash: hashing.hash } : {}),
  })
  // Earlier bytes passed by the former policy and may end within a packet, so what is newly forbidden ends
  // the channel, and what is newly allowed counts from the next one.
  const unfollow = policy.follow(() => {
    const { reads, writes } = policy.rules().files
    const why = (restrictions.writes ? undefined : writes) ?? (restrictions.reads ? undefined : reads)
    if (why !== undefined) onForbidden(why)
  })
  return {
    filter(from, { bytes, stream }) {
      if (!isFollowed || stream !== 0) return undefined
      try {
        const passed = inspector.pass(from, bytes)
        return isRestricted ? passed : undefined
      } catch (error) {
        if (!(error instanceof ProtocolError)) throw error
        isFollowed = false
        inspector.end()
        unread(error.message)
        if (!isRestricted) return undefined
        failure = unreadable
        throw error
      }
    },
    get failure() {
      return failure
    },
    end() {
      unfollow()
      if (isFollowed) inspector.end()
      isFollowed = false
    },
  }
}

const unreadable =
  'The policy of the namespace restricts transfers, and the SFTP traffic could not be parsed.'

const kinds = { read: 'download', write: 'upload' } as const

function eventOf(operation: SftpOperation, mask: (text: string) => string) {
  const { kind, path, target, bytes, sha256, refused } = operation
  const isTransfer = kind === 'read' || kind === 'write'
  return {
    kind: isTransfer ? kinds[kind] : kind,
    subject: mask(path),
    target: target === undefined ? undefined : mask(target),
    outcome:
      refused !== undefined
        ? ('refused' as const)
        : isTransfer && sha256 === undefined
          ? ('partial' as const)
          : ('done' as const),
    received: kind === 'write' ? bytes : 0,
    sent: kind === 'read' ? bytes : 0,
    sha256,
    why: refused,
  }
}

/** The other end of a forwarded connection. */
export interface ForwardTarget {
  readonly text: string
  whyNot(policy: SessionPolicy): string | undefined
}

export function forwardedBy({ type, payload }: Pick<Opening, 'type' | 'payload'>): ForwardTarget {
  const isDirect = type.startsWith('direct-')
  if (type.includes('streamlocal')) {
    const path = readPath(payload)
    const whyNot: ForwardTarget['whyNot'] = (policy) =>
      isDirect ? policy.forward({ path }) : policy.listen()
    return { text: `unix:${path}`, whyNot }
  }
  // Forwarding of an agent or of X11 opens no connection that a policy names.
  if (!type.endsWith('-tcpip')) return { text: type, whyNot: () => undefined }
  const { host, port } = readTcpForward(payload)
  const whyNot: ForwardTarget['whyNot'] = (policy) =>
    isDirect ? policy.forward({ host, port }) : policy.listen()
  return { text: addressText(host, port), whyNot }
}

export function addressText(host: string, port: number): string {
  return `${host.includes(':') ? `[${host}]` : host}:${port}`
}

/**
 * Forwarded connections carry bytes only. A request for a terminal, a program or a variable would bypass
 * every check of sessions, so all requests are refused.
 */
export function forwardTap(
  { events, mask, policy }: TransferParts,
  kind: 'forward' | 'remote-forward',
  { text, whyNot }: ForwardTarget,
  active: () => void,
): Tap {
  const count = { near: 0, far: 0 }
  return {
    opened(near, far) {
      const tell = events.add({ kind, subject: mask(text), outcome: 'open' })
      const unfollow = policy.follow(() => {
        if (whyNot(policy.rules()) === undefined) return
        void near.close('now')
        void far.close('now')
      })
      void Promise.all([near.closed, far.closed]).then(() => {
        unfollow()
        tell({ outcome: 'done', received: count.near, sent: count.far })
      })
    },
    data(from, { bytes }) {
      count[from] += bytes.length
      active()
    },
    request: () => 'refuse',
  }
}
