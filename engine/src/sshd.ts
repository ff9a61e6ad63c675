// An SSH server for one container: one call serves one connection, from the key exchange until it ends, and
// leaves nothing behind. The users are those of the container. A key is accepted if the server vouches for
// the login, a password only where the caller can check it. Every attempt is judged alone. Nothing is
// forwarded: a container's network is not ours to open.
import { setTimeout as sleep } from 'node:timers/promises'
import type { Duplex } from 'node:stream'
import {
  acceptConnection,
  OpenFailure,
  Reason,
  type Attempt,
  type Certificate,
  type Decision,
  type PrivateKey,
  type ServerConnection,
} from '@hawser/ssh'
import { defined } from '@hawser/contract/defined'
import { spareLeg_ms } from '@hawser/contract/tunnel'
import { closedBecause, findAccount, type ContainerAccount } from './accounts.ts'
import type { EngineClient } from './client.ts'
import { serveContainerSession } from './container-session.ts'

export interface KeyLogin {
  readonly user: string
  readonly blob: Buffer
  readonly certificate: Certificate | undefined
  readonly sessionId: Buffer
}

export interface ContainerSshOptions {
  readonly client: EngineClient
  readonly container: string
  readonly deviceName: string
  readonly hostKeys: readonly PrivateKey[]
  /** Whether the server approves this login. */
  approveKey(login: KeyLogin, signal: AbortSignal): Promise<boolean>
  /** Absent: passwords are refused. */
  checkPassword?(account: ContainerAccount, password: string): Promise<boolean>
  readonly keepalive_ms?: number
  readonly signal?: AbortSignal
  /** Called at the login, and disposed of when the connection is over. */
  loggedIn?(): Disposable
  log(event: Record<string, unknown>): void
}

const mostFailures = 6
/** The time for a login, added to the time that the gateway keeps a spare connection. */
const login_ms = 120_000
const mostChannels = 128
/** Keys for each connection that the server is asked about. */
const mostKeys = 16
/** The time of a refusal, or a multiple of it. */
const step_ms = 500

/** Resolves when the connection and all its programs have ended; never rejects. */
export async function serveContainer(stream: Duplex, options: ContainerSshOptions): Promise<void> {
  const { hostKeys, keepalive_ms = 30_000, signal, log } = options
  stream.on('error', () => undefined)
  const login = loginOf(options)
  let connection: ServerConnection
  try {
    connection = await acceptConnection(stream, {
      hostKeys,
      methods: options.checkPassword ? ['password', 'publickey'] : ['publickey'],
      mostFailures,
      mostChannels,
      keepalive_ms,
      earlyChannels: true,
      handshake_ms: spareLeg_ms + login_ms,
      authenticate: login.authenticate,
      channelTypes: ['session'],
      ...defined({ signal }),
    })
  } catch (error) {
    stream.destroy()
    return log({ event: 'connection.refused', error: (error as Error).message })
  }
  const held = options.loggedIn?.()
  try {
    await serve(connection, login.account(), options)
  } catch (error) {
    log({ event: 'connection.failed', error: (error as Error).message })
  }
  const { message } = await connection.ended
  held?.[Symbol.dispose]()
  stream.destroy()
  log({ event: 'connection.ended', user: connection.user, message })
}

async function serve(
  connection: ServerConnection,
  account: ContainerAccount,
  options: ContainerSshOptions,
): Promise<void> {
  const { client, container, deviceName, log } = options
  await using held = new AsyncDisposableStack()
  held.use(connection)
  const over = new AbortController()
  void connection.ended.then(() => over.abort())
  const lost = (error: unknown): void => {
    log({ event: 'engine.lost', error: error instanceof Error ? error.message : String(error) })
    void connection.end(Reason.byApplication, 'The container can no longer be reached.')
  }
  const work = new Set<Promise<void>>()
  for await (const opening of connection.channels) {
    if (opening.type !== 'session') {
      opening.refuse(OpenFailure.prohibited, 'Nothing is forwarded into containers.')
      continue
    }
    const working = serveContainerSession(opening.accept(), {
      client,
      container,
      account,
      deviceName,
      signal: over.signal,
      lost,
      log,
    })
      .catch((error: unknown) => log({ event: 'channel.failed', error: (error as Error).message }))
      .finally(() => work.delete(working))
    work.add(working)
  }
  while (work.size > 0) await Promise.all(work)
}

function loginOf({ client, container, approveKey, checkPassword, log }: ContainerSshOptions) {
  const approvals = new Map<string, Promise<boolean>>()
  let accepted: ContainerAccount | undefined

  const approve = async (
    attempt: Attempt & { method: 'publickey' | 'publickey-offer' },
  ): Promise<boolean> => {
    const { user, sessionId, key } = attempt
    const name = `${user} ${key.blob.toString('base64')}`
    let approval = approvals.get(name)
    if (!approval) {
      if (approvals.size >= mostKeys) return false
      // Asked once: the server answers once.
      const login = { user, blob: key.blob, certificate: key.certificate, sessionId }
      approval = approveKey(login, attempt.signal).catch(() => false)
      approvals.set(name, approval)
    }
    return approval
  }

  /** Undefined: nobody may log in to the account, by any means. */
  async function openAccount(user: string): Promise<ContainerAccount | undefined> {
    const account = await findAccount(client, container, user)
    const reason = account && (await closedBecause(client, container, account))
    if (reason === undefined) return account
    log({ event: 'login.closed', user, reason })
    return undefined
  }

  async function judge(attempt: Attempt): Promise<ContainerAccount | undefined> {
    const account = openAccount(attempt.user)
    account.catch(() => undefined)
    if (attempt.method === 'password') {
      const found = await account
      return found && (await checkPassword?.(found, attempt.password)) ? found : undefined
    }
    if (attempt.method !== 'publickey' && attempt.method !== 'publickey-offer') return undefined
    // Also for users who do not exist.
    return (await approve(attempt)) ? account : undefined
  }

  return {
    async authenticate(attempt: Attempt): Promise<Decision> {
      if (attempt.method === 'none') return 'refuse'
      const began_ms = performance.now()
      const { user, method } = attempt
      const account = await judge(attempt).catch((error: unknown) => {
        log({ event: 'login.failed', user, error: (error as Error).message })
        return undefined
      })
      if (!account) {
        log({ event: 'login.refused', user, method })
        const took_ms = performance.now() - began_ms
        await sleep(Math.ceil(took_ms / step_ms) * step_ms - took_ms)
        return 'refuse'
      }
      if (method !== 'publickey-offer') {
        accepted = account
        log({ event: 'login.accepted', user, method })
      }
      return 'accept'
    },
    account(): ContainerAccount {
      if (!accepted) throw new Error('Nobody is logged in.')
      return accepted
    },
  }
}
