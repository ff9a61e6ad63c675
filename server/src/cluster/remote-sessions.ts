// Finds the sessions of other nodes that somebody may continue here. The database says which nodes have live
// sessions of the person; each of those nodes says itself what may be continued, and by whom. They are asked
// at the same time. One that does not answer is named by the beginning of its id, which the log has, too.
// Where nothing can be found out, the sessions of this node are all that there are.
import type { Duplex } from 'node:stream'
import type { Bus } from '../bus/bus.ts'
import type { RemoteAttachRequest } from '../gateway/carried-terminal.ts'
import type { RemoteSession, RemoteSessions } from '../gateway/coming-back.ts'
import type { Claim, HeldSessions } from '../gateway/held-sessions.ts'
import type { Log } from '../kit/log.ts'
import type { Stores } from '../storage/stores.ts'
import type { PeerAddress } from './peers.ts'

export interface RemoteSessionsParts {
  stores: Stores
  bus: Bus
  /** The id of this node. */
  node: string
  log: Log
  /** A stream to the terminal of a session on another node. */
  open(address: PeerAddress, request: RemoteAttachRequest): Promise<Duplex>
}

/** Rows of the database that are looked at, and sessions that one node may name. */
const mostRows = 50
const mostNamed = 10
const name_characters = 8

interface Answer {
  readonly address: PeerAddress
  readonly sessions: readonly Pick<RemoteSession, 'uid' | 'started_at' | 'held_until'>[]
}

const nameOf = (node: string): string => `sessions.${node}`

export function remoteSessions({ stores, bus, node, log, open }: RemoteSessionsParts): RemoteSessions {
  async function nodesWith(...[claim, person, heldOnly]: Parameters<RemoteSessions['of']>) {
    const { tenant_id, device_uid, username } = claim
    const account = { device_uid, username, person_kind: person.kind, person_id: person.id }
    const rows = await stores.of(tenant_id).sessions.onOtherNodes(account, node, mostRows)
    return new Set(rows.flatMap((row) => (heldOnly && row.held_until === '' ? [] : row.node)))
  }

  async function ask(other: string, claim: Claim): Promise<RemoteSession[] | 'silent'> {
    try {
      const said = await bus.seek(nameOf(other), JSON.stringify(claim))
      // A node that is gone has no sessions any more.
      if (said === undefined) return []
      const { address, sessions } = JSON.parse(said) as Answer
      return sessions.map((session) => ({ ...session, open: async (request) => open(address, request) }))
    } catch (err) {
      log.warn({ event: 'node.silent', other, err })
      return 'silent'
    }
  }

  return {
    async of(claim, person, heldOnly) {
      const nodes = await nodesWith(claim, person, heldOnly).catch((err: unknown) => {
        log.warn({ event: 'sessions.unsought', err })
        return new Set<string>()
      })
      const asked = [...nodes].map(async (other) => [other, await ask(other, claim)] as const)
      const answers = await Promise.all(asked)
      return {
        sessions: answers.flatMap(([, answer]) => (answer === 'silent' ? [] : answer)),
        silent: answers.flatMap(([other, answer]) =>
          answer === 'silent' ? other.slice(0, name_characters) : [],
        ),
      }
    },
  }
}

/** Answers other nodes what of this one somebody may continue. */
export function nameSessions(
  bus: Bus,
  node: string,
  held: Pick<HeldSessions, 'continuable'>,
  address: () => PeerAddress | undefined,
): Disposable {
  return bus.hold(nameOf(node), async (question) => {
    const here = address()
    if (!here) return undefined
    const sessions = (await held.continuable(JSON.parse(question) as Claim))
      .slice(0, mostNamed)
      .map(({ uid, started_at, held_until }) => ({ uid, started_at, held_until }))
    return JSON.stringify({ address: here, sessions } satisfies Answer)
  })
}
